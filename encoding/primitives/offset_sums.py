"""Task offset sums: how far a member's state of each task is, as columns.

A leader of a large group holds a million of these. They are three numpy columns, and a column of
names if there are named topologies; there is no object per task. The value is normalised when it is
built: sorted by (subtopology, partition, name), each task once; of duplicates the last one is kept,
as in Kafka's decoder. Equal content compares equal and is written as equal bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from encoding.primitives.errors import EncodeError
from encoding.primitives.identifiers import RUNNING, TaskId

Int32Column = npt.NDArray[np.int32]
Int64Column = npt.NDArray[np.int64]
_HALF = np.int64(2**31)
_SHOWN = 8  # tasks that a repr lists
FEW_TASKS = 64  # tasks up to which plain Python is faster than columns


class TaskOffsetSums:
    """Offset sums by task: immutable, sorted, each task once.

    Iterating yields ``(TaskId, offset sum)``. Sums are offsets added up over the changelog
    partitions of a task; ``RUNNING`` (-2) and ``UNKNOWN_OFFSET_SUM`` (-3) are not offsets. Build it
    with ``from_mapping`` or ``from_columns``; ``TaskOffsetSums()`` is empty.

    Attributes:
        subtopologies: int32 column, shape (tasks,), read-only.
        partitions: int32 column, shape (tasks,), read-only.
        sums: int64 column, shape (tasks,), read-only.
        names: topology name or ``None`` per task; ``None`` instead of the tuple if no task has one.
    """

    __slots__ = ("_hash", "_pairs", "_searched", "names", "partitions", "subtopologies", "sums")

    _hash: int
    _pairs: tuple[tuple[TaskId, int], ...] | None  # of a few tasks, made when first iterated
    _searched: Int64Column | None  # keys of the tasks, made at the first search
    names: tuple[str | None, ...] | None
    partitions: Int32Column
    subtopologies: Int32Column
    sums: Int64Column

    def __init__(self) -> None:
        empty = np.empty(0, np.int32)
        self._fill(empty, empty, np.empty(0, np.int64), None)

    @classmethod
    def from_mapping(cls, sums: Mapping[TaskId, int]) -> "TaskOffsetSums":
        """Columns of a mapping by task; ``EncodeError`` for numbers out of range."""
        if not sums:
            return EMPTY
        if len(sums) <= FEW_TASKS and all(map(_is_plain, sums.items())):
            pairs = tuple(sorted(sums.items()))
            columns = cls.from_ascending(
                np.array([task.subtopology for task, _ in pairs], np.int32),
                np.array([task.partition for task, _ in pairs], np.int32),
                np.array([offset_sum for _, offset_sum in pairs], np.int64),
            )
            columns._pairs = pairs  # noqa: SLF001 a value of this very class
            return columns
        subtopologies, partitions, names = zip(*sums, strict=True)
        return cls.from_columns(subtopologies, partitions, tuple(sums.values()), names)

    @classmethod
    def from_columns(
        cls,
        subtopologies: npt.ArrayLike,
        partitions: npt.ArrayLike,
        sums: npt.ArrayLike,
        names: Sequence[str | None] | None = None,
    ) -> "TaskOffsetSums":
        """The value of three equally long integer columns, in any order, duplicates allowed.

        Arrays of the right type are kept, not copied: do not write to them afterwards.
        ``EncodeError`` for numbers out of range or columns of unequal length.
        """
        subs = _column("task_offset_sums.subtopology", subtopologies, np.dtype(np.int32))
        parts = _column("task_offset_sums.partition", partitions, np.dtype(np.int32))
        totals = _column("task_offset_sums.offset_sum", sums, np.dtype(np.int64))
        lengths = {len(subs), len(parts), len(totals)}
        if names is not None:
            names = tuple(name or None for name in names)
            lengths.add(len(names))
        if len(lengths) != 1:
            reason = "give every column one entry per task"
            raise EncodeError("task_offset_sums", sorted(lengths), None, reason)
        order: Any = None
        if names is not None and any(names):
            order = _order_of_names(_keys(subs, parts), names)
            names = tuple(names[index] for index in order)
        elif not _are_ascending(subs, parts):
            order = _order_of_keys(_keys(subs, parts))
        if order is not None:
            subs, parts, totals = subs[order], parts[order], totals[order]
        return cls.from_ascending(subs, parts, totals, names)

    @classmethod
    def from_ascending(
        cls,
        subtopologies: Int32Column,
        partitions: Int32Column,
        sums: Int64Column,
        names: tuple[str | None, ...] | None = None,
    ) -> "TaskOffsetSums":
        """The value of columns of the right types with strictly ascending tasks, unchecked."""
        columns = cls.__new__(cls)
        named = names if names is not None and any(names) else None
        columns._fill(subtopologies, partitions, sums, named)  # noqa: SLF001 of this very class
        return columns

    def _fill(
        self,
        subtopologies: Int32Column,
        partitions: Int32Column,
        sums: Int64Column,
        names: tuple[str | None, ...] | None,
    ) -> None:
        for column in (subtopologies, partitions, sums):
            column.flags.writeable = False
        self._searched, self._pairs, self._hash = None, None, 0
        self.subtopologies, self.partitions, self.sums = subtopologies, partitions, sums
        self.names = names

    def __len__(self) -> int:
        return len(self.sums)

    def __iter__(self) -> Iterator[tuple[TaskId, int]]:
        if self._pairs is not None:
            return iter(self._pairs)
        pairs = zip(self.tasks(), self.sums.tolist(), strict=True)
        if len(self) > FEW_TASKS:
            return pairs
        self._pairs = tuple(pairs)
        return iter(self._pairs)

    def __contains__(self, task: object) -> bool:
        return isinstance(task, TaskId) and self.get(task) is not None

    def tasks(self) -> Iterator[TaskId]:
        """The tasks, in order."""
        names: Any = repeat(None) if self.names is None else self.names
        return map(TaskId, self.subtopologies.tolist(), self.partitions.tolist(), names)

    def get(self, task: TaskId) -> int | None:
        """Offset sum of a task, ``None`` if it is missing; in logarithmic time."""
        if self._searched is None:
            self._searched = _keys(self.subtopologies, self.partitions)
        keys = self._searched
        key = (task.subtopology << 32) + task.partition + 2**31
        index = int(np.searchsorted(keys, key))
        name = task.topology_name or None
        while index < len(self) and keys[index] == key:
            if (None if self.names is None else self.names[index]) == name:
                return int(self.sums[index])
            index += 1
        return None

    def running(self) -> "TaskOffsetSums":
        """The tasks that are active and running on the member (offset sum -2)."""
        return self.only(self.sums == RUNNING)

    def not_running(self) -> "TaskOffsetSums":
        """The other tasks: standbys, warm-ups, state left on disk."""
        return self.only(self.sums != RUNNING)

    def only(self, chosen: npt.NDArray[np.bool_]) -> "TaskOffsetSums":
        """The tasks for which `chosen` (bool, one entry per task) is true."""
        names = self.names
        if names is not None:
            names = tuple(names[index] for index in np.flatnonzero(chosen).tolist())
        return TaskOffsetSums.from_ascending(
            self.subtopologies[chosen], self.partitions[chosen], self.sums[chosen], names
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskOffsetSums):
            return NotImplemented
        if self._pairs is not None and other._pairs is not None and self.names == other.names:
            return self._pairs == other._pairs
        return (
            len(self) == len(other)
            and self.names == other.names
            and bool((self.subtopologies == other.subtopologies).all())
            and bool((self.partitions == other.partitions).all())
            and bool((self.sums == other.sums).all())
        )

    def __hash__(self) -> int:
        if self._hash == 0:
            columns = (self.subtopologies, self.partitions, self.sums)
            self._hash = hash((*(column.tobytes() for column in columns), self.names))
        return self._hash

    def __repr__(self) -> str:
        if len(self) > _SHOWN:
            return f"TaskOffsetSums({len(self)} tasks)"
        return f"TaskOffsetSums({', '.join(f'{task}: {total}' for task, total in self)})"

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self.subtopologies, self.partitions, self.sums, self.names)
        return (TaskOffsetSums.from_columns, arguments)


def _is_plain(pair: tuple[TaskId, int]) -> bool:
    """Whether a task has no name, and its numbers are in range: the usual case."""
    task, offset_sum = pair
    return (
        type(task) is TaskId
        and task.topology_name is None
        and type(task.subtopology) is type(task.partition) is type(offset_sum) is int
        and -(2**31) <= task.subtopology < 2**31
        and -(2**31) <= task.partition < 2**31
        and -(2**63) <= offset_sum < 2**63
    )


def _column(field: str, values: npt.ArrayLike, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    column = np.asarray(values)
    if column.dtype == dtype and column.ndim == 1:
        return column
    if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
        reason = f"give integers that fit {dtype}, one per task"
        raise EncodeError(field, values, None, reason)
    limits = np.iinfo(dtype)
    if column.size and (int(column.min()) < limits.min or int(column.max()) > limits.max):
        reason = f"each must lie between {limits.min} and {limits.max}"
        raise EncodeError(field, values, None, reason)
    return column.astype(dtype)


def _are_ascending(subtopologies: Int32Column, partitions: Int32Column) -> bool:
    """Whether the tasks ascend strictly; checked without keys, as this is the usual case."""
    after, before = subtopologies[1:], subtopologies[:-1]
    ascends = (after > before) | ((after == before) & (partitions[1:] > partitions[:-1]))
    return bool(ascends.all())


def _keys(subtopologies: Int32Column, partitions: Int32Column) -> Int64Column:
    """One number per task, in the order of (subtopology, partition), also for negative ones."""
    keys = subtopologies.astype(np.int64) << 32
    keys += partitions
    keys += _HALF
    return keys


def _order_of_keys(keys: Int64Column) -> npt.NDArray[np.intp]:
    """Positions that sort the keys; of equal keys the last is kept."""
    order = np.argsort(keys, kind="stable")
    placed = keys[order]
    kept: npt.NDArray[np.intp] = order[np.append(placed[1:] != placed[:-1], True)]
    return kept


def _order_of_names(keys: Int64Column, names: Sequence[str | None]) -> list[int]:
    """As ``_order_of_keys`` for tasks with names; tasks without a name first."""
    last: dict[tuple[int, str], int] = {}
    for index, (key, name) in enumerate(zip(keys.tolist(), names, strict=True)):
        last[key, name or ""] = index
    return [last[place] for place in sorted(last)]


EMPTY = TaskOffsetSums()
"""No tasks at all."""
