"""Signatures and help texts that name every keyword option, from the declarations in `options.py`.

A function with `**options: Unpack[MemberKeywords]` hides its options from `help` and
`inspect.signature`. Type checkers read the annotation; people read what is made here.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

from assignor.adapters.membership.options import OPTION_GROUPS, option_fields
from assignor.config import AssignmentConfig

_Function = TypeVar("_Function", bound=Callable[..., Any])

_WIDTH: Final = 88
# An entry of a docstring's section: four spaces, a name, a colon, the text; more lines are deeper.
_ENTRY: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def option_texts() -> Mapping[str, str]:
    """Return option -> its text; without docstrings (`python -OO`) nothing."""
    texts: dict[str, str] = {}
    for kind in (*OPTION_GROUPS.values(), AssignmentConfig):
        section = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
        texts |= {name: " ".join(text.split()) for name, text in _ENTRY.findall(section)}
    return texts


def options_section(without: Collection[str] = ()) -> str:
    """Return a section for a docstring: every option but these, with its text and default."""
    texts = option_texts()
    lines = ["Options:"]
    for option in (each for each in option_fields() if each.name not in without):
        text = f"{option.name}: {texts.get(option.name, '')} Default: {option.default!r}."
        lines.append(
            textwrap.fill(
                text,
                _WIDTH,
                initial_indent=" " * 4,
                subsequent_indent=" " * 8,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
    return "\n".join(lines)


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
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=option.type,
        )
        for option in option_fields()
        if option.name not in without
    ]
    others = [] if rest is None else [inspect.Parameter(rest, inspect.Parameter.VAR_KEYWORD)]

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined] # for `inspect`
            parameters=[*own, *options, *others]
        )
        if rest is not None and function.__doc__:
            own_text, section = inspect.cleandoc(function.__doc__), options_section(without)
            function.__doc__ = f"{own_text}\n\n{section}\n"
        return function

    return decorate
