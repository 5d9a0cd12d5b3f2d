"""The view: which host runs which task, for interactive queries, as columns of integers.

Kafka's host maps repeat topic names and partitions per host, in every member's assignment. A view
has one host number per task: a task's number is its position in (subtopology, partition) order, a
host's its position in the sorted host table; partitions follow from the topology. `codec.py` writes
a view in full, `delta.py` relative to an older one.

Epoch and checksum together identify a view: two leaders may give one epoch to different views.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from encoding.primitives import EncodeError, HostInfo, PartitionsByHost, TopicPartition
from encoding.view.bits import Owners

HOST_BYTES_MAX = 255
"""Longest host name in bytes (DNS: 253); limits the size of a decoded host table."""

STANDBY_RANKS_MAX = 32
"""Most standby copies of one task in a view; limits what a delta may allocate."""

HOSTS_MAX = 2**14
"""Most hosts of a view; a group has fewer members, because one record holds their subscriptions."""

CELLS_MAX = 2**24
"""Most owners of a view that is read, (1 + R) x T; limits what a series of deltas may allocate."""

NO_HOST = -1
_EPOCH_MAX = 2**63 - 1
_SIZE_MAX = 2**31 - 1
_PORT_MAX = 65_535
_NUMBERS = Struct(">qqqq")
_HOST = Struct(">Hi")


class ViewReference(NamedTuple):
    """Identity of a view: epoch and checksum."""

    epoch: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """Which host runs which task.

    Two clients with the same endpoint are one host. A task whose owner has no endpoint has no host.

    Attributes:
        epoch: 0 to 2**63 - 1; the leader increments it when the content changes.
        sizes: tasks of each subtopology, by its number; T tasks in total.
        hosts: endpoints, sorted, each once.
        active: int32 [T], index into `hosts` of each task's active owner, -1 for none.
        standbys: int32 [R, T], the same for standby copies, warm-ups included; the order of a
            task's ranks has no meaning.

    Raises:
        EncodeError: an invalid shape, order or number.
    """

    epoch: int
    sizes: tuple[int, ...]
    hosts: tuple[HostInfo, ...]
    active: Owners
    standbys: Owners

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_hosts(self.hosts)
        tasks = sum(self.sizes)
        for name, dimensions in (("active", 1), ("standbys", 2)):
            column = np.asarray(getattr(self, name))
            if column.ndim != dimensions or column.shape[-1] != tasks or column.dtype.kind != "i":
                reason = f"give one integer for each of the {tasks} tasks"
                raise EncodeError(f"view.{name}", column.shape, None, reason)
            low, high = column.min(initial=NO_HOST), column.max(initial=NO_HOST)
            if low < NO_HOST or high >= len(self.hosts):
                reason = f"an owner is -1 or one of the {len(self.hosts)} hosts"
                raise EncodeError(f"view.{name}", (int(low), int(high)), None, reason)
            column = column.astype(np.int32)  # a copy, which callers cannot change
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if self.ranks > min(STANDBY_RANKS_MAX, len(self.hosts)):
            reason = f"a task has at most {STANDBY_RANKS_MAX} standbys, each on another host"
            raise EncodeError("view.standbys", self.ranks, None, reason)

    @property
    def tasks(self) -> int:
        """T, the number of tasks."""
        return len(self.active)

    @property
    def ranks(self) -> int:
        """R, the largest number of standby copies of a task."""
        return len(self.standbys)

    def owners(self) -> Owners:
        """int32 [1 + R, T]: the active owners, then those of each standby rank."""
        return np.vstack((self.active[None, :], self.standbys))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return (
            (self.epoch, self.sizes, self.hosts) == (other.epoch, other.sizes, other.hosts)
            and np.array_equal(self.active, other.active)
            and np.array_equal(self.standbys, other.standbys)
        )

    def __hash__(self) -> int:
        return hash((self.epoch, self.sizes, self.hosts, self.active.tobytes()))


def view_checksum(view: View) -> int:
    """CRC-32 of a view's content and epoch, independent of any layout."""
    numbers = (view.epoch, len(view.sizes), len(view.hosts), view.ranks)
    checksum = crc32(_NUMBERS.pack(*numbers))
    checksum = crc32(np.array(view.sizes, ">i8").tobytes(), checksum)
    names = bytearray()
    for host, port in view.hosts:
        text = host.encode()
        names += _HOST.pack(len(text), port)
        names += text
    checksum = crc32(names, checksum)
    checksum = crc32(view.active.astype(">i4").tobytes(), checksum)
    return crc32(view.standbys.astype(">i4").tobytes(), checksum)


