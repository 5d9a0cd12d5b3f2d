"""Signatures and help texts that name every keyword option, from the declarations in `options.py`.

A function with `**options: Unpack[MemberKeywords]` hides its options from `help` and
`inspect.signature`. Type checkers read the annotation; people read what is made here.
"""

import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from assignor.adapters.membership.options import OPTIONS
from assignor.option_fields import option_text, section

_Function = TypeVar("_Function", bound=Callable[..., Any])


def options_section(without: Collection[str] = ()) -> str:
    """Return a section for a docstring: every option but these, with its text and default."""
    options = (each for each in OPTIONS.values() if each.name not in without)
    return section(
        "Options",
        ((each.name, f"{option_text(each).help} Default: {each.default!r}.") for each in options),
    )


def documented(
    *, rest: str | None = None, without: Collection[str] = ()
) -> Callable[[_Function], _Function]:
    """Return a decorator that names each option in a signature, in place of its `**options`.

    Args:
        rest: name of a last parameter for further keywords, of a function whose docstring explains
            the options, too; None: there are none, and the docstring of the class does.
        without: options that the function does not take.
    """
    options = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in OPTIONS.values()
        if each.name not in without
    ]
    others = [] if rest is None else [inspect.Parameter(rest, inspect.Parameter.VAR_KEYWORD)]

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined] # for `inspect`
            parameters=[*own, *options, *others]
        )
        if rest is not None and function.__doc__:
            own_text, options_text = inspect.cleandoc(function.__doc__), options_section(without)
            function.__doc__ = f"{own_text}\n\n{options_text}\n"
        return function

    return decorate
