"""Input records that are fetched and not processed yet, because their task is not restored.

The client's position is behind them, so they are kept until they are processed or no assignment has
their task: a client may return a partition at the position that it had before a rebalance.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from encoding import TaskId, TopicPartition


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

    def hold(self, batch: Mapping[Any, Sequence[Any]]) -> None:
        """Keep the records of a batch: client's partition -> records.

        A batch of a loop of this package notes it. One that is not noted can be held again.

        Raises:
            TopologyError: no source of the topology reads the topic.
        """
        for partition, records in batch.items():
            if records:
                task = self._task_of(partition.topic, partition.partition)
                held = self._records.setdefault(task, {}).setdefault(partition, [])
                # A client that begins again at the committed offset returns some of them again.
                first = offset_of(records[0])
                while held and offset_of(held[-1]) >= first:
                    held.pop()
                held.extend(records)
        getattr(batch, "held", lambda: None)()

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

    def unread(self) -> dict[Any, int]:
        """Return client's partition -> first offset that was dropped since the last call."""
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
        return heapq.merge(*rows, key=lambda row: _time_of(row[2]))

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


def offset_of(record: Any) -> int:
    """Return the offset of a client's record."""
    offset = record.offset
    return int(offset() if callable(offset) else offset)


def _time_of(record: Any) -> int:
    time_ms = record.timestamp
    return int(time_ms()[1] if callable(time_ms) else time_ms)
