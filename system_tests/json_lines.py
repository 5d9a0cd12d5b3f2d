"""Frozen dataclasses as lines of JSON: one way to write them, and one checked way to read them.

The fields of the dataclass are the keys of the object, all of them and no others. A tuple is an
array; a dataclass in a field is an object.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_Kind = TypeVar("_Kind")
_SHOWN = 200
_SCALARS: Mapping[type, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (int, float),
    str: (str,),
    type(None): (type(None),),
}


class LineError(ValueError):
    """A line is not the JSON of the dataclass; the message names the field and what is expected."""


def write_line(value: Any, **more: object) -> str:
    """Write a dataclass as one JSON object, without the end of the line; `more` keys come first."""
    return json.dumps(more | asdict(value), separators=(",", ":"))


def read_line(kind: type[_Kind], line: str) -> _Kind:
    """Read one dataclass from a line that `write_line` wrote.

    Raises:
        LineError: not a JSON object, or a field is missing, unknown or of another type.
    """
    return read_fields(kind, read_object(line))


def read_object(line: str) -> dict[str, Any]:
    """Read a line as a JSON object.

    Raises:
        LineError: not JSON, or not an object.
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise LineError(f"not JSON: {line[:_SHOWN]!r}") from error
    if not isinstance(found, dict):
        raise LineError(f"not a JSON object: {line[:_SHOWN]!r}")
    return found


def read_fields(kind: type[_Kind], found: Mapping[str, object]) -> _Kind:
    """Make a dataclass from a JSON object.

    Raises:
        LineError: a field is missing, unknown or of another type.
    """
    hints = _hints(cast("Any", kind))
    if found.keys() != hints.keys():
        missing, unknown = sorted(hints.keys() - found.keys()), sorted(found.keys() - hints.keys())
        problems = [f"missing fields {missing}"] * bool(missing)
        problems += [f"unknown fields {unknown}"] * bool(unknown)
        raise LineError(f"{kind.__name__} has {' and '.join(problems)}")
    return kind(
        **{
            name: _read(hint, found[name], f"{kind.__name__}.{name}")
            for name, hint in hints.items()
        }
    )


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: Any, where: str) -> Any:
    """Check one value against the type of its field, and make tuples and dataclasses of it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _read_union(arguments, value, where)
    if hint in _SCALARS:
        if isinstance(value, _SCALARS[hint]) and (hint is bool or not isinstance(value, bool)):
            return value
    elif origin is tuple:
        if isinstance(value, list):
            return _read_tuple(arguments, value, where)
    elif origin is Mapping:
        if isinstance(value, dict):
            return {key: _read(arguments[1], item, where) for key, item in value.items()}
    elif isinstance(hint, type) and is_dataclass(hint):
        if isinstance(value, dict):
            return read_fields(hint, value)
    else:
        raise TypeError(f"{where}: a field of type {hint} cannot be read from JSON")
    raise LineError(f"{where} must be {_name(hint)}, not {_shown(value)}")


def _read_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    for kind in kinds:
        try:
            return _read(kind, value, where)
        except LineError:
            continue
    raise LineError(f"{where} must be {' or '.join(map(_name, kinds))}, not {_shown(value)}")


def _read_tuple(kinds: tuple[Any, ...], values: list[Any], where: str) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        return tuple(_read(kinds[0], value, where) for value in values)
    if len(values) != len(kinds):
        raise LineError(f"{where} must have {len(kinds)} values, not {_shown(values)}")
    return tuple(_read(kind, value, where) for kind, value in zip(kinds, values, strict=True))


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint)) if not get_args(hint) else str(hint)


def _shown(value: object) -> str:
    return repr(value)[:_SHOWN]
