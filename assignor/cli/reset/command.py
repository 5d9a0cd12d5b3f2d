"""``assignor reset``: take an application back to its beginning."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assignor.cli.reset.options import position_options, reset_to
from assignor.cli.reset.plan import (
    Asked,
    OffsetMove,
    Reset,
    ResetTo,
    ResetTopics,
    Where,
    offset_moves,
    topics_of,
    unnamed_topics,
)
from assignor.cli.reset.text import print_reset, reset_object
from assignor.cli.toolkit import AnswerIsNo, BadInput, Command, imported_topology
from assignor.cli.toolkit.connect import NO_BROKER, check_stopped, connected, target_of
from assignor.cli.toolkit.state_dirs import state_errors, state_options
from assignor.embedding import local_tasks
from assignor.errors import ConfigError, TopologyError
from assignor.inspection import few, groups_below, is_internal
from encoding import TopicPartition, shown
from encoding.primitives import shell_word

if TYPE_CHECKING:
    from assignor.adapters.admin import Admin, Target

_HELP = """Take an application back to its beginning, as Kafka's application reset tool does.

The committed offsets of its input topics are set, its changelogs and repartition topics are
deleted, and with --state-dir the state of all tasks in state directories of this machine. Members
then process the input again and build their state from it; outputs are written again, too. Stop all
members before. Without --execute the command shows what it would do.

The topics are those of --topology, or exactly those that are named. Topics of other applications
are never touched, also if their names begin alike.

Give the command on each machine that has a state directory before a member starts there: a copy
that is left over fits no changelog, and a member that finds one ends. A run that was interrupted
can be repeated.
"""


@click.command(
    "reset",
    cls=Command,
    help=_HELP,
    short_help="Take an application back to its beginning: offsets, topics, state.",
    examples="""
PROGRAM reset --bootstrap-server b:9092 --group orders --topology app:FIRST
PROGRAM reset --bootstrap-server b:9092 --group orders --topology app:FIRST \\
    --state-dir state/one --state-dir state/two --execute
PROGRAM reset --bootstrap-server b:9092 --group orders --input-topic orders \\
    --internal-topic orders-counts-changelog --to-datetime 2026-01-31T00:00:00
