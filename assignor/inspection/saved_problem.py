"""Save a live group as a problem file, for `assignor assign`, `explain`, `size` and plans.

Members report the offsets of their copies only when they join. So copies of a settled group count
as caught up, unless the caller asks for the reported lags. Unknown source topics and changelogs of
a subtopology get placeholders with the right number of partitions; the note of the file names them.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

from assignor.inspection.streams_groups.problem import problem_of_streams_group
from assignor.inspection.tasks import stateful_subtopologies
from assignor.inspection.values import ClientLook, ClusterFacts, GroupInspection, MemberLook, Shape
from assignor.problems import (
    INSTANCES_KEY,
    TOPOLOGY_VERSION_KEY,
    UNATTRIBUTED_KEY,
    ProblemError,
    parse_problem,
    read_problem,
)
from encoding import NO_REBALANCE, RebalanceError, TaskId, TopicPartition

Lags = Literal["caught-up", "reported"]

_DIES: Final = "leave"


def problem_of(
    look: GroupInspection, *, lags: Lags = "caught-up", dies: Collection[str] = ()
) -> dict[str, Any]:
    """The problem of a Streams group, of the classic protocol or of a streams group.

    Args:
        look: the group.
        lags: lags of existing copies: `caught-up` for 0, except for warm-ups; `reported` for those
            that members reported when they last joined.
        dies: clients that leave in the simulation: client names, process ids, or prefixes of
            process ids.

    Raises:
        ProblemError: it is not a Streams group, its tasks have topology names, or a name in `dies`
            matches no client or several; or members run different topologies; or a streams group
            lacks a field that a problem file needs.
    """
    if look.streams_group is not None:
        return problem_of_streams_group(
            look.streams_group, has_reported_lags=lags == "reported", leaving=dies
        )
    if not look.is_streams:
        kind = "Streams groups" if look.described.members else "groups with members"
        raise ProblemError(f"{look.summary}; only {kind} can be saved")
    if any(entry.task.topology_name for entry in look.tasks):
        raise ProblemError(
            "problem files cannot have tasks of named topologies;"
            " save groups of applications without them"
        )
    if look.topologies is not None and any(f.is_changing for f in look.topologies.families):
        raise ProblemError(
            "members run different topologies, and a problem file has one:"
            " save the group before or after the change"
        )
    sizes = _sizes(look)
    stateful = stateful_subtopologies(look)
    sources, notes = _sources(look, sizes)
    problem: dict[str, Any] = {
        "name": look.described.group_id,
        "note": "; ".join((_origin(lags), *notes)),
        "config": _config(look, stateful),
        "topics": _topics(look, sources, sizes),
        "subtopologies": _subtopologies(look.shape, sources, stateful, look.described.group_id),
        "end_offset_sums": {
            str(entry.task): entry.end_sum for entry in look.tasks if entry.end_sum is not None
        },
        "clients": _clients(look, stateful, lags),
    }
    version = max((member.topology_version for member in look.members), default=1)
    if version > 1:
        problem[TOPOLOGY_VERSION_KEY] = version
    if look.shape.loose_changelogs:
        problem[UNATTRIBUTED_KEY] = {
            name: _records(look.facts, name) for name in look.shape.loose_changelogs
        }
    if dies:
        leaving = [process_named(look, name) for name in dies]
        problem["events"] = [{"type": _DIES, "clients": leaving}]
    return problem


def _records(facts: ClusterFacts, topic: str) -> int | None:
    """Return the sum of the end offsets of a topic; None if not all are known."""
    ends = [
        facts.end_offsets.get(TopicPartition(topic, number))
        for number in range(facts.topics[topic].partitions if topic in facts.topics else 0)
    ]
    known = [end for end in ends if end is not None]
    return sum(known) if known and len(known) == len(ends) else None


def problem_line(problem: Mapping[str, Any]) -> str:
    """Return a problem as a line of a file, after it was read back as the commands read it.

    Raises:
        ProblemError: it cannot be read back; the message says why.
    """
    text = json.dumps(problem)
    try:
        read_problem(parse_problem(text))
    except RebalanceError as error:
        raise ProblemError(f"no command could read the file: {error}") from None
    return f"{text}\n"


def process_named(look: GroupInspection, name: str) -> str:
    """The process of a client name, a process id or a prefix of it.

    Raises:
        ProblemError: no process matches, or several do.
    """
    found = [client.process for client in look.clients if name in (client.client, client.process)]
    found = found or [client.process for client in look.clients if client.process.startswith(name)]
    if len(found) != 1:
        known = ", ".join(client.client for client in look.clients)
        what = "is not a client" if not found else f"matches {len(found)} clients"
        raise ProblemError(f"{name!r} {what} of the group; choose from {known}")
    return found[0]


def _origin(lags: Lags) -> str:
    taken = (
        "existing copies count as caught up"
        if lags == "caught-up"
        else "lags are as reported at the last rebalance"
    )
    return f"a live group, saved by assignor inspect; {taken}"


def _sizes(look: GroupInspection) -> dict[int, int]:
    """Tasks of each subtopology.

    Raises:
        ProblemError: tasks with lower numbers than an existing one are unknown.
    """
    numbers: dict[int, set[int]] = {}
    for entry in look.tasks:
        numbers.setdefault(entry.task.subtopology, set()).add(entry.task.partition)
    for number, seen in sorted(numbers.items()):
        if max(seen) >= len(seen):
            raise ProblemError(
                f"a member has task {number}_{max(seen)}, and only {len(seen)} tasks of "
                f"subtopology {number} are known; see --tasks for the member that has it"
            )
    return {number: len(seen) for number, seen in sorted(numbers.items())}


def _sources(
    look: GroupInspection, sizes: Mapping[int, int]
) -> tuple[dict[int, tuple[str, ...]], list[str]]:
    """Topics of each subtopology with placeholders, and notes about the placeholders."""
    topics = look.facts.topics
    sources, guessed = {}, []
    for number, size in sizes.items():
        known = tuple(name for name in look.shape.sources.get(number, ()) if name in topics)
        if max((topics[name].partitions for name in known), default=0) < size:
            known = (*known, f"{look.described.group_id}-subtopology-{number}-input")
            guessed.append(str(number))
        sources[number] = known
    note = f"inputs of subtopology {', '.join(guessed)} are placeholders" if guessed else ""
    return sources, [note] if note else []


def _config(look: GroupInspection, stateful: Collection[int]) -> dict[str, Any]:
    """Known settings: the number of standbys that every stateful task has."""
    warmups = {(task, client.process) for client in look.clients for task in client.warmup or ()}
    copies = [
        sum((entry.task, process) not in warmups for process in entry.standbys)
        for entry in look.tasks
        if entry.task.subtopology in stateful
    ]
    return {"num.standby.replicas": min(copies, default=0)}


def _topics(
    look: GroupInspection, sources: Mapping[int, tuple[str, ...]], sizes: Mapping[int, int]
) -> dict[str, Any]:
    named = {name: size for number, size in sizes.items() for name in sources[number]}
    logs = {name for names in look.shape.changelogs.values() for name in names}
    found: dict[str, Any] = {}
    for name in sorted(named.keys() | (logs & look.facts.topics.keys())):
        facts = look.facts.topics.get(name)
        topic: dict[str, Any] = {"partitions": named[name] if facts is None else facts.partitions}
        if facts is not None and facts.racks:
            topic["racks"] = {str(n): sorted(racks) for n, racks in sorted(facts.racks.items())}
        found[name] = topic
    return found


def _subtopologies(
    shape: Shape,
    sources: Mapping[int, tuple[str, ...]],
    stateful: Collection[int],
    group_id: str,
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, names in sources.items():
        logs = list(shape.changelogs.get(number, ()))
        if number in stateful and not logs:
            logs = [f"{group_id}-subtopology-{number}-changelog"]
        found[str(number)] = {"sources": list(names), "changelogs": logs}
    return found


def _clients(look: GroupInspection, stateful: Collection[int], lags: Lags) -> dict[str, Any]:
    taken: set[TaskId] = set()
    found: dict[str, Any] = {}
    for client in sorted(look.clients, key=lambda client: client.process):
        active = [task for task in client.active if task not in taken]
        taken.update(active)
        first = client.members[0]
        entry: dict[str, Any] = {
            "threads": len(client.members),
            "consumers": [member.described.member_id for member in client.members],
            "active": [str(task) for task in active],
            "standby": [str(task) for task in client.standby if task not in active],
            "lags": _lags(look, client, active, stateful, lags),
            "client": client.client,
            "versions": _versions(client.members),
        }
        instances = [member.described.instance_id for member in client.members]
        if all(instances):
            entry[INSTANCES_KEY] = instances
        if first.rack:
            entry["rack"] = first.rack
        if first.tags:
            entry["tags"] = dict(first.tags)
        if first.endpoint:
            entry["endpoint"] = first.endpoint
        found[client.process] = entry
    return found


def _lags(
    look: GroupInspection,
    client: ClientLook,
    active: Collection[TaskId],
    stateful: Collection[int],
    lags: Lags,
) -> dict[str, Any]:
    is_warming = look.next_rebalance_ms != NO_REBALANCE and client.warmup is None
    found: dict[str, Any] = {}
    for task, lag in client.state_lags.items():
        found[str(task)] = "unknown" if lag is None else lag
    for task in client.standby:
        # If the leader does not report warm-ups, any copy may be one.
        is_warmup = task in (client.warmup or ()) or is_warming
        if lags == "caught-up" and not is_warmup:
            found[str(task)] = 0
        else:
            found.setdefault(str(task), "unknown")
    for task in active:
        if task.subtopology in stateful:
            found[str(task)] = "running"
        else:
            found.pop(str(task), None)
    return found


def _versions(members: Collection[MemberLook]) -> list[dict[str, Any]]:
    """The distinct versions that the threads wrote, for upgrade plans."""
    rows = [
        {
            "used": member.used,
            "supported": member.supported,
            "native": member.native,
            "pinned": member.pin is not None or bool(member.evidence.pinned),
            "releases": [*member.evidence.releases, *member.evidence.pinned],
        }
        for member in members
    ]
    return [row for number, row in enumerate(rows) if row not in rows[:number]]
