"""Java's PriorityQueue and HashMap, with the same order of elements.

In Kafka two movements of one task to two clients compare as equal, so the internal moves of the
heap decide which one is first. `heapq` moves elements in another order.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from encoding import TaskId

T = TypeVar("T")


class JavaQueue(Generic[T]):
    """A binary heap of (key, value) that returns equal keys in Java's order."""

    def __init__(self, items: Iterable[tuple[Any, T]] = ()) -> None:
        self._heap: list[tuple[Any, T]] = []
        for key, value in items:
            self.offer(key, value)

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, key: Any, value: T) -> None:
        """Add a value with its key."""
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
        """Remove and return the value with the smallest key."""
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
# HashMap: a bucket with more keys becomes a tree, or doubles a table with fewer buckets.
_BUCKET_MAX = 8
_TREES_FROM = 64


def _java_string_hash(text: str) -> int:
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for place in range(0, len(data), 2):
        value = (value * 31 + (data[place] << 8) + data[place + 1]) & _MASK
    return value


def string_map_order(keys: Sequence[str], *, capacity: int = 16) -> list[str]:
    """The keys in the iteration order of a HashMap of strings, filled in the given order.

    Equal to Java's while no bucket has nine keys in a table of 64 buckets or more, where a bucket
    becomes a tree. Random ids do not come near that.

    Args:
        keys: all different.
        capacity: the constructor's initial capacity, as `new HashMap<>(capacity)`.
    """
    size = 1
    while size < capacity:
        size *= 2
    hashes = [(value := _java_string_hash(key)) ^ (value >> 16) for key in keys]
    in_buckets: Counter[int] = Counter()
    for count, value in enumerate(hashes, start=1):
        in_buckets[value & (size - 1)] += 1
        is_long = in_buckets[value & (size - 1)] > _BUCKET_MAX and size < _TREES_FROM
        # Two ifs in Java: a long bucket doubles a small table, and so does one key too many.
        for must_grow in (is_long, count > (size * 2 if is_long else size) * 3 // 4):
            if must_grow:
                size *= 2
                in_buckets = Counter(other & (size - 1) for other in hashes[:count])
    places = sorted(range(len(keys)), key=lambda place: hashes[place] & (size - 1))
    return [keys[place] for place in places]


def computed_map_order(keys: Iterable[str], *, capacity: int = 16) -> list[str]:
    """The keys in the iteration order of a HashMap of strings filled by `computeIfAbsent`.

    That method adds a key at the head of its bucket, where `put` adds it at the end, and doubles
    the table before the call that follows the key too many. Trees: see `string_map_order`.

    Args:
        keys: one for each call, repeats included.
        capacity: the constructor's initial capacity.
    """
    size = 1
    while size < capacity:
        size *= 2
    table: list[list[tuple[int, str]]] = [[] for _ in range(size)]
    count = 0

    def doubled() -> list[list[tuple[int, str]]]:
        parts = 2 * len(table)
        return [
            [row for row in table[place & (len(table) - 1)] if row[0] & (parts - 1) == place]
            for place in range(parts)
        ]

    for key in keys:
        if count > len(table) * 3 // 4:
            table = doubled()
        value = _java_string_hash(key)
        row = (value ^ (value >> 16), key)
        bucket = table[row[0] & (len(table) - 1)]
        if row not in bucket:
            bucket.insert(0, row)
            count += 1
            if len(bucket) >= _BUCKET_MAX and len(table) < _TREES_FROM:
                table = doubled()
    return [key for bucket in table for _, key in bucket]


def _task_hash(task: TaskId) -> int:
    """The bits of `TaskId.hashCode()` that HashMap uses, unsigned."""
    name = 0 if task.topology_name is None else _java_string_hash(task.topology_name)
    value = 1
    for part in (task.subtopology, task.partition, name):
        value = (value * 31 + part) & _MASK
    return value ^ (value >> 16)


def hash_map_order(tasks: Sequence[TaskId]) -> list[int]:
    """Indices of the tasks in the iteration order of a HashMap filled in the given order.

    The table doubles when it is more than three quarters full. Within a bucket the order is that of
    insertion, also in buckets of eight and more, which become trees.
    """
    size = 16
    while len(tasks) > size * 3 // 4:
        size *= 2
    return sorted(range(len(tasks)), key=lambda place: _task_hash(tasks[place]) & (size - 1))
