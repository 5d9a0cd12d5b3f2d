"""The text format of `assignor inspect`: a summary, clients with their tasks, and findings.

On a narrow terminal the columns about a client's location are left out. Names and sentences come
from members and are not trusted, so they reach rich only through `TextTable` and `Sentence`.
"""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from assignor.cli.inspect.all_groups import NOTES
from assignor.cli.inspect.columns import GAP, NAME_LEAST, name_width, number, plain_table
from assignor.cli.inspect.streams_groups import streams_parts
from assignor.cli.inspect.topologies import topology_change, topology_versions
from assignor.cli.toolkit.text import Sentence, TextTable, cell, line, text_grid, utc_time
from assignor.inspection import (
    ClientLook,
    GroupInspection,
    LeaderLook,
    MemberLook,
    few,
    offsets_by_topic,
    short_id,
    thread_name,
)
from encoding import NO_REBALANCE, UNKNOWN_VERSION, TaskId

WIDE = 120
"""Width of a terminal from which on the table also shows where each client is."""

_RELEASE_WIDTH = 11
_RELEASE_WRAPPED = 18
_NAME_MOST = 24
CLIENTS_SHOWN = 100
"""Most client rows; clients that limit the group's version are preferred."""

_BAD = frozenset(
    {
        *(
            "unreadable",
            "cannot-read",
            "error",
            "shutdown",
            "owned-twice",
            "stopped-member",
            "not-owned",
            "record-size",
        ),
        *("topology-waits", "not-ready", "impossible", "no-task", "source-topic"),
        "partition-counts",
    }
)


def render_group(
    look: GroupInspection, *, width: int, now_ms: int, tasks: bool, cut: bool = True
) -> Group:
    """Return everything about one group, ready to print.

    Args:
        look: the group.
        width: width of the terminal in characters.
        now_ms: current epoch time, for the time until the next rebalance.
        tasks: whether to list every task.
        cut: whether client names may be cut to fit the width.
    """
    parts: list[RenderableType] = [Sentence(f"{look.summary}{_counts(look)}", style="bold")]
    if look.members:
        parts.append(_head(look, now_ms))
        parts.append(Text())
        parts.append((_clients if look.is_streams else _stock)(look, width, cut=cut))
        left = (len(look.clients) if look.is_streams else len(look.members)) - CLIENTS_SHOWN
        if left > 0:
            parts.append(Text(f"{left} more are not shown; --format json lists all", style="dim"))
        parts += topology_change(look, client_names(look))
    elif look.facts.has_topics or look.facts.committed:
        parts += [_head(look, now_ms), Text(), _topics(look)]
    if look.streams_group is not None:
        parts += streams_parts(look.streams_group, look.lag, width, tasks=tasks, cut=cut)
    if tasks and look.tasks:
        parts += [Text(), _tasks(look, width, cut=cut)]
    if look.findings:
        parts += [Text(), *_findings(look)]
    return Group(*parts)


def _counts(look: GroupInspection) -> str:
    if not look.is_streams:
        return ""
    copies = sum(len(task.standbys) for task in look.tasks)
    counts = ((len(look.clients), "client"), (len(look.tasks), "task"), (copies, "standby task"))
    return "; " + ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts)


def _head(look: GroupInspection, now_ms: int) -> TextTable:
    head = text_grid(gap=2)
    head.add_column(no_wrap=True, style="dim")
    head.add_column(overflow="fold")
    for name, value in _head_rows(look, now_ms):
        head.add_row(name, line(value))
    return head


def _head_rows(look: GroupInspection, now_ms: int) -> Iterator[tuple[str, str]]:
    if look.versions is not None:
        yield "version", look.versions.sentence.removeprefix("version ")
    if look.leader is not None:
        yield "leader", f"{_leader(look.leader, len(look.members))} ({look.leader.why})"
    if look.topologies is not None:
        yield "topology", topology_versions(look.topologies, client_names(look))
    if look.is_streams:
        yield "next", _next(look.next_rebalance_ms, now_ms)
    why = "" if look.facts.committed else " (no committed offsets, or not authorized to read them)"
    yield "lag", f"not known{why}" if look.lag is None else f"{look.lag:,} records"
    if not look.members:
        return
    share = 100 * look.record_bytes / look.record_limit
    assumed = "" if look.limit_known else "; assumes the default limit"
    yield (
        "record",
        f"about {look.record_bytes:,} of {look.record_limit:,} bytes ({share:.1f} %{assumed})",
    )


