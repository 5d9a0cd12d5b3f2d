"""Input records that are fetched and not processed yet, because their task is not restored.

The client's position is behind them, so they are kept until they are processed or no assignment has
their task: a client may return a partition at the position that it had before a rebalance.

Records that have taken too long are held back until all others are committed.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from assignor.embedding.bad_records import time_of
from assignor.logs import line_logger
from encoding import TaskId, TopicPartition

_log = line_logger(__name__)
# Calls that hold a slow record back at most, however much else there is.
_MAX_WAITS: Final = 10


class HeldInput:
    """Records by task and partition, in the order of their offsets.

    Records are those of kafka-python and aiokafka, with attributes `offset` and `timestamp`, or
    those of confluent-kafka, which has methods of these names.

    Args:
        task_of: topic and partition -> the task that reads it.
    """

    def __init__(self, task_of: Callable[[str, int], TaskId]) -> None:
        self._task_of = task_of
        self._records: dict[TaskId, dict[Any, list[Any]]] = {}
        self._unread: dict[Any, int] = {}
        # Makes the client's partition of a topic and a number, as those of its batches.
        self._made: Callable[[TopicPartition], Any] = TopicPartition._make

    def hold(self, batch: Mapping[Any, Sequence[Any]]) -> None:
        """Keep the records of a batch: client's partition -> records.

        A batch of a loop of this package notes it. One that is not noted can be held again. What is
        held from the new position on of a partition that was sought is dropped: it is of a former
        topic, or read again.

        Raises:
            TopologyError: no source of the topology reads the topic.
        """
        positions = getattr(batch, "positions", {})
        for partition in (*batch, *positions)[:1]:
            self._made = getattr(type(partition), "_make", self._made)
        for partition in getattr(batch, "settled", ()):
            if partition in positions and not batch.get(partition):
                self._cut(partition, positions[partition])
        for partition, records in batch.items():
            if records:
                # A client that begins again at the committed offset returns some of them again.
                self._cut(partition, offset_of(records[0]))
                task = self._task_of(partition.topic, partition.partition)
                self._records.setdefault(task, {}).setdefault(partition, []).extend(records)
        getattr(batch, "held", lambda: None)()

    def _cut(self, partition: Any, at: int) -> None:
        """Drop the records of a client's partition from an offset on."""
        task = self._task_of(partition.topic, partition.partition)
        held = self._records.get(task, {})
        records = held.get(partition, [])
        del records[bisect_left(records, at, key=offset_of) :]
        if not records and held.pop(partition, None) is not None and not held:
            del self._records[task]

    @property
    def tasks(self) -> frozenset[TaskId]:
        """The tasks with records."""
        return frozenset(self._records)

    def has(self, task: TaskId, partition: Any) -> bool:
        """Return whether there are records of a client's partition."""
        return partition in self._records.get(task, {})

    @property
    def dropped(self) -> Collection[Any]:
        """The client's partitions that `unread` will return."""
        return self._unread.keys()

    def keep_only(self, tasks: Collection[TaskId]) -> None:
        """Drop the records of all other tasks: the next owner fetches them again."""
        for task in self._records.keys() - tasks:
            for partition, records in self._records.pop(task).items():
                self._unread.setdefault(partition, offset_of(records[0]))

    def read_from(self, partition: TopicPartition, at: int) -> None:
        """Have a partition read from an offset, by `unread`; drop what is held from there on.

        What is held from that offset or a lower one on suffices, with what will follow it.
        """
        key = self._made(partition)
        held = self._records.get(self._task_of(*partition), {}).get(key)
        if not held or offset_of(held[0]) > at:
            self._cut(key, at)
            self._unread[key] = at

    def unread(self) -> dict[Any, int]:
        """Return client's partition -> offset to read on at, of those that changed since the last.

        It is the first offset that was dropped, or that of `read_from`.
        """
        unread, self._unread = self._unread, {}
        return unread

    def of_task(self, task: TaskId) -> Iterator[tuple[TopicPartition, int, Any]]:
        """Yield partition, offset and record; the partitions are merged by time, as in Kafka."""
        rows = [
            [(TopicPartition(key.topic, key.partition), offset_of(found), found) for found in held]
            for key, held in sorted(
                self._records.get(task, {}).items(),
                key=lambda item: (item[0].topic, item[0].partition),
            )
        ]
        if len(rows) == 1:
            return iter(rows[0])
        return heapq.merge(*rows, key=lambda row: time_of(row[2]))

    def finish(self, task: TaskId, next_input: Mapping[TopicPartition, int]) -> dict[Any, int]:
        """Drop the records of a task that are processed; return what can be committed.

        Args:
            task: the task.
            next_input: partition -> first offset that is not processed, by this member or others.

        Returns:
            Client's partition -> offset to commit, where a record was dropped.
        """
        done: dict[Any, int] = {}
        held = self._records.pop(task, {})
        left: dict[Any, list[Any]] = {}
        for key, records in held.items():
            at = next_input.get(TopicPartition(key.topic, key.partition), 0)
            count = bisect_left(records, at, key=offset_of)
            if count:
                done[key] = at
            if count < len(records):
                left[key] = records[count:]
        if left:
            self._records[task] = left
        return done


class SlowRecords:
    """Records that have taken longer than the time between two polls, over calls of `process`.

    The group removes a member while it processes such a record. What is not committed then is
    processed again, by this member or others. So such a record is held back in a call, with those
    behind it. Once a call has left nothing else, the next one has it alone, if all else is
    committed by then.
    """

    def __init__(self) -> None:
        self._offsets: Mapping[TopicPartition, int] = {}
        self._alone: TopicPartition | None = None
        # Partition -> calls that have held its record back, in their order; those of this call.
        self._waits: dict[TopicPartition, int] = {}
        self._held_back: set[TopicPartition] = set()
        self._is_cut_off, self._are_others_done = False, False

    def begin(self, offsets: Mapping[TopicPartition, int], *, are_committed: bool) -> None:
        """Begin a call.

        Args:
            offsets: partition -> offset of a record that has taken too long.
            are_committed: whether all offsets are that earlier calls have returned.
        """
        if self._alone is None:
            self._waits = {p: n for p, n in self._waits.items() if p in self._held_back}
        self._offsets, self._alone, self._held_back = offsets, None, set()
        is_turn = self._are_others_done or max(self._waits.values(), default=0) > _MAX_WAITS
        if self._waits and is_turn and are_committed:
            self._alone = next(iter(self._waits))
            del self._waits[self._alone]
        self._is_cut_off = self._are_others_done = False

    def skips(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether a record, the next one of its partition, is left to a later call."""
        if self._alone is not None:
            return partition != self._alone or offset > self._offsets.get(partition, -1)
        if self._offsets.get(partition) == offset and partition not in self._held_back:
            self._held_back.add(partition)
            self._waits[partition] = self._waits.get(partition, 0) + 1
            if self._waits[partition] == 1:
                _log.info(
                    "%s [%s]: the record at offset %s waits until all others are committed, as it "
                    "has taken longer than the time between two polls",
                    *partition,
                    offset,
                )
        return partition in self._held_back

    def cut_off(self) -> None:
        """Note that the call leaves other records, since it is time to poll."""
        self._is_cut_off = True

    def end(self) -> None:
        """End a call."""
        self._are_others_done = self._alone is None and not self._is_cut_off


def offset_of(record: Any) -> int:
    """Return the offset of a client's record."""
    offset = record.offset
    return int(offset() if callable(offset) else offset)
