"""Which host serves what, for interactive queries: Kafka's host maps, from a view of the group."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from assignor.topology import Subtopology
from encoding import (
    HostInfo,
    PartitionsByHost,
    TopicPartition,
    View,
)

Owners = npt.NDArray[np.int32]
HostMap = Mapping[HostInfo, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Partitions by the host that serves them, actively and as standby."""

    active: HostMap = field(default_factory=PartitionsByHost)
    standby: HostMap = field(default_factory=PartitionsByHost)


def input_partitions(
    subtopology: Subtopology, partition: int, partition_counts: Mapping[str, int]
) -> tuple[TopicPartition, ...]:
    """Return what a task reads: its partition of every source topic that has it."""
    return tuple(
        TopicPartition(topic, partition)
        for topic in subtopology.source_topics
        if partition < partition_counts.get(topic, 0)
    )


def routing_of(
    view: View, subtopologies: Iterable[Subtopology], partition_counts: Mapping[str, int]
) -> Routing:
    """Return Kafka's two host maps, derived from a view and the topology.

    The maps read the view's columns when they are asked: most members never route a query, and a
    view may list far more copies than a member could turn into objects between two polls.

    Args:
        view: whose sizes are those of the topology.
        subtopologies: of the topology.
        partition_counts: source topic -> partitions.
    """
    by_id = {subtopology.id: subtopology for subtopology in subtopologies}
    inputs = _TaskInputs(
        starts=tuple(accumulate(view.sizes, initial=0)),
        subtopologies=tuple(by_id.get(number) for number in range(len(view.sizes))),
        counts=partition_counts,
    )
    return Routing(
        active=ServedByHost(view.hosts, view.active[None, :], inputs),
        standby=ServedByHost(view.hosts, view.standbys, inputs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskInputs:
    """Input partitions of the tasks of a view, by the view's numbers of tasks.

    Attributes:
        starts: number of each subtopology's first task, and the number of all tasks at the end.
        subtopologies: by id; None where this topology has none.
        counts: source topic -> partitions.
    """

    starts: tuple[int, ...]
    subtopologies: tuple[Subtopology | None, ...]
    counts: Mapping[str, int]

    def of(self, numbers: Iterable[int]) -> tuple[TopicPartition, ...]:
        """Return the input partitions of tasks, sorted."""
        found: list[TopicPartition] = []
        for number in numbers:
            place = bisect_right(self.starts, number) - 1
            part = self.subtopologies[place]
            if part is not None:
                found += input_partitions(part, number - self.starts[place], self.counts)
        return tuple(sorted(found))

    def number_of(self, wanted: TopicPartition) -> int | None:
        """Return the number of the task that reads a partition, or None."""
        if not 0 <= wanted.partition < self.counts.get(wanted.topic, 0):
            return None
        for part in self.subtopologies:
            if part is not None and wanted.topic in part.source_topics:
                return self.starts[part.id] + wanted.partition
        return None


class ServedByHost(Mapping[HostInfo, tuple[TopicPartition, ...]]):
    """One of Kafka's host maps, read from a view's columns on request."""

    def __init__(self, hosts: tuple[HostInfo, ...], owners: Owners, inputs: _TaskInputs) -> None:
        self._hosts, self._owners, self._inputs = hosts, owners, inputs

    def __getitem__(self, host: HostInfo) -> tuple[TopicPartition, ...]:
        place = self._places[host]
        start, stop = self._edges[place : place + 2].tolist()
        numbers = np.unique(self._order[start:stop] % max(1, self._owners.shape[1]))
        return self._inputs.of(numbers.tolist())

    def __contains__(self, host: object) -> bool:
        return host in self._places

    def __iter__(self) -> Iterator[HostInfo]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    def hosts_of(self, wanted: TopicPartition) -> tuple[HostInfo, ...]:
        """Return the hosts that serve a partition, sorted; reads the copies of one task only."""
        number = self._inputs.number_of(wanted)
        if number is None or number >= self._owners.shape[1]:
            return ()
        places = {place for place in self._owners[:, number].tolist() if place >= 0}
        return tuple(self._hosts[place] for place in sorted(places))

    @cached_property
    def _places(self) -> Mapping[HostInfo, int]:
        return {host: place for place, host in enumerate(self._hosts)}

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        """Positions in the columns, by host; those without a host first."""
        order: npt.NDArray[np.int64] = np.argsort(self._owners, axis=None, kind="stable")
        return order

    @cached_property
    def _edges(self) -> npt.NDArray[np.int64]:
        """Where each host begins in `_order`, and the end of the last one."""
        owners = self._owners.ravel()[self._order]
        return np.searchsorted(owners, np.arange(len(self._hosts) + 1)).astype(np.int64)