def _leader(look: LeaderLook, members: int) -> str:
    if look.known:
        return few(look.candidates)
    is_narrowed = 0 < len(look.candidates) < members
    return f"one of {few(look.candidates)}" if is_narrowed else "not known"


def _next(next_ms: int, now_ms: int) -> str:
    if next_ms == NO_REBALANCE:
        return "no rebalance is scheduled"
    if next_ms == 0:
        return "an immediate rebalance, to assign tasks that their old owners have given up"
    at = utc_time(next_ms, "%H:%M:%S UTC")
    left = (next_ms - now_ms) // 1000
    when = f"in {left // 60} m {left % 60} s" if left >= 0 else f"{-left} s ago"
    return f"a probing rebalance at {at} ({when}), while copies warm up"


def _clients(look: GroupInspection, width: int, *, cut: bool) -> TextTable:
    has_warmups = any(client.warmup is not None for client in look.clients)
    table = plain_table("client", "wrote", "got", "release")
    for column in table.columns[1:3]:
        column.no_wrap = True
    table.columns[3].min_width = _RELEASE_WIDTH
    for name in ("active", "standby", *["warm"] * has_warmups, "lag", "behind"):
        table.add_column(name, justify="right", no_wrap=True)
    places = [_places(member) for member in look.members] if width >= WIDE else []
    place_names = [name for name in _PLACES if any(place[name] for place in places)]
    for name in place_names:
        table.add_column(name, overflow="fold")
    names = client_names(look)
    rows = []
    for client in _chosen(look):
        for row, member in _client_rows(client, names[client.process], has_warmups=has_warmups):
            place = _places(member)
            rows.append([*map(cell, row), *(cell(place[name]) for name in place_names)])
    _shrink(table, rows, width, cut=cut)
    for cells in rows:
        table.add_row(*cells)
    return table


def _chosen(look: GroupInspection) -> Sequence[ClientLook]:
    """Return the clients to show, at most `CLIENTS_SHOWN`, in their order."""
    if len(look.clients) <= CLIENTS_SHOWN:
        return look.clients
    holders = {holder.process for holder in look.versions.holders} if look.versions else set()
    first = sorted(look.clients, key=lambda client: client.process not in holders)[:CLIENTS_SHOWN]
    chosen = {client.process for client in first}
    return [client for client in look.clients if client.process in chosen]


def _shrink(table: TextTable, rows: Sequence[Sequence[Text]], width: int, *, cut: bool) -> None:
    """Make a table fit the width: wrap releases first, then cut client names."""
    heads = [len(str(column.header)) for column in table.columns]
    widths = [
        max(head, *sizes) for head, *sizes in zip(heads, *(map(len, r) for r in rows), strict=True)
    ]
    # A long location is folded instead of cutting names.
    widths[-len(_PLACES) :] = [
        min(column_width, _NAME_MOST) for column_width in widths[-len(_PLACES) :]
    ]
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    if excess > 0 and widths[3] > _RELEASE_WRAPPED:
        excess -= widths[3] - _RELEASE_WRAPPED
        table.columns[3].max_width = _RELEASE_WRAPPED
    if excess > 0 and cut:
        table.columns[0].max_width = max(NAME_LEAST, widths[0] - excess)


def client_names(look: GroupInspection) -> dict[str, str]:
    """Return process -> display name; a long client id is cut to its shortest unique prefix."""
    clients = [client.client for client in look.clients]
    return {
        client.process: short_id(client.client, clients)
        if len(client.client) > _NAME_MOST
        else client.client
        for client in look.clients
    }


_PLACES = ("rack", "tags", "endpoint", "host")


def _places(look: MemberLook) -> dict[str, str]:
    """Return the location columns of a member: rack, tags, endpoint, host."""
    tags = ", ".join(f"{key}={value}" for key, value in look.tags.items())
    values = (look.rack, tags, look.endpoint, look.described.client_host)
    return {name: value or "" for name, value in zip(_PLACES, values, strict=True)}


