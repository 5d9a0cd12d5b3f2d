"""The group of a problem file, split into members, for `assignor size`.

Nothing is assigned: a client runs the tasks that the file gives it, distributed evenly over its
threads; each thread is one member. Only the joining client, for the size of a delta, is invented.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import numpy as np

from assignor.placement import LAG_UNKNOWN
from assignor.problems import ProblemError, read_problem
from assignor.rebalance import parse_endpoint
from encoding import (
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    HostInfo,
    PartitionsByHost,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    View,
    build_view,
)

SUBTOPOLOGIES_MAX = 2**14
MEMBERS_MAX = 1_000_000
_JOINING = "joining-client"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedClient:
    """One process of the group.

    `active` and `standby` are indexes into `SizedGroup.tasks`, ascending. `sums` are the offset
    sums that the process reports, by task.
    """

    process_id: UUID
    threads: int
    endpoint: str | None
    host: HostInfo | None
    rack: str | None
    tags: Mapping[str, str]
    active: tuple[int, ...]
    standby: tuple[int, ...]
    sums: Mapping[TaskId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedMember:
    """One thread of a client: its tasks, and the offset sums that it reports."""

    client: SizedClient
    number: int
    active: tuple[int, ...]
    standby: tuple[int, ...]
    sums: TaskOffsetSums


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedGroup:
    """A whole group.

    Attributes:
        clients: the processes, sorted by process id.
        tasks: all tasks in (subtopology, partition) order; other fields refer to them by index.
        sizes: number of tasks of each subtopology.
        partitions: input partitions of each task, by index.
        partition_counts: source topic -> number of partitions.
        end_offset_sums: task -> end offset sum, for tasks whose sum is known.
    """

    clients: tuple[SizedClient, ...]
    tasks: tuple[TaskId, ...]
    sizes: tuple[int, ...]
    partitions: tuple[tuple[TopicPartition, ...], ...]
    partition_counts: Mapping[str, int]
    end_offset_sums: Mapping[TaskId, int]

    def members(self) -> Iterator[SizedMember]:
        """Yield one member per thread, in the order of the clients."""
        for client in self.clients:
            yield from _dealt(client, self.tasks)

    def served(self, member: SizedMember) -> list[TopicPartition]:
        """Return the input partitions of a member's active tasks."""
        return [partition for task in member.active for partition in self.partitions[task]]

    def view(self, epoch: int, previous: View | None = None) -> View:
        """Return the routing view of this group in the native encoding."""
        return build_view(
            epoch=epoch,
            sizes=self.sizes,
            active=self._by_host("active"),
            standby=self._by_host("standby"),
            previous=previous,
        )

    def host_maps(self) -> tuple[PartitionsByHost, PartitionsByHost]:
        """Return Kafka's host maps: partitions by host, for active and for standby tasks."""
        active, standby = (
            PartitionsByHost(
                {
                    host: [served for task in tasks for served in self.partitions[task]]
                    for host, tasks in self._by_host(kind).items()
                }
            )
            for kind in ("active", "standby")
        )
        return active, standby

    def with_one_joined(self) -> "SizedGroup":
        """Return the group after an empty client joined and took its fair share of the tasks.

        The new client is the last one. It has the average number of threads, and takes each task
        from the client that then has the most tasks per thread.
        """
        threads = max(1, round(sum(c.threads for c in self.clients) / len(self.clients)))
        joined = SizedClient(
            process_id=uuid5(NAMESPACE_OID, _JOINING),
            threads=threads,
            endpoint=None,
            host=self._free_host(),
            rack=None,
            tags={},
            active=(),
            standby=(),
            sums={},
        )
        share = threads / (threads + sum(client.threads for client in self.clients))
        capacity = [client.threads for client in self.clients]
        active = [list(client.active) for client in self.clients]
        standby = [list(client.standby) for client in self.clients]
        taken = _take(active, capacity, share, frozenset())
        joined = replace(
            joined, active=taken, standby=_take(standby, capacity, share, frozenset(taken))
        )
        stayed = (
            replace(client, active=tuple(tasks), standby=tuple(copies))
            for client, tasks, copies in zip(self.clients, active, standby, strict=True)
        )
        return replace(self, clients=(*stayed, joined))

    def _by_host(self, kind: str) -> dict[HostInfo, list[int]]:
        tasks_by_host: dict[HostInfo, list[int]] = {}
        for client in self.clients:
            if client.host is not None:
                tasks_by_host.setdefault(client.host, []).extend(getattr(client, kind))
        return tasks_by_host

    def _free_host(self) -> HostInfo | None:
        """Return an unused host name of average length; None if no client has an endpoint."""
        hosts = {client.host for client in self.clients if client.host is not None}
        if not hosts:
            return None
        length = sum(len(host.host) for host in hosts) // len(hosts)
        name = _JOINING[:length].ljust(length, "-")
        port = next(iter(sorted(hosts))).port
        while HostInfo(name, port) in hosts:
            name += "-"
        return HostInfo(name, port)


