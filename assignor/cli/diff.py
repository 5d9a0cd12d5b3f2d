"""``assignor diff``: which tasks move between two assignments of a group, and why."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO, Any

import click
from rich.text import Text

from assignor.cli.assign.command import chosen_strategy, given_settings
from assignor.cli.assign.lines import problem_lines
from assignor.cli.assign.output import output_on_stderr
from assignor.cli.assign.text import shortener, work_line
from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.exit_status import BadInput, say
from assignor.cli.toolkit.options import (
    config_option,
    format_option,
    name_option,
    problem_option,
    strategies_note,
    strategy_option,
)
from assignor.cli.toolkit.text import Sentence, text_console
from assignor.errors import ConfigError
from assignor.explain import Facts, Move, answer_of, diff_of, facts_of, joined, regrouped, trace_of
from assignor.placement import (
    NOBODY,
    STRATEGIES,
    GroupState,
    TaskAssignment,
    Trace,
    run_with_trace,
    work_of,
)
from assignor.problems import parse_problem, read_problem
from encoding import RebalanceError

_SHOWN, _PAIRS = 6, 6
_TITLES = {
    "active": "active tasks that move",
    "waiting": "active tasks that stay until a copy has caught up",
    "warm-up": "new warm-ups",
    "standby": "new standbys",
    "dropped": "dropped copies",
}
_HELP = f"""Show which tasks move between two assignments, and why.

The output lists moves of active tasks, new standbys and warm-ups, dropped copies, and the number of
records to restore.

A and B are files with one JSON object per line: problems (a group and its current tasks) or results
(the output of `assignor assign --format json`). Lines with the same name belong together.

\b
  problem to result: the moves of that assignment
  problem to problem: the moves between the two states
  result to result: the moves if B follows A; add --problem with the group
  --problem alone: the moves of the strategy

{strategies_note()}
"""
_EXAMPLES = """
PROGRAM diff --problem groups.jsonl --name join-1
PROGRAM diff groups.jsonl answers.jsonl
PROGRAM diff before.jsonl after.jsonl --problem groups.jsonl --format json
"""


@click.command(
    "diff",
    cls=Command,
    help=_HELP,
    short_help="Show which tasks move between two assignments, and why.",
    examples=_EXAMPLES,
    exits={0: "all groups are compared", 2: "a file or a line is invalid"},
)
@click.argument("a", type=click.File("rb"), required=False)
@click.argument("b", type=click.File("rb"), required=False)
@problem_option(required=False)
@name_option
@strategy_option()
@config_option
@click.option("--tasks", is_flag=True, help="Also list every task.")
@format_option()
def diff(
    *,
    a: IO[bytes] | None,
    b: IO[bytes] | None,
    problem: IO[bytes] | None,
    name: str | None,
    strategy: str,
    settings: tuple[str, ...],
    tasks: bool,
    form: str,
) -> None:
    """Entry point of the subcommand."""
    if (a is None) != (b is None) or (a is None and problem is None):
        raise BadInput("give two files, or --problem FILE alone to run the strategy")
    chosen, given = chosen_strategy(strategy), given_settings(settings)
    try:
        groups = {} if problem is None else _by_name(problem, name)
        before = groups if a is None else _by_name(a, name)
        after = {} if b is None else _by_name(b, name)
    except RebalanceError as error:
        raise BadInput(str(error)) from None
    if not before:
        raise BadInput(
            f"the file has no group {name!r}; omit --name to compare all groups"
            if name
            else "the file has no group; `assignor inspect --save` writes one"
        )
    failed = False
    for label, data in before.items():
        try:
            if b is None:
                read = read_problem(data, settings=given)
                state = read.state
                with output_on_stderr():
                    answer, trace = run_with_trace(state, chosen)
            else:
                state, answer, trace = _two(label, data, after, groups, name=strategy, given=given)
        except RebalanceError as error:
            failed = True
            say("assignor", f"group {label or 'without a name'}: {error}")
            continue
        shorten = shortener(state) if form == "text" else None
        facts = facts_of(state, answer, trace=trace, name=shorten)
        if form == "json":
            click.echo(json.dumps(_as_json(label, facts), separators=(",", ":")))
        else:
            _print(label, facts, show_all=tasks)
    sys.exit(2 if failed else 0)


def _by_name(stream: IO[bytes], wanted: str | None) -> dict[str, dict[str, Any]]:
    """Return the lines by name; of lines with the same name the first is used, with a message."""
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(problem_lines(stream), start=1):
        data = parse_problem(line, number=number)
        label = str(data.get("name", ""))
        if wanted is not None and label != wanted:
            continue
        if label in found:
            which = f"group {label}" if label else "a group without a name"
            say("assignor", f"line {number}: {which} occurs again; the first line is used")
        found.setdefault(label, data)
    return found


def _two(
    label: str,
    data: dict[str, Any],
    after: Mapping[str, dict[str, Any]],
    groups: Mapping[str, dict[str, Any]],
    *,
    name: str,
    given: Mapping[str, Any],
) -> tuple[GroupState, TaskAssignment, Trace | None]:
    """Return the group before, its answer, and the trace of the first strategy with this answer."""
    if label not in after:
        raise ConfigError("B has no line with this name; lines are compared by name")
    other = after[label]
    is_problem, other_is_problem = ("subtopologies" in d for d in (data, other))
    group = data if is_problem else groups.get(label, other if other_is_problem else None)
    if group is None:
        raise ConfigError("A and B are both results; add --problem FILE with the group")
    state = read_problem(group, settings=given).state
    if not is_problem:
        state = regrouped(state, answer_of(state, data, "A"))
    if other_is_problem:
        state = joined(state, read_problem(other, settings=given).state)
    answer = answer_of(state, other, "B")
    names = (
        [str(other.get("assignor")), name, *sorted(STRATEGIES)] if not other_is_problem else [name]
    )
    traces = (trace_of(state, answer, strategy) for strategy in dict.fromkeys(names))
    return state, answer, next((trace for trace in traces if trace is not None), None)


def _work_json(state: GroupState, answer: TaskAssignment) -> dict[str, Any]:
    """Return each client's work before and after; empty if tasks have no weights."""
    if state.weights is None:
        return {}
    places = {"before": state.owner, "after": answer.active}
    work = {when: work_of(state, active).round(3).tolist() for when, active in places.items()}
    return {"work": {when: dict(zip(state.clients, work[when], strict=True)) for when in work}}


