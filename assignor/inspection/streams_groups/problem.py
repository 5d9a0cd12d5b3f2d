"""Save a streams group as a problem file, for `assignor assign`, plans and `kafka_streams_group`.

The members' current tasks are saved, not the broker's target: they are where state is. Brokers
before 4.4 report no offsets of copies, so existing copies count as caught up.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from assignor.inspection.streams_groups.values import (
    DescribedStreamsGroup,
    StreamsFacts,
    StreamsGroupLook,
    StreamsGroupMember,
    StreamsTask,
    sorted_tasks,
)
from assignor.problems import PROTOCOL_KEY, ProblemError
from encoding import TopicPartition, shown

_PROTOCOL: Final = "streams"


def problem_of_streams_group(
    look: StreamsGroupLook, *, has_reported_lags: bool, leaving: Collection[str]
) -> dict[str, Any]:
    """Return the problem of a streams group.

    Args:
        look: the group, with sizes of its topics and the end offsets of its changelogs.
        has_reported_lags: write the lags of copies that members reported, not 0.
        leaving: names of clients, or ids of processes or their beginnings, that leave.

    Raises:
        ProblemError: a field is missing that a problem file needs, or a name in `leaving` matches
            no client or several.
    """
    group, facts = look.group, look.facts
    tasks, logs = _tasks(group, facts), _changelogs(group)
    processes = _processes(group)
    if has_reported_lags and not any(member.task_offsets for member in group.members):
        raise ProblemError(
            f"group {shown(group.group_id)} has no field task_offsets: its brokers report no lags"
            " of copies; save it with --lags caught-up"
        )
    sums = _end_sums(tasks, logs, facts)
    stateful = {task for task in tasks if logs[task.subtopology]}
    problem: dict[str, Any] = {
        "name": group.group_id,
        PROTOCOL_KEY: _PROTOCOL,
        "note": _note(group, stateful, sums, has_reported_lags=has_reported_lags),
        "config": {"num.standby.replicas": _standbys(group, stateful)},
        "topics": _topics(group, facts),
        "subtopologies": {
            part.subtopology_id: {
                "sources": list(part.input_topics),
                "changelogs": list(logs[part.subtopology_id]),
            }
            for part in group.subtopologies or ()
        },
        "end_offset_sums": {str(task): sums[task] for task in sorted_tasks(sums)},
        "clients": {
            process: _client(look, members, stateful, sums if has_reported_lags else None)
            for process, members in processes.items()
        },
    }
    if leaving:
        names = [_process_named(look, processes, name) for name in leaving]
        problem["events"] = [{"type": "leave", "clients": names}]
    return problem


def _tasks(group: DescribedStreamsGroup, facts: StreamsFacts) -> list[StreamsTask]:
    """Return all tasks of the topology: one for each partition of its largest input."""
    name = f"group {shown(group.group_id)}"
    missing = (
        (not group.members, "clients: it has no members; save it while they run"),
        (
            group.subtopologies is None,
            "topology: its broker has none yet; wait for the members",
        ),
        (facts.partitions is None, "topics: their partitions may not be read; grant DESCRIBE"),
    )
    for is_missing, what in missing:
        if is_missing:
            raise ProblemError(f"{name} cannot be saved without {what}")
    found = []
    for part in group.subtopologies or ():
        if not (part.subtopology_id.isascii() and part.subtopology_id.isdigit()):
            raise ProblemError(
                f"{name} cannot be saved: the field subtopology_id is {shown(part.subtopology_id)},"
                " and problem files have numbers"
            )
        sizes = [(facts.partitions or {}).get(topic) for topic in part.input_topics]
        if None in sizes or not sizes:
            raise ProblemError(
                f"{name} cannot be saved without topics: the partitions of an input of subtopology"
                f" {part.subtopology_id} are not known; create it, or grant DESCRIBE"
            )
        count = max(size for size in sizes if size is not None)
        found += [StreamsTask(part.subtopology_id, number) for number in range(count)]
    known = set(found)
    for member in group.members:
        for task in (*member.current.active, *member.current.standby, *member.current.warmup):
            if task not in known:
                raise ProblemError(
                    f"{name} cannot be saved: a member has task {shown(str(task))}, and its"
                    " topology and topics have no such task; save it when it is Stable"
                )
    return sorted_tasks(found)


def _changelogs(group: DescribedStreamsGroup) -> dict[str, tuple[str, ...]]:
    return {
        part.subtopology_id: tuple(sorted(topic.name for topic in part.state_changelog_topics))
        for part in group.subtopologies or ()
    }


def _end_sums(
    tasks: Collection[StreamsTask], logs: Mapping[str, tuple[str, ...]], facts: StreamsFacts
) -> dict[StreamsTask, int]:
    """Return the end offsets of the changelogs of each task, added up; unknown ones left out."""
    found = {}
    for task in tasks:
        names = logs[task.subtopology]
        ends = [facts.ends.get(TopicPartition(name, task.partition)) for name in names]
        known = [end for end in ends if end is not None]
        if names and len(known) == len(names):
            found[task] = sum(known)
    return found


def _processes(group: DescribedStreamsGroup) -> dict[str, list[StreamsGroupMember]]:
    found: dict[str, list[StreamsGroupMember]] = {}
    for member in sorted(group.members, key=lambda member: (member.process_id, member.member_id)):
        found.setdefault(member.process_id, []).append(member)
    return found


def _standbys(group: DescribedStreamsGroup, stateful: Collection[StreamsTask]) -> int:
    """Return the number of standbys that every stateful task has."""
    counts = dict.fromkeys(stateful, 0)
    for member in group.members:
        for task in member.current.standby:
            if task in counts:
                counts[task] += 1
    return min(counts.values(), default=0)


def _topics(group: DescribedStreamsGroup, facts: StreamsFacts) -> dict[str, Any]:
    wanted = {
        topic
        for part in group.subtopologies or ()
        for topic in (*part.input_topics, *(row.name for row in part.state_changelog_topics))
    }
    found: dict[str, Any] = {}
    for name in sorted(wanted & (facts.partitions or {}).keys()):
        found[name] = {"partitions": (facts.partitions or {})[name]}
        racks = facts.racks.get(name)
        if racks:
            found[name]["racks"] = {str(n): sorted(ids) for n, ids in sorted(racks.items())}
    return found


def _client(
    look: StreamsGroupLook,
    members: Collection[StreamsGroupMember],
    stateful: Collection[StreamsTask],
    sums: Mapping[StreamsTask, int] | None,
) -> dict[str, Any]:
    """Return a process; `sums` are end offsets if lags are to be those that were reported."""
    first = next(iter(members))
    active = sorted_tasks({task for member in members for task in member.current.active})
    runs = set(active)
    standby = sorted_tasks({t for member in members for t in member.current.standby} - runs)
    warm = {task for member in members for task in member.current.warmup} - runs
    offsets = {task: at for member in members for task, at in member.task_offsets.items()}
    lags: dict[str, Any] = {str(task): "unknown" for task in sorted_tasks(warm)}
    for task in standby:
        if sums is None:
            lags[str(task)] = 0
        else:
            is_known = task in offsets and task in sums
            lags[str(task)] = max(0, sums[task] - offsets[task]) if is_known else "unknown"
    lags |= {str(task): "running" for task in active if task in stateful}
    entry: dict[str, Any] = {
        "threads": len(members),
        "consumers": [member.member_id for member in members],
        "active": [str(task) for task in active],
        "standby": [str(task) for task in standby],
        "lags": lags,
        "client": look.client_names.get(first.member_id, first.client_id),
    }
    optional = {"rack": first.rack, "tags": dict(first.tags), "endpoint": first.endpoint}
    return entry | {name: value for name, value in optional.items() if value}


def _note(
    group: DescribedStreamsGroup,
    stateful: Collection[StreamsTask],
    sums: Mapping[StreamsTask, int],
    *,
    has_reported_lags: bool,
) -> str:
    lags = "lags are as reported" if has_reported_lags else "existing copies count as caught up"
    parts = [f"a live streams group in state {group.state}, saved by assignor inspect; {lags}"]
    unknown = len(set(stateful) - set(sums))
    if unknown:
        parts.append(f"end_offset_sums of {unknown} stateful tasks are missing: not authorized")
    return "; ".join(parts)


def _process_named(
    look: StreamsGroupLook, processes: Mapping[str, list[StreamsGroupMember]], name: str
) -> str:
    names = {
        process: look.client_names.get(members[0].member_id, "")
        for process, members in processes.items()
    }
    found = [process for process, client in names.items() if name in (client, process)]
    found = found or [process for process in names if process.startswith(name)]
    if len(found) != 1:
        what = "is not a client" if not found else f"matches {len(found)} clients"
        known = ", ".join(shown(client) for client in names.values())
        raise ProblemError(f"{name!r} {what} of the group; choose from {known}")
    return found[0]
