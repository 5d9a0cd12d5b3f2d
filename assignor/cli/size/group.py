"""The group of a problem as its members would write and read it, for `assignor size`.

Nothing is assigned: a client runs the tasks that the file says, dealt evenly over its threads, each
of which is one member. The one thing made up is the client that joins, for the price of a delta.
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
    """One process. Tasks are numbers; `sums` are of all state that it reports, by task.

    `active` and `standby` are ascending and hold only tasks that exist.
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
    """One thread of a client: its share of the tasks, and the state that it reports."""

    client: SizedClient
    number: int
    active: tuple[int, ...]
    standby: tuple[int, ...]
    sums: TaskOffsetSums


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedGroup:
    """A whole group.

    Attributes:
        clients: sorted by process id.
        tasks: task by number, (subtopology, partition) order; `sizes`: tasks of each subtopology.
        partitions: input partitions of each task, by number.
        partition_counts: partitions of each source topic.
        end_offset_sums: of the tasks of which it is known.
    """

    clients: tuple[SizedClient, ...]
    tasks: tuple[TaskId, ...]
    sizes: tuple[int, ...]
    partitions: tuple[tuple[TopicPartition, ...], ...]
    partition_counts: Mapping[str, int]
    end_offset_sums: Mapping[TaskId, int]

    def members(self) -> Iterator[SizedMember]:
        """One member per thread, clients in order."""
        for client in self.clients:
            yield from _dealt(client, self.tasks)

    def served(self, member: SizedMember) -> list[TopicPartition]:
        """Input partitions of a member's active tasks."""
        return [partition for task in member.active for partition in self.partitions[task]]

    def view(self, epoch: int, previous: View | None = None) -> View:
        """Who runs what, as natives say it."""
        return build_view(
            epoch=epoch,
            sizes=self.sizes,
            active=self._by_host("active"),
            standby=self._by_host("standby"),
            previous=previous,
        )

    def host_maps(self) -> tuple[PartitionsByHost, PartitionsByHost]:
        """Who serves which partition, actively and as a standby, as Kafka says it."""
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
        """The group after an empty client joined and took its fair share; it is the last client.

        It has as many threads as the others on average, and takes tasks one by one from whoever
        then has most of them per thread.
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
            replace(client, active=tuple(mine), standby=tuple(copies))
            for client, mine, copies in zip(self.clients, active, standby, strict=True)
        )
        return replace(self, clients=(*stayed, joined))

    def _by_host(self, kind: str) -> dict[HostInfo, list[int]]:
        tasks_by_host: dict[HostInfo, list[int]] = {}
        for client in self.clients:
            if client.host is not None:
                tasks_by_host.setdefault(client.host, []).extend(getattr(client, kind))
        return tasks_by_host

    def _free_host(self) -> HostInfo | None:
        """A host as long as the others are; none where nobody has one."""
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
    """The group of a problem.

    Raises:
        ProblemError: the problem is not in the format, or has no members.
        TaskAssignmentError, ConfigError: as `read_problem`.
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
            f"the clients have {members} threads together; 1 to {MEMBERS_MAX} members can be sized"
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
            f"subtopology {top} is above {SUBTOPOLOGIES_MAX - 1}, the last that can be sized;"
            " number them from 0 on"
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
    """The client's id; a name that is no UUID gets one, which is as long."""
    try:
        return UUID(name)
    except ValueError:
        return uuid5(NAMESPACE_OID, name)


def _dealt(client: SizedClient, tasks: Sequence[TaskId]) -> Iterator[SizedMember]:
    """Actives round robin over the threads, then standbys, then other state, where that stopped."""
    threads = client.threads
    held = {tasks[number] for number in (*client.active, *client.standby)}
    rest = sorted(client.sums.keys() - held)
    standby_from = len(client.active)
    rest_from = standby_from + len(client.standby)
    for number in range(threads):
        active = client.active[number::threads]
        standby = client.standby[(number - standby_from) % threads :: threads]
        mine = [tasks[task] for task in (*active, *standby)]
        mine += rest[(number - rest_from) % threads :: threads]
        sums = {task: client.sums[task] for task in mine if task in client.sums}
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
    """Take a share of all tasks, each from whoever then holds most per thread; ascending."""
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