def _as_json(label: str, facts: Facts) -> dict[str, Any]:
    found = diff_of(facts)
    return {
        "name": label,
        "counts": {
            **asdict(found.counts),
            "stay": found.stay,
            "restored_records": found.restored_records,
            **({"unknown_restores": found.unknown_restores} if found.unknown_restores else {}),
        },
        **_work_json(facts.state, facts.assignment),
        "groups": [
            {"kind": kind, "rule": rule, "count": len(moves)}
            for kind, rule, moves in found.groups()
        ],
        "moves": [
            {
                "kind": move.kind,
                "task": str(facts.state.tasks[move.task]),
                "from": facts.client_id(move.source),
                "to": facts.client_id(move.client),
                "rule": move.reason.rule,
                "why": move.reason.why,
                "records": move.records,
            }
            for move in found.moves
        ],
        "probing": facts.assignment.followup,
        "look_again": facts.assignment.look_again,
    }


def _print(label: str, facts: Facts, *, show_all: bool) -> None:
    console, found, state = text_console(), diff_of(facts), facts.state
    head = f"{label or 'group'}: {len(state.tasks)} tasks, {len(state.clients)} clients"
    console.print(Sentence(head, style="bold"))
    counts, unknown = found.counts, found.unknown_restores
    also = f" (not known for {unknown} of the copies)" if unknown else ""
    console.print(
        Text(
            f"kept {found.stay}, hand-offs {counts.handoffs}, take-overs {counts.takeovers}, "
            f"stateless moves {counts.stateless_moves}, restores {counts.restores}, "
            f"records to restore {found.restored_records:,}{also}"
        )
    )
    if state.weights is not None:
        console.print(Sentence(f"before: {work_line(state, state.owner)}"))
        console.print(Sentence(f"after: {work_line(state, facts.assignment.active)}"))
    last = ""
    for kind, rule, moves in found.groups():
        if kind != last:
            console.print(Text(_TITLES[kind], style="bold"))
        last = kind
        console.print(Text(f"  {len(moves):>4}  {rule}"))
        for line in _lines_of(facts, moves, show_all=show_all):
            console.print(Sentence(f"        {line}"))
    if not found.moves:
        console.print("nothing moves")
    if facts.assignment.followup:
        console.print("a follow-up rebalance is requested, to move tasks to caught-up copies")
    console.print()


def _lines_of(facts: Facts, moves: list[Move], *, show_all: bool) -> list[str]:
    if show_all:
        return [f"{_way(facts, m)}  {facts.state.tasks[m.task]}: {m.reason.why}" for m in moves]
    by_way: dict[str, list[Move]] = {}
    for move in moves:
        by_way.setdefault(_way(facts, move), []).append(move)
    count = Counter({way: len(part) for way, part in by_way.items()})
    lines = []
    for way, number in count.most_common(_PAIRS):
        names = " ".join(str(facts.state.tasks[m.task]) for m in by_way[way][:_SHOWN])
        more = f" and {number - _SHOWN} more" if number > _SHOWN else ""
        lines.append(f"{way}  {names}{more}")
    if len(by_way) > _PAIRS:
        lines.append(f"... and {len(by_way) - _PAIRS} more client pairs; list them with --tasks")
    first = moves[0]
    lines.append(f"for example {facts.state.tasks[first.task]}: {first.reason.why}")
    return lines


def _way(facts: Facts, move: Move) -> str:
    """Return the clients of a move: `a -> b` for an active task, `on a` for a copy."""
    if move.kind == "dropped":
        return f"on {facts.name(move.source)}"
    if move.kind in {"warm-up", "standby"}:
        return f"on {facts.name(move.client)}"
    source = "no client" if move.source == NOBODY else facts.name(move.source)
    return f"{source} -> {facts.name(move.client)}"