""",
    exits={
        0: "reset; without --execute: it can be reset",
        1: "refused: the group has members, a topic does not exist, or a directory is in use or"
        " keeps copies; nothing is changed",
        3: f"{NO_BROKER}, or the disk cannot be read or written",
    },
)
@click.option("--group", metavar="GROUP", required=True, help="Group id (application.id).")
@click.option("--topology", metavar="MODULE:NAME", help="The topology, whose topics are reset.")
@click.option(
    "--input-topic", "inputs", metavar="TOPIC", multiple=True, help="An input, in its place."
)
@click.option(
    "--internal-topic",
    "internal",
    metavar="TOPIC",
    multiple=True,
    help="A topic to delete, besides those of --topology or in their place.",
)
@click.option(
    "--application-id", metavar="ID", help="Prefix of internal topics; default: the group id."
)
@position_options
@state_options(
    several=True,
    state_help="State directory of a member that is stopped, of which the tasks are removed.",
    execute_help="Reset; by default nothing is changed.",
)
def reset(
    *,
    group: str,
    application_id: str | None,
    state_dirs: tuple[Path, ...],
    execute: bool,
    form: str,
    **given: Any,
) -> None:
    """Entry point of the subcommand."""
    to = reset_to(given)
    prefix = application_id or group
    named = given.pop("internal")
    topics = _topics(prefix, given.pop("topology"), given.pop("inputs"), named)
    target = target_of(given["bootstrap_server"], given["command_config"], given["timeout"])
    with state_errors(), ExitStack() as opened:
        state = {
            path: opened.enter_context(local_tasks(path, topics.internal)) for path in state_dirs
        }
        asked = Asked(group=group, prefix=prefix, topics=topics, named=named, to=to, state=state)
        found = _reset(target, asked, is_executed=execute)
    if form == "json":
        click.echo(json.dumps(reset_object(group, found, is_executed=execute)))
    else:
        print_reset(group, found, is_executed=execute)


def _topics(
    prefix: str, topology: str | None, inputs: Sequence[str], internal: Sequence[str]
) -> ResetTopics:
    """Return the topics that the options name.

    Raises:
        BadInput: they do not fit together.
    """
    found = ResetTopics(inputs=(), internal=())
    if topology is not None:
        try:
            found = topics_of(imported_topology(topology), prefix)
        except (ConfigError, TopologyError) as error:
            raise BadInput(str(error)) from None
        if inputs:
            raise BadInput("--topology names the inputs; leave --input-topic out")
    foreign = [name for name in internal if not is_internal(name, prefix)]
    if foreign:
        raise BadInput(
            f"--internal-topic {shown(foreign[0])} is not {shown(prefix)}-NAME-changelog or "
            f"{shown(prefix)}-NAME-repartition: it is no internal topic of this application; a "
            "wrong --application-id?"
        )
    both = sorted({*internal} & {*inputs, *found.inputs})
    if both:
        raise BadInput(f"{shown(both[0])} is named as an input and as an internal topic")
    return ResetTopics(
        inputs=tuple(sorted({*found.inputs, *inputs})),
        internal=tuple(sorted({*found.internal, *internal})),
    )


def _reset(target: "Target", asked: Asked, *, is_executed: bool) -> Reset:
    with connected(target) as admin:
        found = _look(admin, asked)
        if is_executed:
            _execute(admin, asked.group, found)
    return found


def _look(admin: "Admin", asked: Asked) -> Reset:
    """Return what is to be reset.

    Raises:
        AnswerIsNo: something that is named is not there, or the group has members.
        BadInput: no topics are named.
    """
    from assignor.adapters.admin import (  # noqa: PLC0415 an extra
        committed_offsets,
        list_groups,
        partition_counts,
    )

    group, topics = asked.group, asked.topics
    groups = {each.group_id: each for each in list_groups(admin)}
    kind = groups[group].group_type if group in groups else ""
    if kind not in ("", "classic"):
        raise AnswerIsNo(
            f"group {shown(group)} has type {kind}: its members are no members of this project; "
            "reset it with Kafka's own tools"
        )
    for each in sorted({group, asked.prefix} & groups.keys()):
        check_stopped(admin, each)
    for other in groups_below(groups, asked.prefix):
        if others := [name for name in asked.named if name.startswith(f"{other}-")]:
            raise AnswerIsNo(
                f"--internal-topic {shown(others[0])} has the name of a topic of group "
                f"{shown(other)}; reset that one with --group {shell_word(other)}. If it is of "
                f"{shown(asked.prefix)}, give --topology"
            )
    counts = partition_counts(admin)
    unnamed = unnamed_topics(counts, topics, asked.prefix, groups)
    if not topics.inputs and not topics.internal:
        hint = f"; with names of internal topics: {few([*unnamed])}" if unnamed else ""
        raise BadInput(
            f"give --topology, or name topics with --input-topic, --internal-topic{hint}"
        )
    lost = [name for name in topics.inputs if name not in counts]
    if lost:
        raise AnswerIsNo(f"input topic {shown(lost[0])} does not exist; nothing is changed")
    partitions = {name: counts[name] for name in topics.internal if name in counts}
    committed = committed_offsets(admin, group)
    if group not in groups and not committed and not partitions:
        raise AnswerIsNo(
            f"there is no group {shown(group)}, and none of its internal topics; check --group"
        )
    return Reset(
        moves=_moves(admin, topics.inputs, counts, asked.to, committed),
        removed=frozenset(each for each in committed if each.topic in topics.internal),
        partitions=partitions,
        missing=tuple(name for name in topics.internal if name not in counts),
        unnamed=unnamed,
        state=asked.state,
    )


def _moves(
    admin: "Admin",
    inputs: Sequence[str],
    counts: Mapping[str, int],
    to: ResetTo,
    committed: Mapping[TopicPartition, int],
) -> tuple[OffsetMove, ...]:
    from assignor.adapters.admin import EARLIEST, LATEST, offsets_of_topics  # noqa: PLC0415 an extra

    every = [TopicPartition(name, number) for name in inputs for number in range(counts[name])]

    def checked(found: Mapping[TopicPartition, int], fault: Callable[[str], str]) -> None:
        for topic, number in every:
            if (topic, number) not in found:
                raise AnswerIsNo(f"{fault(f'{shown(topic)}-{number}')}; nothing is changed")

    timestamps = [EARLIEST, LATEST, *([to.value] if to.where is Where.TIME else [])]
    starts, ends, *times = (offsets_of_topics(admin, inputs, each) for each in timestamps)
    for found in (starts, ends, *times):
        checked(found, lambda name: f"{name} has no leader, so its offsets are not known")
    if to.where is Where.SHIFT:
        checked(committed, lambda name: f"--shift-by: no offset is committed for {name}")
    at_time = times[0] if times else {}
    return offset_moves(to, starts=starts, ends=ends, committed=committed, at_time=at_time)


def _execute(admin: "Admin", group: str, found: Reset) -> None:
    """Reset: first what the brokers refuse for a group with members."""
    from assignor.adapters.admin import (  # noqa: PLC0415 an extra
        BrokerError,
        delete_topics,
        remove_offsets,
        set_offsets,
    )

    admin.again()
    # As operators' tools commit: an offset of a member would say that there is state up to it.
    set_offsets(admin, group, {move.partition: move.to for move in found.moves}, metadata="")
    remove_offsets(admin, group, found.removed)
    admin.again()
    try:
        delete_topics(admin, found.partitions)
    except BrokerError as error:
        raise AnswerIsNo(
            f"offsets are set, and not all topics and no state is deleted: {error}; start no "
            "member before the reset is repeated, or records are counted twice"
        ) from None
    for tasks in found.state.values():
        for task in tasks:
            task.remove()
    admin.again()
    try:
        check_stopped(admin, group)
    except AnswerIsNo as error:
        raise AnswerIsNo(
            f"all is reset, but members joined meanwhile, so reset again: {error}"
        ) from None
