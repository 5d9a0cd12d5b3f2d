"""Streams groups (KIP-1071) in `assignor inspect`: text and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from assignor.cli.inspect.columns import NARROW, name_width, number, plain_table
from assignor.cli.toolkit.text import TextTable, cell, line, text_grid
from assignor.inspection import (
    InternalTopic,
    StreamsGroupLook,
    StreamsGroupMember,
    StreamsTask,
    StreamsTasks,
    short_id,
    sorted_tasks,
)
from encoding import TopicPartition

MEMBERS_SHOWN = 100
"""Most member rows."""
TASKS_SHOWN = 1000
"""Most task rows of `--tasks`."""
_WIDE = 120


def streams_parts(
    look: StreamsGroupLook, lag: int | None, width: int, *, tasks: bool, cut: bool
) -> Iterator[RenderableType]:
    """Yield the parts between the summary of a streams group and its findings.

    Args:
        look: the group.
        lag: of the whole group; None: unknown.
        width: width of the terminal in characters.
        tasks: whether to list the tasks, the first `TASKS_SHOWN` of them.
        cut: whether client names may be cut to fit the width.
    """
    if look.group.state == "Dead":
        return
    yield _head(look, lag)
    if look.group.subtopologies:
        yield Text()
        yield _topology(look)
    if look.group.members:
        yield Text()
        yield _members(look, width, cut=cut)
        left = len(look.group.members) - MEMBERS_SHOWN
        if left > 0:
            yield Text(f"{left} more are not shown; --format json lists all", style="dim")
    if tasks and look.group.members:
        yield Text()
        yield from _tasks(look, width, cut=cut)


def _head(look: StreamsGroupLook, lag: int | None) -> TextTable:
    group = look.group
    head = text_grid(gap=2)
    head.add_column(no_wrap=True, style="dim")
    head.add_column(overflow="fold")
    topology = "unknown" if group.topology_epoch is None else str(group.topology_epoch)
    state = ""
    if group.assignment_epoch != group.group_epoch:
        state = "; the target assignment is older than the group"
    epochs = (
        f"group {group.group_epoch}, target assignment {group.assignment_epoch},"
        f" topology {topology}{state}"
    )
    assignor = f" and assigns its tasks: {group.assignor}" if group.assignor else ""
    rows = [
        ("epochs", epochs),
        ("broker", f"{group.coordinator} coordinates the group{assignor}"),
        ("moves", _moves(look)),
        ("lag", "not known" if lag is None else f"{lag:,} records"),
    ]
    for name, value in rows:
        head.add_row(name, line(value))
    return head


def _moves(look: StreamsGroupLook) -> str:
    starting = sum(map(len, look.to_start.values()))
    if not starting:
        return "no task moves: every member has its target assignment"
    return f"{starting} active task{'' if starting == 1 else 's'} wait to move"


def _topology(look: StreamsGroupLook) -> TextTable:
    table = plain_table("subtopology", "reads", "repartitions to", "changelogs")
    for part in look.group.subtopologies or ():
        table.add_row(
            cell(part.subtopology_id),
            line(", ".join(part.input_topics)),
            line(", ".join(part.repartition_sink_topics)),
            line(", ".join(map(_sized, part.state_changelog_topics))),
        )
    return table


def _sized(topic: InternalTopic) -> str:
    return f"{topic.name} ({topic.partitions})" if topic.partitions else topic.name


def _members(look: StreamsGroupLook, width: int, *, cut: bool) -> TextTable:
    members = look.group.members[:MEMBERS_SHOWN]
    names = ["epoch", "active", "standby", "warm", "to start", "to stop", "lag"]
    is_narrow = cut and width < NARROW
    shown_names = ["active", "standby", "lag"] if is_narrow else names
    table = plain_table("client", *([] if is_narrow else ["process"]), right=shown_names)
    places = {
        "rack": [member.rack or "" for member in members],
        "tags": [", ".join(f"{k}={v}" for k, v in member.tags.items()) for member in members],
        "endpoint": [member.endpoint or "" for member in members],
        "host": [member.client_host for member in members],
    }
    shown_places = {
        name: values for name, values in places.items() if any(values) and width >= _WIDE
    }
    for name in shown_places:
        table.add_column(name, overflow="fold")
    processes = {member.process_id for member in look.group.members}
    for row, member in enumerate(members):
        counts = dict(zip(names, _counts(look, member), strict=True))
        process = [] if is_narrow else [cell(short_id(member.process_id, processes))]
        table.add_row(
            cell(look.client_names[member.member_id]),
            *process,
            *(counts[name] for name in shown_names),
            *(cell(values[row]) for values in shown_places.values()),
        )
    if cut:
        table.columns[0].max_width = name_width(width)
    return table


def _counts(look: StreamsGroupLook, member: StreamsGroupMember) -> tuple[str, ...]:
    starting, stopping = look.to_start[member.member_id], look.to_stop[member.member_id]
    return (
        str(member.member_epoch),
        str(len(member.current.active)),
        str(len(member.current.standby)),
        str(len(member.current.warmup)),
        str(len(starting) or ""),
        str(len(stopping) or ""),
        number(look.lags[member.member_id]),
    )


def _tasks(look: StreamsGroupLook, width: int, *, cut: bool) -> Iterator[RenderableType]:
    table = plain_table("task", "runs on", "target", "copies on", right=("lag",))
    columns = (
        _by_task(look, lambda member: member.current.active),
        _by_task(look, lambda member: member.target.active),
        _by_task(look, lambda member: (*member.current.standby, *member.current.warmup)),
    )
    tasks = sorted_tasks(set().union(*columns))
    lags = _lags(look, tasks[:TASKS_SHOWN])
    for task in tasks[:TASKS_SHOWN]:
        runs, wanted, copies = (column.get(task, []) for column in columns)
        table.add_row(
            cell(str(task)),
            line(", ".join(runs) or "no member"),
            line("" if runs == wanted else ", ".join(wanted) or "no member"),
            line(", ".join(copies)),
            number(lags.get(task)),
        )
    if cut:
        table.columns[0].max_width = name_width(width)
    yield table
    left = len(tasks) - TASKS_SHOWN
    if left > 0:
        more = f"{left:,} more task{'' if left == 1 else 's'}"
        yield Text(f"{more} not shown; --format json lists all, by member", style="dim")


def _by_task(look: StreamsGroupLook, tasks_of: Any) -> dict[StreamsTask, list[str]]:
    found: dict[StreamsTask, list[str]] = {}
    for member in look.group.members:
        for task in tasks_of(member):
            found.setdefault(task, []).append(look.client_names[member.member_id])
    return found


def _lags(look: StreamsGroupLook, tasks: Sequence[StreamsTask]) -> dict[StreamsTask, int]:
    """Return the lags of those tasks that members run."""
    rows = {row.partition: row.lag for row in look.offsets}
    running = {task for member in look.group.members for task in member.current.active}
    topics = {part.subtopology_id: part.input_topics for part in look.group.subtopologies or ()}
    found: dict[StreamsTask, int] = {}
    for task in tasks:
        inputs = topics.get(task.subtopology, ()) if task in running else ()
        lags = (rows.get(TopicPartition(topic, task.partition)) for topic in inputs)
        known = [lag for lag in lags if lag is not None]
        if known:
            found[task] = sum(known)
    return found


def streams_row(look: StreamsGroupLook) -> tuple[str, str]:
    """Return two cells of `--all`: number of members, and the group epoch as the version."""
    epoch = f"epoch {look.group.group_epoch}" if look.group.group_epoch >= 0 else ""
    return str(len(look.group.members)), epoch


def streams_document(look: StreamsGroupLook) -> dict[str, Any]:
    """Return the object of a streams group, in the fields of StreamsGroupDescribe."""
    group = look.group
    return {
        "coordinator": group.coordinator,
        "assignor": group.assignor,
        "group_epoch": group.group_epoch,
        "target_assignment_epoch": group.assignment_epoch,
        "topology_epoch": group.topology_epoch,
        "waits_for": list(look.waits_for),
        "subtopologies": None
        if group.subtopologies is None
        else {
            part.subtopology_id: {
                "sources": list(part.source_topics),
                "repartition_sinks": list(part.repartition_sink_topics),
                "repartition_sources": [_topic(row) for row in part.repartition_source_topics],
                "changelogs": [_topic(row) for row in part.state_changelog_topics],
            }
            for part in group.subtopologies
        },
        "members": [_member(look, member) for member in group.members],
        "offsets": [
            {
                "topic": row.partition.topic,
                "partition": row.partition.partition,
                "current_offset": row.committed,
                "leader_epoch": row.leader_epoch,
                "log_end_offset": row.end,
                "lag": row.lag,
            }
            for row in look.offsets
        ],
    }


def _topic(row: InternalTopic) -> dict[str, Any]:
    return {
        "topic": row.name,
        "partitions": row.partitions,
        "replication_factor": row.replication_factor,
        "configs": dict(sorted(row.configs.items())),
    }


def _member(look: StreamsGroupLook, member: StreamsGroupMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client": look.client_names[member.member_id],
        "client_id": member.client_id,
        "host": member.client_host,
        "instance_id": member.instance_id,
        "rack": member.rack,
        "process_id": member.process_id,
        "endpoint": member.endpoint,
        "tags": dict(member.tags),
        "protocol": "classic" if member.is_classic else "streams",
        "member_epoch": member.member_epoch,
        "topology_epoch": member.topology_epoch,
        "current": _roles(member.current),
        "target": _roles(member.target),
        "to_start": _names(look.to_start[member.member_id]),
        "to_stop": _names(look.to_stop[member.member_id]),
        "task_offsets": _numbers(member.task_offsets),
        "task_end_offsets": _numbers(member.task_end_offsets),
        "lag": look.lags[member.member_id],
    }


def _roles(tasks: StreamsTasks) -> dict[str, list[str]]:
    return {
        "active": _names(tasks.active),
        "standby": _names(tasks.standby),
        "warmup": _names(tasks.warmup),
    }


def _names(tasks: Sequence[StreamsTask]) -> list[str]:
    return [str(task) for task in tasks]


def _numbers(offsets: Mapping[StreamsTask, int]) -> dict[str, int]:
    return {str(task): offsets[task] for task in sorted_tasks(offsets)}
