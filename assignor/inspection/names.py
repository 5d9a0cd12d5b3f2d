"""Names of a group's clients, as short as they stay distinct."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from assignor.inspection.values import DescribedMember, MemberLook

_THREAD = re.compile(r"-StreamThread-\d+(-consumer)?$")


def client_name(client_id: str, group_id: str) -> str:
    """A client id without the group id and without the suffix for a thread.

    >>> client_name("app-5f3c-StreamThread-1-consumer", "app")
    '5f3c'
    """
    name = _THREAD.sub("", client_id)
    return name.removeprefix(f"{group_id}-") or name


def thread_name(described: DescribedMember) -> str:
    """The thread name of a member, such as `StreamThread-1`; else its instance id, or ""."""
    found = _THREAD.search(described.client_id)
    if found:
        return found[0].removeprefix("-").removesuffix("-consumer")
    return described.instance_id or ""


def labels(members: Sequence[MemberLook]) -> dict[str, str]:
    """Member id -> its client, with the thread name if the client has several members."""
    counts = Counter(member.process for member in members)
    return {
        member.described.member_id: f"{member.client} {thread_name(member.described)}".rstrip()
        if counts[member.process] > 1
        else member.client
        for member in members
    }


def with_distinct_names(members: Sequence[MemberLook]) -> tuple[MemberLook, ...]:
    """Add the start of the process id to client names that several processes have.

    Clients that set no `client.id` all have the default one.
    """
    processes: dict[str, set[str]] = {}
    for member in members:
        processes.setdefault(member.client, set()).add(member.process)
    return tuple(
        replace(member, client=f"{member.client} {short_id(member.process, sharing)}")
        if len(sharing := processes[member.client]) > 1
        else member
        for member in members
    )


def short_id(process_id: str, others: Collection[str]) -> str:
    """Return the shortest unique prefix of an id, at least 8 characters."""
    size = 8
    while size < len(process_id) and sum(o.startswith(process_id[:size]) for o in others) > 1:
        size += 1
    return process_id[:size]
