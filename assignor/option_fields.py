"""An option is declared once: a field of a dataclass, with its type, default, text and check.

Signatures, help texts, the types that type checkers read (`assignor.adapters.membership.keywords`)
and the tables of docs/operations.md are made of such fields.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields
from math import inf
from numbers import Real
from typing import Any, NamedTuple, TypeVar

_KEY = "option"
_Value = TypeVar("_Value")
_Class = TypeVar("_Class", bound=type)


class Kind(NamedTuple):
    """The values that an option takes: in words, as what to give, and as a check.

    Attributes:
        words: what to give.
        accepts: whether a value is of this kind.
        choices: the texts that a wrong value is compared with, for the nearest one.
    """

    words: str
    accepts: Callable[[Any], bool]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionText:
    """What is known of an option beside the name, type and default of its field.

    Attributes:
        text: what it does, as one line.
        kind: what it takes; None: where it is used, a sentence of its own refuses a wrong value.
        of_member: what a member takes, if that is less.
        page: where docs/ says more, as a link from docs/operations.md.
    """

    text: str
    kind: Kind | None = None
    of_member: Kind | None = None
    page: str = ""

    @property
    def help(self) -> str:
        """What it does and takes, as one line."""
        return self.text if self.kind is None else f"{self.text} Takes {self.kind.words}."


def option(default: _Value, text: str, kind: Kind | None = None, **more: Any) -> _Value:
    """Return a field of a dataclass that is an option; `more` as the fields of `OptionText`."""
    described = OptionText(text=text, kind=kind, **more)
    declared: _Value = field(default=default, metadata={_KEY: described})
    return declared


def option_text(declared: Field[Any]) -> OptionText:
    """Return what is known of an option."""
    known: OptionText = declared.metadata[_KEY]
    return known


def section(heading: str, entries: Iterable[tuple[str, str]]) -> str:
    """Return a section of a docstring from names and their texts."""
    filled = (
        textwrap.fill(
            f"{name}: {text}",
            88,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, text in entries
    )
    return "\n".join((f"{heading}:", *filled))


def described(kind: _Class) -> _Class:
    """Add the texts of a dataclass's options to its docstring, as its attributes."""
    texts = [(each.name, option_text(each).help) for each in fields(kind)]
    kind.__doc__ = f"{inspect.cleandoc(kind.__doc__ or '')}\n\n{section('Attributes', texts)}\n"
    return kind


def whole(least: int, most: float = inf, *, of: str = "a whole number") -> Kind:
    """Return the kind of whole numbers in a range.

    >>> whole(1).words, whole(0, 9).words, whole(1).accepts(True)
    ('a whole number, 1 or more', 'a whole number, 0 to 9', False)
    """
    limits = f"{least} or more" if most == inf else f"{least} to {most}"
    return Kind(
        f"{of}, {limits}",
        lambda value: (
            isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        ),
    )


def optional(kind: Kind, words: str = "{}, or None") -> Kind:
    """Return the kind that takes None, too; in `words` braces stand for those of `kind`."""
    return Kind(words.format(kind.words), lambda value: value is None or kind.accepts(value))


def number(words: str, is_in_range: Callable[[Any], bool]) -> Kind:
    """Return the kind of finite numbers in a range; `words` name it."""

    def accepts(value: Any) -> bool:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and -inf < value < inf and is_in_range(value)

    return Kind(words, accepts)


TRUE_OR_FALSE = Kind("True or False", lambda value: isinstance(value, bool))
