"""Fields of native blobs and trailers beyond Kafka's fields.

They are the values of ``Subscription.native`` and ``Assignment.native``. The default of a field
means "not set". Process id, endpoint, tags, offset sums, assigned tasks, error code and next
rebalance are fields of the outer value in every layout.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from encoding.native.schema import EARLIEST_NATIVE_VERSION, native_rows_of
from encoding.native.topology_rows import ReachedRow, SubtopologyRow
from encoding.primitives import EMPTY, ByName, TaskId, TaskOffsetSums, TopicPartition, task_order


class PartitionRange(NamedTuple):
    """Partitions ``start`` to ``stop - 1`` of a topic.

    It is not expanded in memory: six bytes of a peer may name two billion partitions.
    """

    topic: str
    start: int
    stop: int


class PartitionRanges(tuple[PartitionRange, ...]):
    """A tuple of ranges that are sorted and as few as possible."""

    __slots__ = ()


_NO_NAMES: ByName[Any] = ByName()
_NO_RANGES = PartitionRanges()


def partition_ranges(partitions: Iterable[TopicPartition]) -> PartitionRanges:
    """The ranges of some partitions, sorted, as few as possible."""
    ranges = []
    ordered = sorted({(topic, number) for topic, number in partitions})
    for topic, rows in groupby(ordered, key=itemgetter(0)):
        numbers = [number for _, number in rows]
        for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
            adjacent = [number for _, number in run]
            ranges.append(PartitionRange(topic, adjacent[0], adjacent[-1] + 1))
    return PartitionRanges(ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSubscription:
    """Fields of a native member's subscription beyond Kafka's fields.

    ``schema.py`` has the meaning of each; in addition:

    Attributes:
        version: version of the native body: the trailer's, or the used version itself.
        latest_supported_version: the highest native version that the member reads.
        is_readable: false for a trailer that only later readers may read: only the two versions
            are known, the other fields have defaults. Such a value cannot be written.
        sizes: tasks within these sizes take bits on the wire, others bytes.
        subtopologies: ascending; ``None`` is all.
        owned_partitions: as ranges; see ``partition_ranges``.
        reached_versions: sorted by form.
    """

    version: int = EARLIEST_NATIVE_VERSION
    latest_supported_version: int = EARLIEST_NATIVE_VERSION
    is_readable: bool = True
    instance_id: str | None = None
    threads: int = 1
    rack: str | None = None
    sizes: tuple[int, ...] = ()
    fingerprint: bytes = b""
    subtopologies: tuple[int, ...] | None = None
    end_offset_sums: TaskOffsetSums = EMPTY
    owned_partitions: tuple[PartitionRange, ...] = _NO_RANGES
    owned_generation: int = -1
    nonce: int = 0
    feature_ranges: Mapping[str, tuple[int, int]] = _NO_NAMES
    adopted_levels: Mapping[str, int] = _NO_NAMES
    adopted_epoch: int = -1
    view_epoch: int = -1
    view_checksum: int = 0
    pinned_version: int | None = None
    free_disk_bytes: int | None = None
    topology_version: int = 1
    carried: tuple[SubtopologyRow, ...] = ()
    reached_versions: tuple[ReachedRow, ...] = ()

    def __post_init__(self) -> None:
        for name in ("instance_id", "rack"):
            object.__setattr__(self, name, getattr(self, name) or None)
        _normalise_names(self, ("feature_ranges", "adopted_levels"))
        if self.subtopologies is not None:
            object.__setattr__(self, "subtopologies", tuple(sorted(set(self.subtopologies))))
        if not isinstance(self.owned_partitions, PartitionRanges):
            object.__setattr__(self, "owned_partitions", _merged(self.owned_partitions))

    def carries(self, name: str) -> bool:
        """Whether the layout of this version carries the field; otherwise it is not written."""
        return _carries("subscription", self.version, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeAssignment:
    """Fields of a native leader's answer beyond Kafka's fields.

    ``schema.py`` has the meaning of each; in addition:

    Attributes:
        version: version of the native body: the trailer's, or the used version itself.
        commonly_supported_version: second number of the trailer's header.
        is_readable: as in ``NativeSubscription``; always true in a blob without Kafka fields.
        warmup_tasks: sorted (KIP-441).
        partition_counts: to compute the inputs of standby tasks.
        view_full, view_delta, view_reference: one of them at most.
        reached_versions: sorted by form.
    """

    version: int = EARLIEST_NATIVE_VERSION
    commonly_supported_version: int = EARLIEST_NATIVE_VERSION
    is_readable: bool = True
    sizes: tuple[int, ...] = ()
    warmup_tasks: tuple[TaskId, ...] = ()
    partition_counts: Mapping[str, int] = _NO_NAMES
    feature_levels: Mapping[str, int] = _NO_NAMES
    feature_epoch: int = -1
    next_version: int = 0
    subscription_read: bool = True
    view_full: bytes | None = None
    view_delta: bytes | None = None
    view_reference: bytes | None = None
    followup_reason: str | None = None
    numbered_by: tuple[bytes, ...] = ()
    reached_versions: tuple[ReachedRow, ...] = ()
    describe_topology: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "followup_reason", self.followup_reason or None)
        _normalise_names(self, ("partition_counts", "feature_levels"))
        if self.warmup_tasks:
            named = {TaskId(sub, part, name or None) for sub, part, name in self.warmup_tasks}
            object.__setattr__(self, "warmup_tasks", tuple(sorted(named, key=task_order)))

    def carries(self, name: str) -> bool:
        """Whether the layout of this version carries the field; otherwise it is not written."""
        return _carries("assignment", self.version, name)


@cache
def _carries(kind: str, version: int, name: str) -> bool:
    return any(row.name == name for row in native_rows_of(kind, version))


def _normalise_names(value: object, names: tuple[str, ...]) -> None:
    for name in names:
        given = getattr(value, name)
        if not isinstance(given, ByName):
            object.__setattr__(value, name, ByName(given))


def _merged(ranges: Iterable[tuple[str, int, int]]) -> PartitionRanges:
    """The ranges sorted, without empty ones; adjacent and overlapping ranges are merged."""
    merged: list[PartitionRange] = []
    for topic, start, stop in sorted(ranges):
        last = merged[-1] if merged else None
        if stop <= start:
            continue
        if last is not None and last.topic == topic and start <= last.stop:
            merged[-1] = last._replace(stop=max(last.stop, stop))
        else:
            merged.append(PartitionRange(topic, start, stop))
    return PartitionRanges(merged)
