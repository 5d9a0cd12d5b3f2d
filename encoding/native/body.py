"""Write and read native bodies and trailers by the rows of ``schema.py``.

A reader whose latest native version is L knows every key that exists in L or earlier; keys never
change their meaning. It reads bodies of versions up to L, and of later versions whose
``readable_since`` is at most L; it skips unknown keys.

For any bytes, a reader returns a value or raises ``DecodeError``. msgpack accepts only one flat map
of at most ``MAX_KEYS`` keys; time and memory are linear in the input.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from operator import attrgetter
from struct import Struct
from typing import Any

import msgpack

from encoding.native.schema import (
    EARLIEST_NATIVE_VERSION,
    EMULATED_VERSIONS,
    MAGIC,
    MAX_TEXT_BYTES,
    NATIVE_KINDS,
    NATIVE_VERSIONS,
    READABLE_SINCE,
    NativeField,
    native_rows_of,
)
from encoding.native.task_numbers import Numbering, numbering_of, read_numbering
from encoding.native.value_types import TYPES, Reader, Writer
from encoding.native.values import NativeAssignment, NativeSubscription
from encoding.primitives import DecodeError, EncodeError, WireFault

MAX_KEYS = 128
"""Most keys of a body; several times the number of existing keys."""

HEADER = Struct(">ii")
LENGTH = Struct(">i")
_WRITTEN = (*NATIVE_VERSIONS, *EMULATED_VERSIONS)
_EXTRAS = {"subscription": NativeSubscription, "assignment": NativeAssignment}
_IS_EXTRA = {
    kind: frozenset(field.name for field in fields(extras)) for kind, extras in _EXTRAS.items()
}


@dataclass(frozen=True, slots=True)
class Body:
    """Fields of a body by name: ``outer`` ones (Kafka's) and ``extras`` of the native value.

    Fields that the body does not carry are missing; they take their defaults.
    """

    outer: dict[str, Any]
    extras: dict[str, Any]


def latest_native_version(known_versions: Collection[int]) -> int | None:
    """The greatest native version of ``known_versions``, ``None`` if there is none."""
    return _latest(tuple(known_versions))


@lru_cache(maxsize=64)
def _latest(known_versions: tuple[int, ...]) -> int | None:
    return max((v for v in known_versions if v >= EARLIEST_NATIVE_VERSION), default=None)


# Writing.


def write_blob(kind: str, version: int, supported: int, outer: Any, extras: Any) -> bytes:
    """Header and body in a native version; ``EncodeError`` names the field that does not fit.

    Args:
        kind: ``subscription`` or ``assignment``.
        version: used version of the blob, a native one.
        supported: second number of the header.
        outer: the value that holds Kafka's fields.
        extras: its native part.
    """
    try:
        plan = _write_plan(kind, version)
    except KeyError:
        known = f"native versions are {', '.join(map(str, _WRITTEN))}"
        raise EncodeError("native.version", version, None, known) from None
    if not extras.is_readable:
        reason = "its body was not read, so it cannot be written; build a new value"
        raise EncodeError("native.is_readable", extras.is_readable, version, reason)
    if type(supported) is not int or not version <= supported < 2**31:
        reason = f"it must be at least the used version {version}, and fit 32 bits"
        raise EncodeError("latest_supported_version", supported, version, reason)
    name = "sizes"
    value: Any = extras.sizes
    body: dict[int, Any] = {0: READABLE_SINCE[version]}
    try:
        numbering = numbering_of(tuple(value))
        for key, name, get, is_extra, default, is_sized, write in plan:  # noqa: B007 for the error
            value = get(extras if is_extra else outer)
            if value is default or (not len(value) if is_sized else value == default):
                continue
            body[key] = write(value, numbering)
    except WireFault as fault:
        raise EncodeError(name, value, version, str(fault)) from None
    except (AttributeError, TypeError, ValueError):
        # What a writer raises for a value that is not of the field's type.
        raise EncodeError(name, value, version, "it has the wrong type") from None
    packed: bytes = msgpack.packb(body)
    return HEADER.pack(version, supported) + packed


def write_trailer(kind: str, outer: Any, extras: Any, supported: int) -> bytes:
    """Bytes of a trailer, in the version of the native part."""
    blob = write_blob(kind, extras.version, supported, outer, extras)
    return MAGIC + LENGTH.pack(len(blob)) + blob


# Reading.


def pairs_of(data: bytes, start: int) -> tuple[tuple[int, Any], ...]:
    """Keys and values of the map at ``start``, in wire order; bytes behind the map are ignored.

    Raises:
        WireFault: there is no flat map of integer keys.
    """
    try:
        found = msgpack.unpackb(data[start:], **LIMITS)
    except msgpack.ExtraData as extra:
        found = extra.unpacked
    except (ValueError, OverflowError) as error:
        # msgpack has a class for each fault: limits, cut-off bytes, nesting, invalid text.
        raise WireFault(f"the body is no flat msgpack map: {error}") from None
    if type(found) is not tuple:
        raise WireFault(f"the body is a msgpack {type(found).__name__}; it must be a map")
    for key, _ in found:
        if type(key) is not int:
            raise WireFault(f"key {key!r} of the body is no integer")
    if len(dict(found)) != len(found):
        raise WireFault(
            f"the body has {len(found)} keys, but only {len(dict(found))} are different"
        )
    return found


def read_body(
    kind: str,
    data: bytes,
    start: int,
    version: int,
    latest: int,
    *,
    ignored: frozenset[str] = frozenset(),
) -> Body | None:
    """The fields of the body at ``start``; ``None`` if only later readers may read it.

    Args:
        kind: ``subscription`` or ``assignment``.
        data: the whole blob.
        start: where the map begins.
        version: used version of the header in front of it.
        latest: the reader's latest native version.
        ignored: names of fields to leave unread.

    Raises:
        DecodeError: an invalid body; the message names key and expected type.
    """
    key: int | None = None
    readers = _readers(kind, latest)
    try:
        pairs = pairs_of(data, start)
        if _readable_since(pairs, version) > latest and version > latest:
            return None
        numbering = numbering_in(kind, pairs)
        body = Body({}, {})
        for key, wire in pairs:
            known = readers.get(key)
            if known is None or wire is None:
                continue
            name, of, read, is_extra = known
            if name in ignored:
                continue
            if type(wire) is not of:
                _wrong(wire, of)
            (body.extras if is_extra else body.outer)[name] = read(wire, numbering)
    except WireFault as fault:
        what = f"{kind} {_label(kind, key)}{fault}"
        raise DecodeError(what, offset=start, version=version, available=len(data)) from None
    return body


def trailer_in(data: bytes, start: int) -> tuple[int, int, int, int] | None:
    """(used, supported, start of the map, end) of the trailer at ``start``, if one is there."""
    if data[start : start + 4] != MAGIC or len(data) < start + 16:
        return None
    length = LENGTH.unpack_from(data, start + 4)[0]
    end = start + 8 + length
    used, supported = HEADER.unpack_from(data, start + 8)
    if length < HEADER.size or end > len(data) or not EARLIEST_NATIVE_VERSION <= used <= supported:
        return None
    return used, supported, start + 16, end


def read_trailer(
    kind: str, data: bytes, start: int, known_versions: Collection[int]
) -> tuple[Any, dict[str, Any] | None]:
    """The native value of the trailer at ``start``, and the outer fields that it carries.

    Both are ``None`` without a valid trailer: bytes behind Kafka's fields are never an error. A
    trailer for later readers gives a value with ``is_readable=False`` and no outer fields.
    """
    found = trailer_in(data, start)
    latest = latest_native_version(known_versions)
    if found is None or latest is None:
        return None, None
    used, supported, map_start, end = found
    try:
        body = read_body(kind, data[:end], map_start, used, latest, ignored=KAFKAS[kind])
    except DecodeError:
        return None, None
    if body is None:
        return extras_of(kind, used, supported, {"is_readable": False}), None
    return extras_of(kind, used, supported, body.extras), body.outer


def extras_of(kind: str, version: int, supported: int, values: dict[str, Any]) -> Any:
    """The native value of a subscription or assignment, from its fields."""
    return _EXTRAS[kind](version=version, **{_SUPPORTED[kind]: supported}, **values)


LIMITS: dict[str, Any] = {
    "raw": False,
    "strict_map_key": False,  # checked in pairs_of, which refuses all keys but integers
    "object_pairs_hook": tuple,  # keeps duplicate keys
    "max_str_len": MAX_TEXT_BYTES,
    "max_map_len": MAX_KEYS,
    "max_array_len": 0,
    "max_ext_len": 0,
}
"""Limits for msgpack: one flat map. An array is refused before memory is allocated for it."""

KAFKAS: dict[str, frozenset[str]] = {
    "subscription": frozenset({"process_id"}),
    "assignment": frozenset({"active_tasks", "standby_tasks"}),
}
"""Fields that are always taken from Kafka's fields; a trailer's are not read."""

_SUPPORTED = {
    "subscription": "latest_supported_version",
    "assignment": "commonly_supported_version",
}
_SIZES_KEYS = {
    kind: next(row.key for row in rows if row.name == "sizes")
    for kind, rows in NATIVE_KINDS.items()
}
_NO_NUMBERING = read_numbering(b"")
_SIZED = (
    *("sizes", "tasks", "offset_sums", "task_rows", "offset_rows", "partitions"),
    *("subtopology_rows", "reached_rows", "fingerprints"),
)


def _readable_since(pairs: tuple[tuple[int, Any], ...], version: int) -> int:
    """Key 0 of the body, by default the used version; ``WireFault`` for an invalid one."""
    since = dict(pairs).get(0)
    if since is None:
        return version
    try:
        return int(TYPES["count"].read(since, _NO_NUMBERING))
    except WireFault as fault:
        raise WireFault(f"key 0 (readable_since, count): {fault}") from None


def numbering_in(kind: str, pairs: tuple[tuple[int, Any], ...]) -> Numbering:
    """The task numbering of a body; an empty one if it has no sizes."""
    key = _SIZES_KEYS[kind]
    for found, wire in pairs:
        if found == key and wire is not None:
            try:
                return read_numbering(wire if type(wire) is bytes else _wrong(wire, bytes))
            except WireFault as fault:
                raise WireFault(f"key {key} (sizes): {fault}") from None
    return _NO_NUMBERING


def _wrong(wire: object, of: type) -> Any:
    raise WireFault(f"{type(wire).__name__} instead of {of.__name__}")


def _label(kind: str, key: int | None) -> str:
    if key is None:
        return ""
    row = next(row for row in NATIVE_KINDS[kind] if row.key == key)
    return f"key {key} ({row.name}, {row.type}): "


def _is_sized(row: NativeField) -> bool:
    return row.type in _SIZED or row.type.endswith("_by_name")


@cache
def _write_plan(
    kind: str, version: int
) -> tuple[tuple[int, str, Callable[[Any], Any], bool, Any, bool, Writer], ...]:
    if version not in _WRITTEN:
        raise KeyError(version)
    return tuple(
        (
            row.key,
            row.name,
            _GETTERS.get((kind, row.name)) or attrgetter(row.name),
            row.name in _IS_EXTRA[kind],
            row.default,
            _is_sized(row),
            TYPES[row.type].write,
        )
        for row in native_rows_of(kind, version)
        if row.key != 0
    )


@cache
def _readers(kind: str, latest: int) -> dict[int, tuple[str, type, Reader, bool]]:
    """Key -> (name, msgpack type, reader, is an extra) for a reader of this latest version."""
    return {
        row.key: (row.name, TYPES[row.type].of, TYPES[row.type].read, row.name in _IS_EXTRA[kind])
        for row in NATIVE_KINDS[kind]
        if row.since <= latest and row.key != 0
    }


_GETTERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("assignment", "standby_tasks"): lambda value: tuple(value.standby_tasks),
}
