"""``assignor write-back``: write kept copies of state stores back to their changelogs."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assignor.cli.toolkit import AnswerIsNo, Command, say
from assignor.cli.toolkit.connect import NO_BROKER, check_stopped, connected, target_of
from assignor.cli.toolkit.state_dirs import state_errors, state_options
from assignor.cli.toolkit.text import SENTENCE_LIMIT, print_line
from assignor.embedding.write_back import (
    InputMove,
    KeptTask,
    TaskWriter,
    WriteBackPlan,
    open_kept,
    plan_task,
    refuse_topics,
)
from assignor.stores import StoreError
from encoding import TopicPartition, shown

if TYPE_CHECKING:
    from assignor.adapters.admin import Admin, Target
    from assignor.adapters.kafka_python import KafkaChangelogs

_HELP = """Write kept copies of state stores back to changelogs that have lost records.

A member that ends because a changelog was deleted, made anew or cut off keeps the copies of its
tasks: files that end in .kept say why. Stop all members of the application, then run this command
for the state directory of each member that has such files. Without --execute it shows what it
would do. With it, the changelogs get exactly what the copies have, and the committed offsets of the
group are set to where the copies have the input, so that members process again what came later.

If several members have kept the same task, the copy with the most input counts, in any order of the
commands. A run that was interrupted can be repeated.
"""


@click.command(
    "write-back",
    cls=Command,
    help=_HELP,
    short_help="Write kept copies of state stores back to changelogs that have lost records.",
    examples="""
