"""Convert values of each native type to msgpack values, and back.

``TYPES`` has one entry per type of ``schema.py``. Writers and readers get the task numbering of the
body. They raise ``WireFault``, to which the codec adds field, key and version.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, repeat
from operator import lt
from typing import Any
from uuid import UUID

import numpy as np

from encoding.native.ascending_numbers import decode_numbers, encode_numbers
from encoding.native.schema import MAX_SUBTOPOLOGIES
from encoding.native.task_columns import (
    columns_of,
    decode_offset_rows,
    decode_offset_sums,
    decode_own_tasks,
    decode_task_rows,
    encode_offset_rows,
    encode_offset_sums,
    encode_own_tasks,
    encode_task_rows,
    encode_text,
    take_text,
    tasks_of,
    utf8_of,
)
from encoding.native.task_numbers import Numbering
from encoding.native.topology_rows import (
    decode_fingerprints,
    decode_reached_rows,
    decode_subtopology_rows,
    encode_fingerprints,
    encode_reached_rows,
    encode_subtopology_rows,
)
from encoding.native.values import PartitionRange, PartitionRanges
from encoding.primitives import (
    ByName,
    Cursor,
    TaskOffsetSums,
    WireFault,
    block,
    decode_varints,
    encode_varint,
    encode_varints,
)

Writer = Callable[[Any, Numbering], Any]
Reader = Callable[[Any, Numbering], Any]
_PARTITIONS = 2**31  # of a topic, at most
_KEPT, _SHORT = 256, 256  # number of cached values, and the longest bytes that are cached


@dataclass(frozen=True, slots=True)
class WireType:
    """Writer and reader of a type; ``of`` is the Python type of its msgpack value."""

    of: type
    write: Writer
    read: Reader


def _integer(lowest: int, highest: int) -> WireType:
    def check(value: Any, _: Numbering) -> int:
        if type(value) is not int or not lowest <= value <= highest:
            raise WireFault(f"{value!r} is no integer from {lowest} to {highest}")
        return value

    return WireType(int, check, check)


def _write_bool(value: Any, _: Numbering) -> bool:
    if type(value) is not bool:
        raise WireFault(f"{value!r} is neither True nor False")
    return value


def _write_bytes(value: Any, _: Numbering) -> bytes:
    if not isinstance(value, bytes):
        raise WireFault(f"{type(value).__name__} is not bytes")
    return value


def _eight_bytes(value: Any, _: Numbering) -> bytes:
    if not isinstance(value, bytes) or len(value) != 8:  # noqa: PLR2004 as it is called
        raise WireFault("it takes exactly 8 bytes")
    return value


def _write_int64_bytes(value: Any, _: Numbering) -> bytes:
    try:
        return int(value).to_bytes(8, signed=True)
    except (OverflowError, TypeError, ValueError):
        raise WireFault(f"{value!r} is no integer of 64 bits") from None


def _read_int64_bytes(data: Any, numbering: Numbering) -> int:
    return int.from_bytes(_eight_bytes(data, numbering), signed=True)


def _write_uuid(value: Any, _: Numbering) -> bytes:
    if not isinstance(value, UUID):
        raise WireFault("give a uuid.UUID")
    return value.bytes


def _read_uuid(data: bytes, _: Numbering) -> UUID:
    if len(data) != 16:  # noqa: PLR2004 bytes of a UUID
        raise WireFault(f"a UUID of {len(data)} bytes; it takes 16")
    return UUID(bytes=data)


def _write_numbers(value: Any, _: Numbering) -> bytes:
    numbers = list(value)
    if any(type(number) is not int or not 0 <= number < MAX_SUBTOPOLOGIES for number in numbers):
        raise WireFault(f"give ids from 0 to {MAX_SUBTOPOLOGIES - 1}")
    return encode_numbers(np.array(numbers, np.int32))


def _write_tasks(value: Any, numbering: Numbering) -> bytes:
    try:
        return encode_own_tasks(value, numbering)
    except TypeError:
        raise WireFault("give tasks with numbers that fit 32 bits") from None


def _sums(value: Any) -> TaskOffsetSums:
    if not isinstance(value, TaskOffsetSums):
        raise WireFault("give TaskOffsetSums, for example TaskOffsetSums.from_mapping(...)")
    return value


def _read_first_text(data: bytes, _: Numbering) -> str | None:
    """The first text of a list, ``None`` if the list or the text is empty."""
    cursor = Cursor(data)
    return (take_text(cursor) or None) if cursor.left else None


def _count(value: Any) -> bytes:
    if type(value) is not int or not 0 <= value < _PARTITIONS:
        raise WireFault(f"{value!r} is no integer from 0 to {_PARTITIONS - 1}")
    return encode_varint(value)


def _take_count(cursor: Cursor) -> int:
    value = cursor.varint()
    if value >= _PARTITIONS:
        raise WireFault(f"{value} is larger than {_PARTITIONS - 1}")
    return value


def _range(pair: Any) -> bytes:
    if not isinstance(pair, tuple) or len(pair) != 2:  # noqa: PLR2004 a pair
        raise WireFault(f"{pair!r} is no (lowest, highest)")
    return _count(pair[0]) + _count(pair[1])


@lru_cache(maxsize=_KEPT)
def _texts_written(pairs: tuple[tuple[Any, Any], ...]) -> bytes:
    return b"".join([encode_text(name) + encode_text(text) for name, text in pairs])


def _by_name(write: Callable[[Any], bytes], take: Callable[[Cursor], Any]) -> WireType:
    """A mapping by name; `write` and `take` convert its values."""

    def read(data: bytes) -> ByName[Any]:
        cursor = Cursor(data)
        found: dict[str, Any] = {}
        while cursor.left:
            name = take_text(cursor)
            if name in found:
                raise WireFault(f"{name!r} occurs twice")
            found[name] = take(cursor)
        return ByName(found)

    def written(value: Any, _: Numbering) -> bytes:
        return b"".join([encode_text(name) + write(of) for name, of in value.items()])

    return WireType(bytes, written, _kept(read))


def _kept(read: Callable[[bytes], Any]) -> Reader:
    """A reader that caches values of short bytes: members of a group often send equal ones."""
    keeping = lru_cache(maxsize=_KEPT)(read)
    return lambda data, _: (keeping if len(data) <= _SHORT else read)(data)


def _write_partitions(value: Any, _: Numbering) -> bytes:
    parts: list[bytes] = []
    numbers: list[int] = []
    topic, last = None, 0
    for name, start, stop in [*value, (None, 0, 0)]:
        if name != topic:
            if topic is not None:
                parts += [encode_text(topic), block(encode_varints(numbers))]
            topic, numbers, last = name, [], 0
        if name is None:
            break
        if type(start) is not int or type(stop) is not int or not last <= start < stop:
            raise WireFault(f"{(name, start, stop)!r} is no range of partitions from 0 on")
        if stop > _PARTITIONS:
            raise WireFault(f"partition {stop - 1} is beyond 32 bits")
        numbers += [start - last, stop - start]
        last = stop
    return b"".join(parts)


def _read_partitions(data: bytes, _: Numbering) -> PartitionRanges:
    cursor = Cursor(data)
    ranges: list[PartitionRange] = []
    before: str | None = None
    while cursor.left:
        topic, steps = take_text(cursor), decode_varints(cursor.block())
        if before is not None and topic <= before:
            raise WireFault(f"topic {topic!r} behind {before!r}; topics ascend")
        if len(steps) % 2:
            raise WireFault(f"a range of {topic!r} without a length")
        edges = list(accumulate(steps if isinstance(steps, list) else steps.tolist()))
        if edges and edges[-1] > _PARTITIONS:
            raise WireFault(f"partition {edges[-1] - 1} of {topic!r} is beyond 32 bits")
        if not edges or not all(map(lt, edges, edges[1:])):
            raise WireFault(f"ranges of {topic!r} that are empty or touch")
        ranges += map(PartitionRange, repeat(topic), edges[0::2], edges[1::2])
        before = topic
    return PartitionRanges(ranges)


_rows_written = lru_cache(maxsize=_KEPT)(encode_subtopology_rows)

TYPES: dict[str, WireType] = {
    "int32": _integer(-(2**31), 2**31 - 1),
    "int64": _integer(-(2**63), 2**63 - 1),
    "count": _integer(0, 2**31 - 1),
    "uint32": _integer(0, 2**32 - 1),
    "bool": WireType(bool, _write_bool, lambda value, _: value),
    "text": WireType(str, lambda text, _: utf8_of(text).decode(), lambda text, _: text),
    "bytes": WireType(bytes, _write_bytes, lambda data, _: data),
    "bytes8": WireType(bytes, _eight_bytes, _eight_bytes),
    "int64_bytes": WireType(bytes, _write_int64_bytes, _read_int64_bytes),
    "uuid": WireType(bytes, _write_uuid, _read_uuid),
    "sizes": WireType(
        bytes, lambda _, numbering: numbering.written, lambda _, numbering: numbering.sizes
    ),
    "numbers": WireType(
        bytes,
        _write_numbers,
        lambda data, _: tuple(decode_numbers(data, MAX_SUBTOPOLOGIES).tolist()),
    ),
    "tasks": WireType(bytes, _write_tasks, decode_own_tasks),
    "offset_sums": WireType(
        bytes,
        lambda value, numbering: encode_offset_sums(_sums(value), numbering),
        decode_offset_sums,
    ),
    "task_rows": WireType(
        bytes,
        lambda value, _: encode_task_rows(columns_of(tuple(value))),
        lambda data, _: tasks_of(decode_task_rows(data)),
    ),
    "offset_rows": WireType(
        bytes,
        lambda value, _: encode_offset_rows(_sums(value)),
        lambda data, _: decode_offset_rows(data),
    ),
    "texts": WireType(bytes, lambda value, _: encode_text(value), _read_first_text),
    "texts_by_name": replace(
        _by_name(encode_text, take_text),
        write=lambda value, _: _texts_written(tuple(value.items())),
    ),
    "counts_by_name": _by_name(_count, _take_count),
    "ranges_by_name": _by_name(_range, lambda at: (_take_count(at), _take_count(at))),
    "partitions": WireType(bytes, _write_partitions, _read_partitions),
    "subtopology_rows": WireType(
        bytes, lambda value, _: _rows_written(value), _kept(decode_subtopology_rows)
    ),
    "reached_rows": WireType(
        bytes, lambda value, _: encode_reached_rows(value), _kept(decode_reached_rows)
    ),
    "fingerprints": WireType(
        bytes, lambda value, _: encode_fingerprints(value), _kept(decode_fingerprints)
    ),
}
"""Name of a type in ``schema.py`` -> its writer and reader."""
