"""Explain a native body key by key, for ``explain``.

It uses the readers of the codec and takes the offsets from msgpack's unpacker, so it shows what the
codec reads. Of values with many parts it shows the first few as text.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgpack

from encoding.native import (
    LIMITS,
    NATIVE_KINDS,
    TYPES,
    NativeField,
    Numbering,
    PartitionRange,
    numbering_in,
    pairs_of,
    read_numbering,
)
from encoding.primitives import (
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    DecodeError,
    TaskId,
    TaskOffsetSums,
    WireFault,
)

_SHOWN = 8  # parts of a value that are shown
# Name, offset, size, type, value, meaning, key.
Row = tuple[str, int, int, str, Any, str, int | None]


def body_pieces(
    kind: str,
    data: bytes,
    start: int,
    version: int,
    latest: int,
    *,
    ignored: frozenset[str] = frozenset(),
) -> Iterator[Row]:
    """Yield a row for the count of keys, then one for every key of the body at ``start``.

    Invalid values of ignored fields are shown as msgpack has them.

    Raises:
        DecodeError: no flat map, or an invalid value in a body that this reader reads.
    """
    try:
        pairs = pairs_of(data, start)
        since = dict(pairs).get(0, version)
        is_read = version <= latest or (type(since) is int and since <= latest)
        numbering = _numbering(kind, pairs, is_read=is_read)
        known = {row.key: row for row in NATIVE_KINDS[kind] if row.since <= latest}
        unpacker = msgpack.Unpacker(**LIMITS, max_buffer_size=len(data) + 1)
        unpacker.feed(data[start:])
        count, last = unpacker.read_map_header(), 0
        yield "body", start, unpacker.tell(), "map", count, "fields that differ from default", None
        for _ in range(count):
            last = unpacker.tell()
            key, wire = unpacker.unpack(), unpacker.unpack()
            place = (start + last, unpacker.tell() - last)
            row = known.get(key)
            if row is None:
                line = "not read: a key that this reader does not know"
                yield f"key {key} (unknown)", *place, type(wire).__name__, wire, line, key
                continue
            is_asked = is_read and row.name not in ignored
            value, line = _read(row, wire, numbering, is_read=is_asked)
            if key == 0:
                line = f"{line}; this reader's is {latest}: it is {'' if is_read else 'not '}read"
            yield row.name, *place, row.type, value, line, key
    except WireFault as fault:
        what = f"{kind} body: {fault}"
        raise DecodeError(what, offset=start, version=version, available=len(data)) from None


def _numbering(kind: str, pairs: tuple[tuple[int, Any], ...], *, is_read: bool) -> Numbering:
    """The body's task numbering; an empty one if it is invalid in a body for later readers."""
    try:
        return numbering_in(kind, pairs)
    except WireFault:
        if is_read:
            raise
        return numbering_in(kind, ())


def _read(row: NativeField, wire: Any, numbering: Numbering, *, is_read: bool) -> tuple[Any, str]:
    """The value as shown to people, and its meaning."""
    if wire is None:
        return None, row.meaning
    try:
        if type(wire) is not TYPES[row.type].of:
            raise WireFault(f"{type(wire).__name__} instead of {TYPES[row.type].of.__name__}")  # noqa: TRY301 the same fault as the reader's
        if row.type == "sizes":
            numbering = read_numbering(wire)  # raises the error that `_numbering` suppressed
        return _shown(TYPES[row.type].read(wire, numbering)), row.meaning
    except WireFault as fault:
        if is_read:
            raise WireFault(f"key {row.key} ({row.name}, {row.type}): {fault}") from None
        return wire, f"not read: {row.meaning}"


def _shown(value: Any) -> Any:
    match value:
        case TaskOffsetSums():
            return _few((f"{task} {_sum(number)}" for task, number in value), len(value))
        case Mapping():
            parts = (f"{name}={_value_text(field)}" for name, field in value.items())
            return _few(parts, len(value))
        case PartitionRange(topic, start, stop):
            return f"{topic} {start}" if stop == start + 1 else f"{topic} {start}-{stop - 1}"
        case TaskId():
            return str(value)
        case tuple():
            return _few((str(_shown(element)) for element in value), len(value))
    return value


def _value_text(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _sum(number: int) -> str:
    return {RUNNING: "running", UNKNOWN_OFFSET_SUM: "unknown"}.get(number, str(number))


def _few(parts: Iterable[str], count: int) -> str:
    shown = ", ".join(islice(parts, _SHOWN))
    return f"{shown}, ... ({count})" if count > _SHOWN else shown
