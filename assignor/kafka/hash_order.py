"""The order in which a Java HashMap walks task ids, where Kafka's decisions follow it."""

from collections.abc import Sequence

from encoding import TaskId

_MASK = 0xFFFFFFFF


def _java_string_hash(text: str) -> int:
    value = 0
    data = text.encode("utf-16-be")
    for place in range(0, len(data), 2):
        value = (value * 31 + (data[place] << 8) + data[place + 1]) & _MASK
    return value


def _task_hash(task: TaskId) -> int:
    """`TaskId.hashCode()`, spread as HashMap does, unsigned."""
    name = 0 if task.topology_name is None else _java_string_hash(task.topology_name)
    value = 1
    for part in (task.subtopology, task.partition, name):
        value = (value * 31 + part) & _MASK
    return value ^ (value >> 16)


def hash_map_order(tasks: Sequence[TaskId]) -> list[int]:
    """Places of the tasks in the order of a HashMap that they were put into one after another.

    The table doubles when it is more than three quarters full; within a bucket the order is that of
    insertion (buckets of eight and more, which become trees, keep it as well).
    """
    size = 16
    while len(tasks) > size * 3 // 4:
        size *= 2
    return sorted(range(len(tasks)), key=lambda place: _task_hash(tasks[place]) & (size - 1))
