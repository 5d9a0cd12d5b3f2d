"""Immutable, sorted mappings of the blobs: by name, by host, by task.

Java writes these from hash maps, in arbitrary order. Here they are sorted when they are built:
equal content compares equal, hashes equally and is written as equal bytes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from encoding.primitives.identifiers import HostInfo, TaskId, TopicPartition, task_order

Value = TypeVar("Value")
AnyKey = TypeVar("AnyKey")
Key = TypeVar("Key", HostInfo, TaskId)
Partitions = tuple[TopicPartition, ...]


class _Sorted(Mapping[AnyKey, Value], Generic[AnyKey, Value]):
    """An immutable mapping over a sorted dict."""

    __slots__ = ("_by_key",)

    _by_key: dict[AnyKey, Value]

    def __getitem__(self, key: AnyKey) -> Value:
        return self._by_key[key]

    def __iter__(self) -> Iterator[AnyKey]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __hash__(self) -> int:
        return hash(tuple(self._by_key.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._by_key})"


class ByName(_Sorted[str, Value]):
    """Values by name, sorted by name: immutable, hashable, equal to an equal dict."""

    __slots__ = ()

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        self._by_key = dict(sorted((values or {}).items()))


class _SortedPartitions(_Sorted[Key, Partitions]):
    __slots__ = ()

    def __init__(self, partitions: Any = ()) -> None:
        pairs = partitions.items() if isinstance(partitions, Mapping) else partitions
        # A dict first: of equal keys the last one wins, as in Kafka's decoders.
        last = {self._normal(key): values for key, values in pairs}
        self._by_key = {key: _sorted(last[key]) for key in sorted(last, key=self._order)}

    @staticmethod
    def _normal(key: Any) -> Key:
        raise NotImplementedError

    @staticmethod
    def _order(key: Any, /) -> Any:
        return key

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _SortedPartitions):
            return self._by_key == other._by_key
        return super().__eq__(other)

    __hash__ = _Sorted.__hash__


class PartitionsByTask(_SortedPartitions[TaskId]):
    """Input partitions of each standby task, sorted."""

    __slots__ = ()

    @staticmethod
    def _normal(key: Any) -> TaskId:
        subtopology, partition, *name = key
        return TaskId(subtopology, partition, (name[0] if name else None) or None)

    _order = staticmethod(task_order)

    @classmethod
    def without_partitions(cls, tasks: Iterable[TaskId]) -> "PartitionsByTask":
        """Tasks without partitions, from sorted and distinct tasks; for native blobs."""
        value = cls()
        value._by_key = dict.fromkeys(tasks, ())
        return value


class PartitionsByHost(_SortedPartitions[HostInfo]):
    """Topic partitions that each host serves, sorted.

    Share one value among the assignments of all members: its bytes are written once per layout and
    kept here, together with the standby map that they were written with.
    """

    __slots__ = ("_written",)

    def __init__(self, partitions: Any = ()) -> None:
        super().__init__(partitions)
        self._written: dict[object, tuple[PartitionsByHost, bytes]] = {}

    @staticmethod
    def _normal(key: Any) -> HostInfo:
        return key if type(key) is HostInfo else HostInfo(*key)

    def written(self, layout: object, standby: "PartitionsByHost") -> bytes | None:
        """Bytes kept for this layout and this standby map (by identity), if any."""
        kept = self._written.get(layout)
        return kept[1] if kept is not None and kept[0] is standby else None

    def keep(self, layout: object, standby: "PartitionsByHost", data: bytes) -> None:
        """Keep the bytes of this layout; they replace older ones."""
        self._written[layout] = (standby, data)

    def __reduce__(self) -> tuple[object, ...]:
        return (PartitionsByHost, (self._by_key,))


def _sorted(partitions: Iterable[TopicPartition]) -> Partitions:
    made = {p if type(p) is TopicPartition else TopicPartition(*p) for p in partitions}
    return tuple(sorted(made))
