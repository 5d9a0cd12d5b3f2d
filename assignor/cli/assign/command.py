"""``assignor assign``: problems in, one answer a line out, for as long as the stream lasts.

An invalid problem, or one that the strategy has no valid answer for, is answered in its place with
its error, and the others are answered all the same; the exit status then is 2.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any

import click
import numpy as np

from assignor.cli.assign.text import print_answer, print_rounds
from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.exit_status import BadInput, say
from assignor.cli.toolkit.options import (
    config_option,
    format_option,
    problem_option,
    settings_of,
    strategies_note,
    strategy_option,
)
from assignor.errors import ConfigError
from assignor.placement import LAG_UNKNOWN, GroupState, Strategy, named_strategy, run_strategy
from assignor.problems import (
    LagMemory,
    Problem,
    Round,
    parse_problem,
    play_problem,
    read_problem,
    result_of,
    totals,
)
from encoding import RebalanceError, shown

LINE_LIMIT = 1 << 30

_HELP = f"""Place the tasks of groups: one answer a line, in the order of the groups.

{strategies_note()}
"""
_EXAMPLES = """
PROGRAM assign --problem groups.jsonl
PROGRAM assign --problem groups.jsonl --simulate
PROGRAM assign --problem - --strategy sticky < groups.jsonl
PROGRAM assign --problem groups.jsonl --config num.standby.replicas=1
PROGRAM assign --problem - --strategy my_module:my_strategy < groups.jsonl
"""
_EXITS = {
    0: "all groups were answered",
    1: "with --simulate: a group never settled",
    2: "a group is answered by its error, the others all the same",
}


@click.command(
    "assign",
    cls=Command,
    help=_HELP,
    short_help="Place the tasks of groups.",
    examples=_EXAMPLES,
    exits=_EXITS,
)
@problem_option()
@strategy_option()
@config_option
@click.option("--simulate", is_flag=True, help="Play rounds until no follow-up is asked for.")
@format_option()
def assign(
    *, problem: IO[bytes], strategy: str, settings: tuple[str, ...], simulate: bool, form: str
) -> None:
    """Entry point of the subcommand."""
    chosen, given = chosen_strategy(strategy), given_settings(settings)
    memory = LagMemory()
    failed = endless = False
    for number, line in enumerate(problem_lines(problem), start=1):
        label = ""
        try:
            data = parse_problem(line, number=number)
            label = data.get("name", "") if isinstance(data.get("name"), str) else ""
            read = read_problem(data, settings=given, memory=memory)
            if simulate:
                endless |= not _simulate(read, chosen, strategy, form)
            else:
                _answer(read, chosen, strategy, form)
        except RebalanceError as error:
            failed = True
            say("assignor", f"line {number}, {shown(label) or 'no name'}: {error}")
            if form == "json":
                _emit({"name": label, "error": str(error)})
    sys.exit(2 if failed else int(endless))


def chosen_strategy(name: str) -> Strategy:
    """The strategy of that name; there being none ends the command."""
    try:
        return named_strategy(name)
    except ConfigError as error:
        raise BadInput(str(error)) from None


def given_settings(settings: Iterable[str]) -> dict[str, object]:
    """What ``--config`` says; what makes no sense ends the command."""
    try:
        return settings_of(settings)
    except ConfigError as error:
        raise BadInput(str(error)) from None


def problem_lines(stream: IO[bytes]) -> Iterator[str]:
    """Lines that are not blank; one that is too long ends the stream as its last line."""
    while line := stream.readline(LINE_LIMIT):
        if len(line) >= LINE_LIMIT:
            raise BadInput(f"a line is longer than {LINE_LIMIT} bytes; split the groups")
        if line.strip():
            yield line.decode("utf-8", errors="replace")


def _answer(problem: Problem, strategy: Strategy, name: str, form: str) -> None:
    started = time.perf_counter()
    assignment = run_strategy(problem.state, strategy)
    millis = (time.perf_counter() - started) * 1000
    if form == "json":
        _emit(result_of(problem, assignment, assignor=name, millis=millis))
    else:
        print_answer(problem, assignment, strategy=name, millis=millis)


def _simulate(problem: Problem, strategy: Strategy, name: str, form: str) -> bool:
    """Play a problem; False when it never settled."""
    started = time.perf_counter()
    phases = list(play_problem(problem, strategy))
    millis = (time.perf_counter() - started) * 1000
    is_settled = all(not rounds[-1].assignment.followup for _, rounds in phases)
    last = phases[-1][1][-1]
    if form == "json":
        final = _at_the_end(problem, last)
        answer = result_of(final, last.assignment, assignor=name, millis=millis)
        rounds = [one for _, part in phases for one in part]
        _emit(
            {
                **answer,
                "settled": is_settled,
                **totals(rounds),
                "phases": [{"event": event, **totals(part)} for event, part in phases],
            }
        )
    else:
        print_rounds(problem.name, phases, is_settled=is_settled, strategy=name)
        print_answer(_at_the_end(problem, last), last.assignment, strategy=name, millis=millis)
    return is_settled


def _at_the_end(problem: Problem, last: Round) -> Problem:
    """The group before the last round, with a warning where end offset sums are not known."""
    warnings = (*last.state.warnings, *_unknown_ends(last.state))
    return replace(problem, state=replace(last.state, warnings=warnings))


def _unknown_ends(state: GroupState) -> tuple[str, ...]:
    """What the simulation takes unknown end offset sums for, in a sentence; () if all are known."""
    total = int(state.stateful.sum())
    unknown = np.flatnonzero(state.stateful & (state.end_offset_sums == LAG_UNKNOWN)).tolist()
    if not unknown:
        return ()
    which = f"none of the {total} stateful tasks has a known"
    if len(unknown) < total:
        verb = "has" if len(unknown) == 1 else "have"
        which = f"{len(unknown)} of the {total} stateful tasks, {state.tasks[unknown[0]]} for one,"
        which = f"{which} {verb} no known"
    said = "the simulation takes a copy of such a task as caught up one round after it is placed"
    more = "though no leader could tell; give them in end_offset_sums"
    return (f"{which} end offset sum: {said}, {more}",)


def _emit(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
    sys.stdout.flush()
