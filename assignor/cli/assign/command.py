"""``assignor assign``: reads one problem per line and writes one assignment per line.

For an invalid problem, or one without a valid assignment, an error is written in its place. The
other problems are assigned, and the exit status is 2.
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
from assignor.placement import LAG_UNKNOWN, GroupState, Strategy, named_strategy, run_with_trace
from assignor.problems import (
    LagMemory,
    Problem,
    Round,
    measures_of,
    parse_problem,
    play_problem,
    read_problem,
    result_of,
    totals,
)
from encoding import RebalanceError, shown

LINE_LIMIT = 1 << 30
_ERRORS_SHOWN = 5

_HELP = f"""Assign the tasks of groups to their clients: one answer per group, in input order.

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
    0: "all groups are assigned",
    1: "with --simulate: at least one group never settled",
    2: "an invalid group gets an `error` line; the other groups are processed",
}


@click.command(
    "assign",
    cls=Command,
    help=_HELP,
    short_help="Assign the tasks of groups to their clients.",
    examples=_EXAMPLES,
    exits=_EXITS,
)
@problem_option()
@strategy_option()
@config_option
@click.option("--simulate", is_flag=True, help="Simulate rebalances until none is requested.")
@format_option()
def assign(
    *, problem: IO[bytes], strategy: str, settings: tuple[str, ...], simulate: bool, form: str
) -> None:
    """Entry point of the subcommand."""
    chosen, given = chosen_strategy(strategy), given_settings(settings)
    memory = LagMemory()
    failures, endless = 0, False
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
            failures += 1
            if failures <= _ERRORS_SHOWN:
                group = f"group {shown(label)}" if label else "group without a name"
                say("assignor", line_error(number, error, group))
            if form == "json":
                _emit({"name": label, "error": str(error)})
    if failures > _ERRORS_SHOWN:
        say("assignor", f"and {failures - _ERRORS_SHOWN} more lines with errors")
    sys.exit(2 if failures else int(endless))


def line_error(number: int, error: RebalanceError, group: str = "") -> str:
    """Return the message for an invalid line, which names its number once.

    Args:
        number: the line's number, from 1.
        error: what is wrong with the line; broken JSON names the line itself.
        group: the group of the line, for the message; empty to leave it out.
    """
    if str(error).startswith(f"line {number}"):
        return str(error)
    return f"line {number}, {group}: {error}" if group else f"line {number}: {error}"


def chosen_strategy(name: str) -> Strategy:
    """Return the strategy of this name.

    Raises:
        BadInput: no strategy has this name.
    """
    try:
        return named_strategy(name)
    except ConfigError as error:
        raise BadInput(str(error)) from None


def given_settings(settings: Iterable[str]) -> dict[str, object]:
    """Return the settings that ``--config`` gives.

    Raises:
        BadInput: a text is not KEY=VALUE.
    """
    try:
        return settings_of(settings)
    except ConfigError as error:
        raise BadInput(str(error)) from None


def problem_lines(stream: IO[bytes]) -> Iterator[str]:
    """Yield the lines that are not blank.

    Raises:
        BadInput: a line is too long; the lines before it have been yielded.
    """
    while line := stream.readline(LINE_LIMIT):
        if len(line) >= LINE_LIMIT:
            raise BadInput(f"a line is longer than {LINE_LIMIT} bytes; split the groups")
        if line.strip():
            yield line.decode("utf-8", errors="replace")


def _answer(problem: Problem, strategy: Strategy, name: str, form: str) -> None:
    started = time.perf_counter()
    assignment, trace = run_with_trace(problem.state, strategy)
    millis = (time.perf_counter() - started) * 1000
    found = measures_of(problem.state, assignment, trace)
    if form == "json":
        _emit(result_of(problem, assignment, assignor=name, millis=millis, measures=found))
    else:
        print_answer(problem, assignment, strategy=name, millis=millis, measures=found)


def _simulate(problem: Problem, strategy: Strategy, name: str, form: str) -> bool:
    """Simulate a problem and print the result; False if it never settled."""
    started = time.perf_counter()
    phases = list(play_problem(problem, strategy))
    millis = (time.perf_counter() - started) * 1000
    is_settled = all(not rounds[-1].assignment.followup for _, rounds in phases)
    last = phases[-1][1][-1]
    if form == "json":
        final = _at_the_end(problem, last)
        answer = result_of(final, last.assignment, assignor=name, millis=millis)
        rounds = [round_ for _, part in phases for round_ in part]
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
    """Return the group before the last round, with a warning if end offset sums are not known."""
    warnings = (*last.state.warnings, *_unknown_ends(last.state))
    return replace(problem, state=replace(last.state, warnings=warnings))


def _unknown_ends(state: GroupState) -> tuple[str, ...]:
    """Return a warning about unknown end offset sums in a simulation; () if all are known."""
    total = int(state.stateful.sum())
    unknown = np.flatnonzero(state.stateful & (state.end_offset_sums == LAG_UNKNOWN)).tolist()
    if not unknown:
        return ()
    example = f" (for example {state.tasks[unknown[0]]})" if len(unknown) < total else ""
    warning = (
        f"the end offset sum of {len(unknown)} of the {total} stateful tasks{example} is not "
        "known: the simulation assumes that a new copy of such a task catches up within one round; "
        "a real leader cannot know; give the sums in end_offset_sums"
    )
    return (warning,)


def _emit(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
    sys.stdout.flush()
