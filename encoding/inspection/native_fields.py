"""Convert native parts to JSON fields, and back.

All fields are written, in the order of the value; tasks, sums and ranges are rows as in
``fields``, bytes are hex. On reading, missing fields take their defaults and unknown
ones are refused.
"""

from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any

from encoding.inspection.rows import is_integer, sums_of_rows, task_of_row, wrong
from encoding.native import (
    NATIVE_KINDS,
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    ReachedRow,
    SubtopologyRow,
)
from encoding.primitives import ByName, EncodeError, TaskOffsetSums

Native = NativeSubscription | NativeAssignment
_CLASSES: dict[str, type[Any]] = {
    "subscription": NativeSubscription,
    "assignment": NativeAssignment,
}
# The version numbers have the same names as in the outer JSON form.
_JSON_NAMES = {
    "latest_supported_version": "latest_supported",
    "commonly_supported_version": "commonly_supported",
}
_TYPES = {
    kind: {row.name: row.type for row in reversed(rows)} for kind, rows in NATIVE_KINDS.items()
}


def native_to_fields(value: Native) -> dict[str, Any]:
    """Canonical fields of a native part."""
    return {
        _JSON_NAMES.get(field.name, field.name): _plain(getattr(value, field.name))
        for field in fields_of(value)
    }


def native_from_fields(kind: str, fields: Any) -> Any:
    """Native part of canonical fields, ``None`` of ``None``.

    Args:
        kind: ``subscription`` or ``assignment``.
        fields: as from ``native_to_fields``; missing ones take their defaults.

    Raises:
        EncodeError: an unknown field, or one of the wrong shape.
    """
    if fields is None:
        return None
    if not isinstance(fields, Mapping):
        raise wrong("native", fields, "an object or null")
    names = {_JSON_NAMES.get(field.name, field.name): field for field in fields_of(_CLASSES[kind])}
    values = {}
    for name, given in fields.items():
        if name not in names:
            reason = f"there is no such field; known are {', '.join(names)}"
            raise EncodeError(f"native.{name}", given, None, reason)
        inner = names[name].name
        values[inner] = _value(f"native.{name}", _TYPES[kind].get(inner), given)
    return _CLASSES[kind](**values)


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex()
        case TaskOffsetSums():
            return [[*task, offset_sum] for task, offset_sum in value]
        case ByName():
            return {name: _plain(element) for name, element in value.items()}
        case tuple():
            return [_plain(element) for element in value]
    return value


def _value(path: str, type_: str | None, given: Any) -> Any:
    """The Python value of a JSON value; scalars are checked when they are written."""
    if type_ is None or type_ not in _SHAPES:
        if isinstance(given, list | dict):
            raise wrong(path, given, "one number, text, true, false or null")
        return given
    if given is None:
        return given
    expected, shape = _SHAPES[type_]
    if not isinstance(given, expected):
        raise wrong(path, given, f"a JSON {_SPELLED[expected]}")
    return shape(path, given)


def _bytes(path: str, given: str) -> bytes:
    try:
        return bytes.fromhex(given)
    except ValueError:
        raise wrong(path, given, "bytes in hex, two digits each") from None


def _integers(path: str, given: list[Any]) -> tuple[int, ...]:
    if not all(map(is_integer, given)):
        raise wrong(path, given, "a list of integers")
    return tuple(given)


def _ranges(path: str, given: list[Any]) -> tuple[PartitionRange, ...]:
    ranges = []
    for row in given:
        match row:
            case [str() as topic, start, stop] if is_integer(start) and is_integer(stop):
                ranges.append(PartitionRange(topic, start, stop))
            case _:
                raise wrong(path, row, "ranges as [topic, start, stop]")
    return tuple(ranges)


def _pairs(path: str, given: dict[str, Any]) -> dict[str, tuple[int, int]]:
    for pair in given.values():
        match pair:
            case [low, high] if is_integer(low) and is_integer(high):
                continue
        raise wrong(path, pair, "[lowest, highest] by name")
    return {name: (low, high) for name, (low, high) in given.items()}


def _rows(path: str, given: list[Any]) -> tuple[SubtopologyRow, ...]:
    wanted = "subtopologies as lists of versions, sources, sinks, repartition topics, changelogs"
    rows = []
    for row in given:
        if not isinstance(row, list) or len(row) != len(SubtopologyRow._fields):
            raise wrong(path, row, wanted)
        rows.append(SubtopologyRow(*map(_tuples, row)))
    return tuple(rows)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _reached(path: str, given: list[Any]) -> tuple[ReachedRow, ...]:
    rows = []
    for row in given:
        match row:
            case [str() as form, epoch, version] if is_integer(epoch) and is_integer(version):
                rows.append(ReachedRow(_bytes(path, form), epoch, version))
            case _:
                raise wrong(path, row, "reached versions as [form in hex, epoch, version]")
    return tuple(rows)


def _forms(path: str, given: list[Any]) -> tuple[bytes, ...]:
    if not all(isinstance(form, str) for form in given):
        raise wrong(path, given, "fingerprints in hex")
    return tuple(_bytes(path, form) for form in given)


_SPELLED = {str: "text", list: "list", dict: "object"}
_SHAPES: dict[str, tuple[Any, Any]] = {
    "bytes": (str, _bytes),
    "bytes8": (str, _bytes),
    "sizes": (list, _integers),
    "numbers": (list, _integers),
    "tasks": (list, lambda path, given: tuple(task_of_row(path, row) for row in given)),
    "offset_sums": (
        list,
        lambda path, given: TaskOffsetSums.from_mapping(sums_of_rows(path, given)),
    ),
    "partitions": (list, _ranges),
    "counts_by_name": (dict, lambda _, given: given),
    "ranges_by_name": (dict, _pairs),
    "subtopology_rows": (list, _rows),
    "reached_rows": (list, _reached),
    "fingerprints": (list, _forms),
}
