"""Checks of all values of `probing`'s machines: declared types, readable sentences."""

import types
import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache


@cache
def hints_of(kind):
    return typing.get_type_hints(kind)


def check(value):
    """Check the types and sentences of a state, a command, an answer or a decision."""
    assert is_dataclass(value)
    for name, hint in hints_of(type(value)).items():
        given = getattr(value, name)
        assert fits(given, hint), f"{type(value).__name__}.{name} is {given!r}, not {hint}"
        for part in given if isinstance(given, tuple) else (given,):
            if is_dataclass(part):
                check(part)
        if name == "why":
            assert is_sentence(given), given


check_once = cache(check)


def is_sentence(text):
    """Whether a text reads as a sentence: not all capitals, no placeholder, no gap."""
    return text != text.upper() and not any(odd in text for odd in ("XX", "None", "{", "}", "  "))


def fits(value, hint):
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple and arguments[-1] is Ellipsis:
        return type(value) is tuple and all(fits(element, arguments[0]) for element in value)
    if origin is tuple:
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if origin is not None:
        return isinstance(value, origin if isinstance(origin, type) else Mapping)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return isinstance(value, hint)
    return type(value) is hint or (hint not in (int, bool, str) and isinstance(value, hint))
