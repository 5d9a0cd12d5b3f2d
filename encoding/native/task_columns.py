"""Write and read native columns of tasks and of their offset sums.

Layouts are in ``schema.py``. Every reader checks each count against its bytes before it allocates
memory. A bit of a bitmap is the most compact input: it gives a task of 16 bytes in memory.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from encoding.native.ascending_numbers import (
    bits_of,
    decode_few_numbers,
    decode_numbers,
    encode_few_numbers,
    encode_numbers,
)
from encoding.native.schema import MAX_OWN_TASKS, MAX_TASKS, MAX_TEXT_BYTES
from encoding.native.task_numbers import Numbering
from encoding.native.unsigned_columns import decode_words, encode_words
from encoding.primitives import (
    EMPTY,
    FEW,
    RUNNING,
    Cursor,
    TaskId,
    TaskOffsetSums,
    WireFault,
    block,
    decode_varints,
    encode_utf8,
    encode_varints,
    is_block,
    task_order,
    unzigzag,
    zigzag,
)

Columns = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Sequence[str | None] | None]
_FEW_BYTES = 80  # of a column of tasks that plain Python may read faster
_ODD_SUMS = "{} tasks without RUNNING, but {} offset sums"
_INT32 = np.iinfo(np.int32)
_NO_COLUMNS: Columns = (np.empty(0, np.int32), np.empty(0, np.int32), None)


def utf8_of(text: object) -> bytes:
    """UTF-8 of a text; ``WireFault`` if it is no text or too long.

    Half a surrogate pair becomes "?", as in Kafka's subscriptions.
    """
    if not isinstance(text, str):
        raise WireFault(f"{text!r} is no text")
    data = encode_utf8(text)
    if len(data) > MAX_TEXT_BYTES:
        raise WireFault(f"it takes {len(data)} bytes, at most {MAX_TEXT_BYTES} fit; shorten it")
    return data


def encode_text(text: object) -> bytes:
    """Varint length and UTF-8 of a text; ``WireFault`` if it is no text or too long."""
    return block(utf8_of(text))


def take_text(cursor: Cursor) -> str:
    """The text at the cursor."""
    length = cursor.varint()
    if length > MAX_TEXT_BYTES:
        raise WireFault(f"a text of {length} bytes; at most {MAX_TEXT_BYTES} may be")
    try:
        return cursor.take(length).decode()
    except UnicodeDecodeError:
        raise WireFault("a text is not UTF-8") from None


def encode_task_rows(columns: Columns) -> bytes:
    """Bytes of tasks outside the numbering: zig-zag varints, then names if a task has one."""
    subtopologies, partitions, names = columns
    if not len(subtopologies):
        return b""
    pairs = np.empty(2 * len(subtopologies), np.int64)
    pairs[0::2], pairs[1::2] = subtopologies, partitions
    out = [block(encode_varints(zigzag(pairs)))]
    if names is not None:
        out += [encode_text(name or "") for name in names]
    return b"".join(out)


def decode_task_rows(data: bytes) -> Columns:
    """The reverse of ``encode_task_rows``."""
    if not data:
        return _NO_COLUMNS
    cursor = Cursor(data)
    pairs = unzigzag(decode_varints(cursor.block()))
    if len(pairs) % 2:
        raise WireFault("a subtopology without a partition")
    if len(pairs) and (pairs.min() < _INT32.min or pairs.max() > _INT32.max):
        raise WireFault("a task beyond 32 bits")
    names: list[str | None] | None = None
    if cursor.left:
        names = [take_text(cursor) or None for _ in range(min(len(pairs) // 2, cursor.left))]
        if len(names) != len(pairs) // 2 or cursor.left:
            raise WireFault(f"{len(pairs) // 2} tasks, but not as many names")
    return pairs[0::2].astype(np.int32), pairs[1::2].astype(np.int32), names


def encode_tasks(columns: Columns, numbering: Numbering) -> tuple[bytes, Any]:
    """Bytes of at least one task (sorted, distinct), and their order there (``None``: unchanged).

    Tasks with a number come first, then those outside the sizes and those with a name.
    """
    subtopologies, partitions, names = columns
    numbers, inside = numbering.numbers_of(subtopologies, partitions)
    if names is None and inside is None:
        return block(encode_numbers(numbers)), None
    if inside is None:
        inside = np.ones(len(subtopologies), np.bool_)
    if names is not None:
        plain = np.array([name is None for name in names])
        numbers, inside = numbers[plain[inside]], inside & plain
    outside = np.flatnonzero(~inside)
    left = None if names is None else [names[index] for index in outside.tolist()]
    rows = encode_task_rows((subtopologies[outside], partitions[outside], left))
    order = np.concatenate((np.flatnonzero(inside), outside))
    return block(encode_numbers(numbers)) + rows, order


def decode_tasks(data: bytes, numbering: Numbering, most: int = MAX_TASKS) -> Columns:
    """The reverse of ``encode_tasks``, in the order of the bytes; up to ``most`` numbers."""
    if not data:
        return _NO_COLUMNS
    cursor = Cursor(data)
    numbers = decode_numbers(cursor.block(), numbering.total)
    _check_count(len(numbers), most)
    subs, parts = numbering.tasks_of(numbers)
    rows = cursor.rest()
    if not rows:
        return subs, parts, None
    more_subs, more_parts, names = decode_task_rows(rows)
    if names is not None:
        names = [*[None] * len(subs), *names]
    return np.concatenate((subs, more_subs)), np.concatenate((parts, more_parts)), names


def encode_offset_sums(value: TaskOffsetSums, numbering: Numbering) -> bytes:
    """Bytes of offset sums: block of tasks, bitmap of the running ones, sums of the others."""
    if not len(value):
        return b""
    columns = (value.subtopologies, value.partitions, value.names)
    tasks, order = encode_tasks(columns, numbering)
    sums = value.sums if order is None else value.sums[order]
    runs = sums == RUNNING
    bitmap = np.packbits(runs, bitorder="little").tobytes().rstrip(b"\0")
    others = sums[~runs]
    if len(others) > FEW:
        return block(tasks) + block(bitmap) + encode_words(zigzag(others))
    folded = [value << 1 if value >= 0 else ~(value << 1) for value in others.tolist()]
    return block(tasks) + block(bitmap) + encode_words(folded)


def decode_offset_sums(data: bytes, numbering: Numbering) -> TaskOffsetSums:
    """The reverse of ``encode_offset_sums``."""
    if not data:
        return EMPTY
    cursor = Cursor(data)
    tasks, bitmap, rest = cursor.block(), cursor.block(), cursor.rest()
    if 0 < len(tasks) <= _FEW_BYTES:
        few = _decode_few(tasks, bitmap, rest, numbering)
        if few is not None:
            return few
    subs, parts, names = decode_tasks(tasks, numbering)
    are_numbered = names is None and tasks != b"" and is_block(tasks)
    count = len(subs)
    if len(bitmap) > (count + 7) // 8:
        raise WireFault(f"a bitmap of {len(bitmap)} bytes for {count} tasks")
    if 8 * len(bitmap) > count and bitmap[-1] >> count % 8:
        raise WireFault(f"the bitmap marks more than {count} tasks")
    runs = bits_of(bitmap, count)
    others = unzigzag(decode_words(rest))
    if len(others) != count - np.count_nonzero(runs):
        raise WireFault(_ODD_SUMS.format(count - np.count_nonzero(runs), len(others)))
    sums = np.full(count, RUNNING, np.int64)
    sums[~runs] = others
    if are_numbered:
        return TaskOffsetSums.from_ascending(subs, parts, sums)
    return TaskOffsetSums.from_columns(subs, parts, sums, names)


def _decode_few(
    tasks: bytes, bitmap: bytes, rest: bytes, numbering: Numbering
) -> TaskOffsetSums | None:
    """As ``decode_offset_sums`` for a few tasks; ``None`` if numpy must read them."""
    found = _few_tasks(tasks, numbering)
    if found is None or len(rest) > 8 * len(found[0]) + 1:
        return None
    words = decode_words(rest)
    if not isinstance(words, list):
        return None
    bits, count = int.from_bytes(bitmap, "little"), len(found[0])
    if bits >> count or len(bitmap) > (count + 7) // 8:
        return None
    runs = [bits >> place & 1 for place in range(count)]
    if len(words) != count - sum(runs):
        return None
    rest_of = iter([word >> 1 ^ -(word & 1) for word in words])
    sums = [RUNNING if run else next(rest_of) for run in runs]
    subs, parts = (np.array(column, np.int32) for column in found)
    return TaskOffsetSums.from_ascending(subs, parts, np.array(sums, np.int64))


def _few_tasks(data: bytes, numbering: Numbering) -> tuple[list[int], list[int]] | None:
    """Subtopologies and partitions of a few numbered tasks; ``None`` if numpy must read them."""
    cursor = Cursor(data)
    numbers = decode_few_numbers(cursor.block(), numbering.total)
    if numbers is None or cursor.left:
        return None
    starts = numbering.starts
    subs = [bisect_right(starts, number) - 1 for number in numbers]
    return subs, [number - starts[sub] for number, sub in zip(numbers, subs, strict=True)]


def encode_offset_rows(value: TaskOffsetSums) -> bytes:
    """Bytes of offset sums as in version 103: block of task rows, zig-zag varints of all sums."""
    if not len(value):
        return b""
    rows = encode_task_rows((value.subtopologies, value.partitions, value.names))
    return block(rows) + encode_varints(zigzag(value.sums))


def decode_offset_rows(data: bytes) -> TaskOffsetSums:
    """The reverse of ``encode_offset_rows``."""
    if not data:
        return EMPTY
    cursor = Cursor(data)
    subs, parts, names = decode_task_rows(cursor.block())
    sums = unzigzag(decode_varints(cursor.rest()))
    if len(sums) != len(subs):
        raise WireFault(f"{len(subs)} tasks, but {len(sums)} offset sums")
    return TaskOffsetSums.from_columns(subs, parts, sums, names)


def encode_own_tasks(tasks: Sequence[TaskId], numbering: Numbering) -> bytes:
    """Bytes of tasks in any order; ``WireFault`` for too many, or numbers beyond 32 bits."""
    _check_count(len(tasks), MAX_OWN_TASKS)
    sizes, starts = numbering.sizes, numbering.starts
    if len(tasks) <= FEW:
        numbers = {
            starts[sub] + part
            for sub, part, name in tasks
            if name is None and 0 <= sub < len(sizes) and 0 <= part < sizes[sub]
        }
        if len(numbers) == len(tasks):
            return block(encode_few_numbers(sorted(numbers))) if numbers else b""
    return encode_tasks(columns_of(tasks), numbering)[0]


def decode_own_tasks(data: bytes, numbering: Numbering) -> tuple[TaskId, ...]:
    """Tasks in order, each once; ``WireFault`` if they are more than ``MAX_OWN_TASKS``."""
    if 0 < len(data) <= FEW:
        found = _few_tasks(data, numbering)
        if found is not None:
            return tuple(map(TaskId, *found))
    columns = decode_tasks(data, numbering, MAX_OWN_TASKS)
    return tasks_of(columns, are_sorted=data != b"" and is_block(data))


def columns_of(tasks: Sequence[TaskId]) -> Columns:
    """Columns of tasks, sorted, each once; ``WireFault`` for numbers beyond 32 bits."""
    if not tasks:
        return _NO_COLUMNS
    try:
        ordered = sorted(set(tasks), key=task_order)
        subtopologies, partitions, names = zip(*ordered, strict=True)
        columns = array("i", subtopologies), array("i", partitions)
    except (OverflowError, TypeError, ValueError, AttributeError):
        raise WireFault("give tasks with numbers that fit 32 bits") from None
    subs, parts = (np.frombuffer(column, np.int32) for column in columns)
    return subs, parts, names if any(names) else None


def tasks_of(columns: Columns, *, are_sorted: bool = False) -> tuple[TaskId, ...]:
    """The tasks of columns, sorted, each once; ``WireFault`` for more than ``MAX_OWN_TASKS``."""
    subs, parts, names = columns
    _check_count(len(subs), MAX_OWN_TASKS)
    tasks = map(TaskId, subs.tolist(), parts.tolist(), repeat(None) if names is None else names)
    # Numbers ascend already, but tasks outside the numbering belong between them.
    return tuple(tasks) if are_sorted else tuple(sorted(set(tasks), key=task_order))


def _check_count(count: int, most: int) -> None:
    if count > most:
        raise WireFault(f"{count} tasks; at most {most} may be")