def _client_rows(
    client: ClientLook, name: str, *, has_warmups: bool
) -> Iterator[tuple[list[str | Text], MemberLook]]:
    """Yield a row for the client, and one per thread if it has several."""
    first, several = client.members[0], len(client.members) > 1
    behind = max((lag for lag in client.state_lags.values() if lag is not None), default=None)
    yield (
        [
            Text(cell(name).plain, style="bold"),
            *(("", "", "") if several else (_wrote(first), _got(first), _release(first))),
            str(len(client.active)),
            _kept(client.standby, client.warmup),
            *[_counted(client.warmup)] * has_warmups,
            number(client.lag),
            number(behind) if client.state_lags else "",
        ],
        first,
    )
    for member in client.members if several else ():
        answer, described = member.answer, member.described
        thread = thread_name(described).removeprefix("Stream") or described.member_id
        yield (
            [
                f"  {thread}",
                *(_wrote(member), _got(member), _release(member)),
                str(len(answer.active)),
                _kept(answer.standby, answer.warmup),
                *[_counted(answer.warmup)] * has_warmups,
                *("", ""),
            ],
            member,
        )


def _wrote(look: MemberLook) -> str:
    if not look.used:
        return "?"
    both = str(look.used) if look.supported == UNKNOWN_VERSION else f"{look.used}/{look.supported}"
    is_trailer = look.native is not None and look.used != look.native
    return f"{both}+{look.native}" if is_trailer else both


def _got(look: MemberLook) -> str:
    if not look.answer.version:
        return "?"
    following = look.answer.next_version
    has_next_version = following not in (0, look.used)
    return (
        f"{look.answer.version} \N{RIGHTWARDS ARROW} {following}"
        if has_next_version
        else f"{look.answer.version}"
    )


def _release(look: MemberLook) -> Text:
    is_odd = bool(look.evidence.pinned) or look.pin is not None or bool(look.unreadable)
    return Text(look.evidence.spelled, style="yellow" if is_odd else "")


def _kept(standby: Sequence[TaskId], warmup: Sequence[TaskId] | None) -> str:
    """Return the number of standby tasks that are not warm-ups."""
    return str(len(set(standby) - set(warmup or ())))


def _counted(tasks: Sequence[TaskId] | None) -> str:
    return "?" if tasks is None else str(len(tasks))


def _stock(look: GroupInspection, width: int, *, cut: bool) -> TextTable:
    table = plain_table("client", "member", "topics", right=("partitions",))
    if width >= WIDE:
        table.add_column("host")
    for consumer in look.members[:CLIENTS_SHOWN]:
        member = consumer.described.instance_id or consumer.described.member_id
        topics = line(", ".join(consumer.topics))
        place = [consumer.described.client_host] * (width >= WIDE)
        table.add_row(consumer.client, member, topics, str(len(consumer.answer.partitions)), *place)
    if cut:
        table.columns[0].max_width = name_width(width)
    return table


def _topics(look: GroupInspection) -> TextTable:
    """Return the topics of a group without members."""
    table = plain_table("topic", right=("partitions", "committed", "lag"))
    for row in offsets_by_topic(look):
        count = "none" if row.partitions is None else str(row.partitions)
        is_read = bool(row.committed)
        committed = str(len(row.committed)) if is_read else ""
        table.add_row(cell(row.topic), count, committed, number(row.lag) if is_read else "")
    return table


def _tasks(look: GroupInspection, width: int, *, cut: bool) -> TextTable:
    names = client_names(look)
    table = plain_table("task", "reads", "runs on", "copies on", right=("lag", "state"))
    if cut:
        table.columns[0].max_width = name_width(width)
    for task in look.tasks:
        table.add_row(
            str(task.task),
            line(", ".join(f"{read.topic}-{read.partition}" for read in task.inputs) or "?"),
            line(", ".join(names[process] for process in task.owners) or "no client"),
            line(", ".join(names[process] for process in task.standbys)),
            number(task.lag),
            "" if task.end_sum is None else f"{task.end_sum:,}",
        )
    return table


def _findings(look: GroupInspection) -> Iterator[RenderableType]:
    for finding in look.findings:
        is_note = finding.kind in NOTES
        style = "red" if finding.kind in _BAD else "dim" if is_note else "yellow"
        mark = text_grid(gap=1)
        mark.add_column(no_wrap=True)
        mark.add_column(overflow="fold")
        mark.add_row(line("-" if is_note else "!", style), line(finding.sentence))
        yield mark