PROGRAM write-back --state-dir state/one --bootstrap-server b:9092
PROGRAM write-back --state-dir state/one --bootstrap-server b:9092 --execute
""",
    exits={
        0: "everything is written back, or nothing is kept; without --execute: it can be",
        1: "refused: the group has members, a process uses the directory, or a topic or a copy is"
        " not right, or cannot be read or written; what is refused stays kept, the other tasks are"
        " done",
        3: f"{NO_BROKER}, or the directory cannot be used; what is not done stays kept",
    },
)
@state_options(
    several=False,
    state_help="State directory of a member that is stopped.",
    execute_help="Write; by default nothing is changed.",
)
def write_back(*, state_dir: Path, execute: bool, form: str, **where: Any) -> None:
    """Entry point of the subcommand."""
    target = target_of(where["bootstrap_server"], where["command_config"], where["timeout"])
    with state_errors(), open_kept(state_dir, is_read_only=not execute) as kept:
        results = _run(target, kept, is_executed=execute) if kept else []
    if form == "json":
        click.echo(json.dumps({"executed": execute, "tasks": [_object(row) for row in results]}))
    elif not results:
        print_line(f"nothing is kept in {state_dir}")
        if not any(state_dir.glob("*_*/")):
            say(
                "assignor", f"{state_dir} has no task's directory, as 0_1; is it a state directory?"
            )
    else:
        _print(results, is_executed=execute)
    refused = [row for row in results if row.plan.refusals]
    for row in refused:
        for sentence in row.plan.refusals:
            say("assignor", f"task {row.kept.task}: {sentence}")
    if refused:
        raise AnswerIsNo(f"{len(refused)} of {len(results)} tasks are refused, and stay kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """A task: what is done, and store -> number of entries to write or remove."""

    kept: KeptTask
    plan: WriteBackPlan
    differing: Mapping[str, int]


def _run(target: "Target", kept: Sequence[KeptTask], *, is_executed: bool) -> list[_Result]:
    with connected(target) as admin:
        from assignor.adapters.kafka_python import KafkaChangelogs  # noqa: PLC0415 an extra

        for group_id in sorted({each.application_id for each in kept if not each.problem}):
            check_stopped(admin, group_id)
        settings: Any = {"bootstrap_servers": list(target.servers), **target.settings}
        with closing(KafkaChangelogs(**settings)) as access:
            return [_result(admin, access, each, is_executed=is_executed) for each in kept]


def _result(
    admin: "Admin", access: "KafkaChangelogs", kept: KeptTask, *, is_executed: bool
) -> _Result:
    """Return what is done for a task; what is wrong with one does not keep the others from it."""
    try:
        return _run_task(admin, access, kept, is_executed=is_executed)
    except StoreError as error:
        return _Result(kept=kept, plan=WriteBackPlan(refusals=(str(error),)), differing={})


def _run_task(
    admin: "Admin", access: "KafkaChangelogs", kept: KeptTask, *, is_executed: bool
) -> _Result:
    from assignor.adapters.admin import (  # noqa: PLC0415 an extra
        cleanup_policies,
        partition_counts,
        set_offsets,
    )

    if kept.problem:
        return _Result(kept=kept, plan=WriteBackPlan(refusals=(kept.problem,)), differing={})
    changelogs = {s.changelog.topic for s in kept.stores.values()}
    changelogs |= {changelog.topic for changelog in kept.missing.values()}
    admin.again()
    counts = partition_counts(admin, changelogs | kept.topics)
    policies = cleanup_policies(admin, changelogs & counts.keys())
    refusals = refuse_topics(kept, counts, policies)
    if refusals:
        return _Result(kept=kept, plan=WriteBackPlan(refusals=refusals), differing={})

    def set_all(offsets: Mapping[TopicPartition, int]) -> None:
        admin.again()
        check_stopped(admin, kept.application_id)
        set_offsets(admin, kept.application_id, offsets)

    number = kept.task.partition
    inputs = [TopicPartition(t, number) for t in sorted(kept.topics) if number < counts[t]]
    writer = TaskWriter(kept, access, set_all)
    with writer.restored() as found:
        plan = plan_task(kept, found, access.input_state(kept.application_id, inputs))
        differing = {} if plan.refusals else writer.differing(found)
        if is_executed and not plan.refusals:
            writer.execute(found, plan)
    return _Result(kept=kept, plan=plan, differing=differing)


def _print(results: Sequence[_Result], *, is_executed: bool) -> None:
    for row in results:
        kept = row.kept
        if row.plan.refusals:
            done = "is refused, and stays kept"
        else:
            done = "is written back" if is_executed else "can be written back"
        print_line(f"task {kept.task} of {kept.application_id or '?'} {done}")
        for name, count in sorted(row.differing.items()):
            print_line(f"  store {name}: {count} entries to write or remove in its changelog")
        for move in row.plan.moves:
            print_line(f"  {_move_text(move)}")
        if kept.why:
            print_line(shown(f"  kept because: {kept.why}", limit=SENTENCE_LIMIT))
    if not is_executed and not all(row.plan.refusals for row in results):
        print_line("nothing was changed; add --execute to write")


def _move_text(move: InputMove) -> str:
    """Return what becomes of a committed offset.

    >>> _move_text(InputMove(partition=TopicPartition("words", 0), copy=80, committed=100, to=80))
    'words-0: the copy has input up to 80; committed offset 100 -> 80: back by 20'
    """
    has = "has none of it" if move.copy is None else f"has input up to {move.copy}"
    before = "none" if move.committed is None else str(move.committed)
    to = "stays" if move.to is None else f"-> {move.to}"
    step = (move.committed or 0) - (move.to or 0)
    way = "" if move.to is None or not step else ": back by" if step > 0 else ": forward by"
    way = f"{way} {abs(step)}" if way else ""
    why = f" ({move.why})" if move.why else ""
    topic, number = move.partition
    return f"{topic}-{number}: the copy {has}; committed offset {before} {to}{way}{why}"


def _object(row: _Result) -> dict[str, object]:
    return {
        "task": str(row.kept.task),
        "group": row.kept.application_id,
        "why": row.kept.why,
        "stores": {name: str(s.file or "") for name, s in sorted(row.kept.stores.items())},
        "entries": dict(row.differing),
        "inputs": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "copy": move.copy,
                "committed": move.committed,
                "to": move.to,
                "why": move.why,
            }
            for move in row.plan.moves
        ],
        "refused": list(row.plan.refusals),
    }