def read_group(data: Mapping[str, Any]) -> SizedGroup:
    """Return the group of a problem.

    Raises:
        ProblemError: the problem is malformed, or has no members.
        TaskAssignmentError, ConfigError: as in `read_problem`.
    """
    state = read_problem(data).state
    sizes = np.bincount(_bounded(state.subtopology)) if len(state.tasks) else ()
    number_by_task = {task: number for number, task in enumerate(state.tasks)}
    sums = zip(state.tasks, state.end_offset_sums.tolist(), strict=True)
    ends = {task: end for task, end in sums if end != LAG_UNKNOWN}
    given = sorted(data["clients"].items())
    clients = tuple(_client(name, client, number_by_task, ends) for name, client in given)
    members = sum(client.threads for client in clients)
    if not 1 <= members <= MEMBERS_MAX:
        raise ProblemError(
            f"the clients have {members} threads in total; this command takes 1 to {MEMBERS_MAX}"
        )
    counts = {name: topic["partitions"] for name, topic in (data.get("topics") or {}).items()}
    sources = {
        int(number): sorted(set(part.get("sources") or ()))
        for number, part in (data.get("subtopologies") or {}).items()
    }
    return SizedGroup(
        clients=clients,
        tasks=state.tasks,
        sizes=tuple(int(size) for size in sizes),
        partitions=tuple(
            tuple(
                TopicPartition(topic, task.partition)
                for topic in sources[task.subtopology]
                if task.partition < counts[topic]
            )
            for task in state.tasks
        ),
        partition_counts={t: counts[t] for topics in sources.values() for t in topics},
        end_offset_sums=ends,
    )


def _bounded(subtopology: Any) -> Any:
    top = int(subtopology.max(initial=0))
    if top >= SUBTOPOLOGIES_MAX:
        raise ProblemError(
            f"subtopology {top} is above {SUBTOPOLOGIES_MAX - 1}, the highest allowed number;"
            " number subtopologies from 0"
        )
    return subtopology


def _client(
    name: str,
    given: Mapping[str, Any],
    number_by_task: Mapping[TaskId, int],
    ends: Mapping[TaskId, int],
) -> SizedClient:
    active = {_task(text, name) for text in given.get("active") or ()}
    standby = {_task(text, name) for text in given.get("standby") or ()} - active
    sums = dict.fromkeys(standby, UNKNOWN_OFFSET_SUM)
    for text, lag in (given.get("lags") or {}).items():
        task = _task(text, name)
        if lag == "running":
            sums[task] = RUNNING
        else:
            unknown = lag == "unknown" or task not in ends
            sums[task] = UNKNOWN_OFFSET_SUM if unknown else max(0, ends[task] - lag)
    sums |= dict.fromkeys(active, RUNNING)
    endpoint = given.get("endpoint")
    host = None
    if endpoint is not None:
        host = parse_endpoint(endpoint) if isinstance(endpoint, str) else None
        if host is None or host.port >= 2**31:
            raise ProblemError(f"client {name} has endpoint {endpoint!r}; give host:port")
    return SizedClient(
        process_id=_process_id(name),
        threads=given.get("threads", 1),
        endpoint=endpoint,
        host=host,
        rack=given.get("rack") or None,
        tags={str(key): str(value) for key, value in (given.get("tags") or {}).items()},
        active=tuple(sorted(number_by_task[t] for t in active if t in number_by_task)),
        standby=tuple(sorted(number_by_task[t] for t in standby if t in number_by_task)),
        sums=sums,
    )


def _task(text: object, client: str) -> TaskId:
    try:
        return TaskId.parse(str(text))
    except ValueError as error:
        raise ProblemError(f"client {client}: {error}") from None


def _process_id(name: str) -> UUID:
    """Return the client's process id; a name that is not a UUID yields a UUID derived from it."""
    try:
        return UUID(name)
    except ValueError:
        return uuid5(NAMESPACE_OID, name)


def _dealt(client: SizedClient, tasks: Sequence[TaskId]) -> Iterator[SizedMember]:
    """Yield one member per thread: actives round robin, then standbys, then other state."""
    threads = client.threads
    held = {tasks[number] for number in (*client.active, *client.standby)}
    rest = sorted(client.sums.keys() - held)
    standby_from = len(client.active)
    rest_from = standby_from + len(client.standby)
    for number in range(threads):
        active = client.active[number::threads]
        standby = client.standby[(number - standby_from) % threads :: threads]
        own_tasks = [tasks[task] for task in (*active, *standby)]
        own_tasks += rest[(number - rest_from) % threads :: threads]
        sums = {task: client.sums[task] for task in own_tasks if task in client.sums}
        yield SizedMember(
            client=client,
            number=number,
            active=active,
            standby=standby,
            sums=TaskOffsetSums.from_mapping(sums),
        )


def _take(
    held: Sequence[list[int]], capacity: Sequence[int], share: float, never: frozenset[int]
) -> tuple[int, ...]:
    """Remove a share of all tasks, each from the fullest client; return them, ascending."""
    wanted = int(share * sum(map(len, held)))
    fullest = [(-len(own) / max(1, capacity[place]), place) for place, own in enumerate(held)]
    heapify(fullest)
    taken: set[int] = set()
    while len(taken) < wanted and fullest:
        _, place = fullest[0]
        own = held[place]
        task = next(
            (task for task in reversed(own) if task not in never and task not in taken), None
        )
        if task is None:
            heappop(fullest)
            continue
        own.remove(task)
        taken.add(task)
        heapreplace(fullest, (-len(own) / max(1, capacity[place]), place))
    return tuple(sorted(taken))
