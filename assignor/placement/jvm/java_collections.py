"""Java's PriorityQueue, as far as the order of equal elements goes.

Two movements of one task to two clients compare as equal in Kafka, so which one is served first is
decided by how that heap moves its elements. `heapq` moves them in another order.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from encoding import TaskId

T = TypeVar("T")


class JavaQueue(Generic[T]):
    """A binary heap of (key, value); equal keys leave in the order that Java's would."""

    def __init__(self, items: Iterable[tuple[Any, T]] = ()) -> None:
        self._heap: list[tuple[Any, T]] = []
        for key, value in items:
            self.offer(key, value)

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, key: Any, value: T) -> None:
        """Add an element."""
        heap = self._heap
        heap.append((key, value))
        place = len(heap) - 1
        while place > 0:
            parent = (place - 1) >> 1
            if key >= heap[parent][0]:
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = (key, value)

    def poll(self) -> T:
        """Remove and return the value of a smallest key."""
        heap = self._heap
        first = heap[0]
        last = heap.pop()
        size = len(heap)
        place = 0
        while place < size >> 1:
            child = 2 * place + 1
            if child + 1 < size and heap[child][0] > heap[child + 1][0]:
                child += 1
            if last[0] <= heap[child][0]:
                break
            heap[place] = heap[child]
            place = child
        if size:
            heap[place] = last
        return first[1]


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