def view_reference(view: View) -> ViewReference:
    """Epoch and checksum of a view."""
    return ViewReference(view.epoch, view_checksum(view))


def is_viewable(host: HostInfo) -> bool:
    """Whether a view can list this endpoint: a name of 1 to 255 bytes, and a valid port."""
    try:
        size = len(host.host.encode())
    except UnicodeEncodeError:
        return False
    return 0 < size <= HOST_BYTES_MAX and 0 <= host.port <= _PORT_MAX


def build_view(
    *,
    epoch: int,
    sizes: Sequence[int],
    active: Mapping[HostInfo, Iterable[int]],
    standby: Mapping[HostInfo, Iterable[int]],
    previous: View | None = None,
) -> View:
    """A view from task numbers per host; the order of the input does not matter.

    These are left out: hosts that no view can list (`is_viewable`), hosts beyond `HOSTS_MAX`, and
    standby copies of a task beyond `STANDBY_RANKS_MAX`.

    Args:
        epoch: of the new view.
        sizes: tasks of each subtopology.
        active: task numbers that run on each host.
        standby: task numbers of the standby copies on each host, warm-ups included. The view lists
            the hosts of both mappings.
        previous: the previous view, if known; standby copies that stay keep their rank, which makes
            deltas small.

    Raises:
        EncodeError: a task number that does not exist, or a task that runs on two hosts.
    """
    viewable = sorted(HostInfo(*host) for host in {*active, *standby} if is_viewable(host))
    hosts = tuple(viewable[:HOSTS_MAX])
    index_by_host = {host: index for index, host in enumerate(hosts)}
    tasks = sum(sizes)
    owner = np.full(tasks, NO_HOST, np.int32)
    task, host_of_task = _pairs(active, index_by_host, tasks)
    owner[task] = host_of_task
    if not np.array_equal(owner[task], host_of_task):
        twice = int(task[owner[task] != host_of_task][0])
        reason = "a task has one active owner; merge the clients of one host first"
        raise EncodeError("view.active", twice, None, reason)
    standbys = _ranked(*_pairs(standby, index_by_host, tasks), tasks)
    if previous is not None and len(standbys) > 1:
        standbys = _keep_ranks(standbys, _carried_standbys(previous, sizes, index_by_host, tasks))
    return View(epoch=epoch, sizes=tuple(sizes), hosts=hosts, active=owner, standbys=standbys)


def partitions_by_host(
    view: View, partitions_by_task_number: Sequence[Iterable[TopicPartition]]
) -> tuple[PartitionsByHost, PartitionsByHost]:
    """The two host maps of Kafka's assignments: partitions by host, of active and standby tasks.

    Args:
        view: of T tasks.
        partitions_by_task_number: input partitions of each of the T tasks, from the topology.

    Raises:
        EncodeError: the view has another number of tasks than the topology.
    """
    if len(partitions_by_task_number) != view.tasks:
        reason = f"the topology has {len(partitions_by_task_number)} tasks; wait for the next view"
        raise EncodeError("view.tasks", view.tasks, None, reason)
    active = _served(view.active[None, :], view.hosts, partitions_by_task_number)
    return active, _served(view.standbys, view.hosts, partitions_by_task_number)


def _served(
    owners: Owners, hosts: tuple[HostInfo, ...], partitions: Sequence[Iterable[TopicPartition]]
) -> PartitionsByHost:
    served: list[list[TopicPartition]] = [[] for _ in hosts]
    for rank in owners.tolist():
        for host, task_partitions in zip(rank, partitions, strict=True):
            if host != NO_HOST:
                served[host].extend(task_partitions)
    return PartitionsByHost(zip(hosts, served, strict=True))


