"""``assignor diff``: what moves between two looks at a group, and why each of it."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import IO, Any

import click
from rich.text import Text

from assignor.cli.assign.command import chosen_strategy, given_settings, problem_lines
from assignor.cli.assign.text import work_line
from assignor.cli.explain import shortener
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
from assignor.explain import Facts, Move, answer_of, diff_of, facts_of, joined, regrouped
from assignor.placement import NOBODY, STRATEGIES, GroupState, TaskAssignment, run_strategy, work_of
from assignor.problems import parse_problem, read_problem
from encoding import RebalanceError

_SHOWN, _PAIRS = 6, 6
_TITLES = {
    "active": "active: run elsewhere",
    "waiting": "active: stay for now",
    "warm-up": "warm-ups",
    "standby": "standbys",
    "dropped": "copies given up",
}
_HELP = f"""Say what moves, and why: actives, standbys, warm-ups, copies given up, records restored.

A and B are files of JSON lines, problems (a group as it is) or results (what `assignor assign
--format json` answers); lines are paired by name. From a problem to a result: what that answer
changes. From a problem to a problem: what changed between. From a result to a result: what would
move if B came after A; add --problem for the group. With --problem alone: what the strategy moves.

{strategies_note()}
"""
_EXAMPLES = """
PROGRAM diff --problem groups.jsonl --name join-1
PROGRAM diff groups.jsonl answers.jsonl
PROGRAM diff ours.jsonl theirs.jsonl --problem groups.jsonl --format json
"""


@click.command(
    "diff",
    cls=Command,
    help=_HELP,
    short_help="Say what moves between two looks at a group, and why.",
    examples=_EXAMPLES,
    exits={0: "compared", 2: "a file or a line makes no sense"},
)
@click.argument("a", type=click.File("rb"), required=False)
@click.argument("b", type=click.File("rb"), required=False)
@problem_option(required=False)
@name_option
@strategy_option()
@config_option
@click.option("--tasks", is_flag=True, help="List every task, too.")
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
        raise BadInput("give two files, or --problem FILE alone to ask the strategy")
    chosen, given = chosen_strategy(strategy), given_settings(settings)
    try:
        groups = {} if problem is None else _by_name(problem, name)
        before = groups if a is None else _by_name(a, name)
        after = {} if b is None else _by_name(b, name)
    except RebalanceError as error:
        raise BadInput(str(error)) from None
    if not before:
        raise BadInput(
            f"no group {name!r} in the file; leave --name out to see all"
            if name
            else "no group in the file; `assignor inspect --save` writes one"
        )
    failed = False
    for label, data in before.items():
        try:
            if b is None:
                read = read_problem(data, settings=given)
                state, answer = read.state, run_strategy(read.state, chosen)
                tried: tuple[str, ...] = (strategy,)
            else:
                state, answer, tried = _two(label, data, after, groups, name=strategy, given=given)
        except RebalanceError as error:
            failed = True
            say("assignor", f"{label or 'no name'}: {error}")
            continue
        facts = _facts(state, answer, tried, is_short=form == "text")
        if form == "json":
            click.echo(json.dumps(_as_json(label, facts), separators=(",", ":")))
        else:
            _print(label, facts, show_all=tasks)
    sys.exit(2 if failed else 0)


def _by_name(stream: IO[bytes], wanted: str | None) -> dict[str, dict[str, Any]]:
    """Lines by name; of several with the same name the first, and that is said."""
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(problem_lines(stream), start=1):
        data = parse_problem(line, number=number)
        label = str(data.get("name", ""))
        if wanted is not None and label != wanted:
            continue
        if label in found:
            say("assignor", f"line {number}: {label or 'no name'} again; the first counts")
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
) -> tuple[GroupState, TaskAssignment, tuple[str, ...]]:
    """The group before, what it is given, and strategies whose answer that may be."""
    if label not in after:
        raise ConfigError("B has no line of that name; names pair the lines")
    other = after[label]
    is_problem, other_is_problem = ("subtopologies" in d for d in (data, other))
    group = data if is_problem else groups.get(label, other if other_is_problem else None)
    if group is None:
        raise ConfigError("A and B are results; add --problem FILE with the group")
    state = read_problem(group, settings=given).state
    if not is_problem:
        state = regrouped(state, answer_of(state, data, "A"))
    if other_is_problem:
        state = joined(state, read_problem(other, settings=given).state)
    answer = answer_of(state, other, "B")
    names = (
        [str(other.get("assignor")), name, *sorted(STRATEGIES)] if not other_is_problem else [name]
    )
    return state, answer, tuple(dict.fromkeys(n for n in names if n in STRATEGIES))


def _facts(
    state: GroupState, answer: TaskAssignment, tried: Iterable[str], *, is_short: bool
) -> Facts:
    """Facts with the steps of the first strategy that gives this answer, or without steps."""
    shorten = shortener(state) if is_short else None
    found = [facts_of(state, answer, name=shorten)]
    for strategy in tried:
        found.append(facts_of(state, answer, strategy=strategy, name=shorten))
        if found[-1].plan is not None:
            return found[-1]
    return found[0]


def _client(facts: Facts, client: int) -> str | None:
    return None if client == NOBODY else facts.state.clients[client]


def _work_json(state: GroupState, answer: TaskAssignment) -> dict[str, Any]:
    """The work of each client before and after; nothing where tasks have no weights."""
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
                "from": _client(facts, move.source),
                "to": _client(facts, move.client),
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
    also = f", and an unknown number for {unknown} of the copies" if unknown else ""
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
        console.print("a follow-up rebalance is wanted, when copies have come up")
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
        lines.append(f"... and {len(by_way) - _PAIRS} more ways; --tasks shows them")
    first = moves[0]
    lines.append(f"e.g. {facts.state.tasks[first.task]}: {first.reason.why}")
    return lines


def _way(facts: Facts, move: Move) -> str:
    """From where to where, as the kind of move has it."""
    if move.kind == "dropped":
        return f"on {facts.name(move.source)}"
    if move.kind in {"warm-up", "standby"}:
        return f"on {facts.name(move.client)}"
    source = "nobody" if move.source == NOBODY else facts.name(move.source)
    return f"{source} -> {facts.name(move.client)}"
