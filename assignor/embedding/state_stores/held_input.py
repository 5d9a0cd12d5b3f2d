"""Input records that are fetched and not processed yet, because their task is not restored."""

import heapq
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

    def hold(self, batch: Mapping[Any, Sequence[Any]]) -> None:
        """Keep the records of a batch: client's partition -> records.

        Raises:
            TopologyError: no source of the topology reads the topic.
        """
        for partition, records in batch.items():
            if records:
                task = self._task_of(partition.topic, partition.partition)
                self._records.setdefault(task, {}).setdefault(partition, []).extend(records)

    @property
    def tasks(self) -> frozenset[TaskId]:
        """The tasks with records."""
        return frozenset(self._records)

    def keep_only(self, tasks: Collection[TaskId]) -> None:
        """Drop the records of all other tasks."""
        self._records = {task: held for task, held in self._records.items() if task in tasks}

    def drop(self, task: TaskId) -> None:
        """Drop the records of a task: its next owner fetches them again."""
        self._records.pop(task, None)

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

    def next_offsets(self, task: TaskId) -> dict[Any, int]:
        """Return client's partition -> offset behind the last record."""
        held = self._records.get(task, {})
        return {partition: offset_of(records[-1]) + 1 for partition, records in held.items()}


def offset_of(record: Any) -> int:
    """Return the offset of a client's record."""
    offset = record.offset
    return int(offset() if callable(offset) else offset)


def _time_of(record: Any) -> int:
    time_ms = record.timestamp
    return int(time_ms()[1] if callable(time_ms) else time_ms)