def _check_numbers(view: View) -> None:
    if not 0 <= view.epoch <= _EPOCH_MAX:
        raise EncodeError("view.epoch", view.epoch, None, "an epoch is 0 to 2**63 - 1")
    if any(not 0 <= size <= _SIZE_MAX for size in view.sizes) or sum(view.sizes) > _SIZE_MAX:
        reason = "sizes are 0 or more, and 2**31 - 1 at most together"
        raise EncodeError("view.sizes", view.sizes, None, reason)


def _check_hosts(hosts: tuple[HostInfo, ...]) -> None:
    if len(hosts) > HOSTS_MAX:
        raise EncodeError("view.hosts", len(hosts), None, f"a view has at most {HOSTS_MAX} hosts")
    if any(left >= right for left, right in pairwise(hosts)):
        raise EncodeError("view.hosts", hosts, None, "sort the hosts and list each once")
    for host in hosts:
        if not is_viewable(host):
            reason = f"a host is 1 to {HOST_BYTES_MAX} bytes of text with a port up to {_PORT_MAX}"
            raise EncodeError("view.hosts", host, None, reason)


def _pairs(
    tasks_by_host: Mapping[HostInfo, Iterable[int]], index_by_host: Mapping[HostInfo, int], top: int
) -> tuple[npt.NDArray[np.int64], Owners]:
    """Columns (task, host index), sorted, each pair once."""
    pairs = sorted(
        {
            (task, index_by_host[host])
            for host, tasks in tasks_by_host.items()
            if host in index_by_host
            for task in tasks
        }
    )
    table = np.array(pairs, np.int64).reshape(-1, 2)
    if pairs and (pairs[0][0] < 0 or pairs[-1][0] >= top):
        raise EncodeError("view task number", (pairs[0][0], pairs[-1][0]), None, f"T is {top}")
    return table[:, 0], table[:, 1].astype(np.int32)


def _ranked(task: npt.NDArray[np.int64], host: Owners, tasks: int) -> Owners:
    """Standby pairs as columns [R, T]: the n-th host of a task gets rank n."""
    rank = np.arange(len(task)) - np.searchsorted(task, task)
    ranks = min(int(rank.max(initial=-1)) + 1, STANDBY_RANKS_MAX)
    standbys: Owners = np.full((ranks, tasks), NO_HOST, np.int32)
    kept = rank < ranks
    standbys[rank[kept], task[kept]] = host[kept]
    return standbys


def _carried_standbys(
    previous: View, sizes: Sequence[int], index_by_host: Mapping[HostInfo, int], tasks: int
) -> Owners:
    """Standby columns of the previous view, with the new task and host numbers."""
    hosts = np.array([index_by_host.get(host, NO_HOST) for host in previous.hosts] + [NO_HOST])
    return carry(hosts[previous.standbys].astype(np.int32), previous.sizes, sizes, tasks)


def carry(owners: Owners, old: Sequence[int], new: Sequence[int], tasks: int) -> Owners:
    """Columns [R, T] for other sizes: tasks that still exist keep their entry, new ones get -1."""
    if tuple(old) == tuple(new):
        return owners.copy()
    carried: Owners = np.full((len(owners), tasks), NO_HOST, np.int32)
    source = target = 0
    for old_size, new_size in zip(old, new, strict=False):
        both = min(old_size, new_size)
        carried[:, target : target + both] = owners[:, source : source + both]
        source += old_size
        target += new_size
    return carried


def _keep_ranks(standbys: Owners, before: Owners) -> Owners:
    """The same copies of each task, reordered so that unchanged ones keep their old rank."""
    ranks = len(standbys)
    result = np.full_like(standbys, NO_HOST)
    for rank in range(min(ranks, len(before))):
        stayed = (before[rank] != NO_HOST) & (standbys == before[rank]).any(axis=0)
        stayed &= ~(result == before[rank]).any(axis=0)
        result[rank, stayed] = before[rank, stayed]
    for rank in range(ranks):
        copy = standbys[rank]
        unplaced = (copy != NO_HOST) & ~(result == copy).any(axis=0)
        for place in range(ranks):
            free = unplaced & (result[place] == NO_HOST)
            result[place, free] = copy[free]
            unplaced &= ~free
    return result
