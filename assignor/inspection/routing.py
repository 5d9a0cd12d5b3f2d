"""Errors of the host map, which interactive queries use: missing or wrong hosts.

Kafka's assignments have a map from hosts to partitions; native ones have a view from hosts to
tasks, of which only a full view can be read here. Both are compared with the tasks that members
run. A group without any `application.server` has no errors.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from assignor.inspection.values import AnswerLook, MemberLook, TaskLook
from assignor.rebalance import parse_endpoint
from encoding import HostInfo, shown

NAMES_SHOWN: Final = 5
"""Most names in a list of `few`."""


def host_map_holes(members: Sequence[MemberLook], tasks: Sequence[TaskLook]) -> tuple[str, ...]:
    """All errors of the host maps, as sentences."""
    endpoints = {member.process: member.endpoint for member in members if member.endpoint}
    if not endpoints:
        return ()
    hosts = {
        process: host
        for process, endpoint in sorted(endpoints.items())
        if (host := parse_endpoint(endpoint)) is not None
    }
    silent = sorted({member.client for member in members if member.process not in endpoints})
    odd = sorted({text for text in endpoints.values() if parse_endpoint(text) is None})
    shared = sorted(host for host, count in Counter(hosts.values()).items() if count > 1)
    return (
        *(
            f"{shown(client)} has no application.server: its tasks cannot be queried"
            for client in silent
        ),
        *(f"application.server {shown(text)!r} is not of the form host:port" for text in odd),
        *(f"{spelled(host)} is the application.server of several processes" for host in shared),
        *_map_holes(members, tasks, hosts),
    )


def spelled(host: HostInfo) -> str:
    """The host as in `application.server`."""
    return f"{shown(host.host)}:{host.port}"


def few(names: Sequence[str], total: int | None = None) -> str:
    """The first names, printable, and the number of the others.

    Args:
        names: all names, or the first `NAMES_SHOWN` of them.
        total: number of all names, if `names` are only the first.
    """
    more = (len(names) if total is None else total) - NAMES_SHOWN
    listed = ", ".join(map(shown, names[:NAMES_SHOWN]))
    return f"{listed} and {more} more" if more > 0 else listed


def _map_holes(
    members: Sequence[MemberLook], tasks: Sequence[TaskLook], hosts: Mapping[str, HostInfo]
) -> Iterator[str]:
    """Differences between maps and running tasks; members with equal maps share a sentence."""
    clients_by_hole: dict[str, list[str]] = {}
    holes_by_map: dict[object, tuple[str, ...]] = {}
    maps = 0
    for member in members:
        answer = member.answer
        if answer.hosts is None and answer.view_hosts is None:
            continue
        maps += 1
        # Members usually have equal maps, each as large as the group; compare each one once.
        key = (answer.hosts, frozenset((answer.view_hosts or {}).items()))
        if key not in holes_by_map:
            holes_by_map[key] = tuple(_holes_of(answer, tasks, hosts))
        for hole in holes_by_map[key]:
            clients_by_hole.setdefault(hole, []).append(member.client)
    for hole, clients in sorted(clients_by_hole.items()):
        names = sorted(set(clients))
        yield hole if len(clients) == maps else f"{hole} (map of {few(names)})"


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
        yield f"queries for {few(missing)} do not reach the member that runs it"
    known = set(answer.hosts or ()) | set(answer.view_hosts or ())
    gone = [spelled(host) for host in sorted(known - set(hosts.values()))]
    if gone:
        yield f"{few(gone)} is in the host map, but no member has this application.server"
