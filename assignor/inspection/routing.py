"""Where interactive queries would go wrong: partitions without a host, or with another one's.

Kafka's answers carry a map from hosts to partitions; native ones a view from hosts to tasks, of
which only a full one says something to an observer. What they say is held against who really runs
what. Nothing is said of a group in which nobody has an `application.server`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from assignor.inspection.values import AnswerLook, MemberLook, TaskLook
from assignor.rebalance import parse_endpoint
from encoding import HostInfo, shown

_SHOWN: Final = 5


def host_map_holes(members: Sequence[MemberLook], tasks: Sequence[TaskLook]) -> tuple[str, ...]:
    """Every hole, as a sentence."""
    endpoints = {one.process: one.endpoint for one in members if one.endpoint}
    if not endpoints:
        return ()
    hosts = {
        process: host
        for process, endpoint in sorted(endpoints.items())
        if (host := parse_endpoint(endpoint)) is not None
    }
    silent = sorted({one.client for one in members if one.process not in endpoints})
    odd = sorted({text for text in endpoints.values() if parse_endpoint(text) is None})
    shared = sorted(host for host, count in Counter(hosts.values()).items() if count > 1)
    return (
        *(f"{shown(one)} has no application.server: its tasks cannot be queried" for one in silent),
        *(f"application.server {shown(text)!r} is not of the form host:port" for text in odd),
        *(f"{spelled(host)} is the application.server of several processes" for host in shared),
        *_map_holes(members, tasks, hosts),
    )


def spelled(host: HostInfo) -> str:
    """As in `application.server`."""
    return f"{shown(host.host)}:{host.port}"


def few(names: Sequence[str]) -> str:
    """The first names, each as one printable line, and how many more there are."""
    more = len(names) - _SHOWN
    listed = ", ".join(map(shown, names[:_SHOWN]))
    return f"{listed} and {more} more" if more > 0 else listed


def _map_holes(
    members: Sequence[MemberLook], tasks: Sequence[TaskLook], hosts: Mapping[str, HostInfo]
) -> Iterator[str]:
    """What the maps say against who runs what; one sentence for members whose maps agree."""
    clients_by_hole: dict[str, list[str]] = {}
    holes_by_map: dict[object, tuple[str, ...]] = {}
    maps = 0
    for member in members:
        answer = member.answer
        if answer.hosts is None and answer.view_hosts is None:
            continue
        maps += 1
        # A leader gives everybody the same map, and each is as large as the group.
        key = (answer.hosts, frozenset((answer.view_hosts or {}).items()))
        if key not in holes_by_map:
            holes_by_map[key] = tuple(_holes_of(answer, tasks, hosts))
        for hole in holes_by_map[key]:
            clients_by_hole.setdefault(hole, []).append(member.client)
    for hole, clients in sorted(clients_by_hole.items()):
        names = sorted(set(clients))
        yield hole if len(clients) == maps else f"{hole}, says the map of {few(names)}"


def _holes_of(
    answer: AnswerLook, tasks: Sequence[TaskLook], hosts: Mapping[str, HostInfo]
) -> Iterator[str]:
    runs = [(look, hosts[owner]) for look in tasks for owner in look.owners if owner in hosts]
    if answer.hosts is not None:
        served = {host: set(partitions) for host, partitions in answer.hosts.items()}
        missing = [
            f"{partition.topic}-{partition.partition}"
            for look, host in runs
            for partition in look.inputs
            if partition not in served.get(host, ())
        ]
    else:
        view = answer.view_hosts or {}
        missing = [
            f"task {look.task}" for look, host in runs if look.task not in view.get(host, ())
        ]
    if missing:
        yield f"queries for {few(missing)} do not reach who runs it"
    known = set(answer.hosts or ()) | set(answer.view_hosts or ())
    gone = [spelled(host) for host in sorted(known - set(hosts.values()))]
    if gone:
        yield f"{few(gone)} is in the host map, and no member has it"
