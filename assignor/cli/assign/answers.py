"""Answer one line of a problem file: what is printed for it, on stdout and on stderr.

A line is answered in the process of the command or in a worker process (`workers`), by the same
functions. What they print is caught, so that the command prints the answers in the order of the
lines.
"""

import gc
import io
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assignor.cli.assign.lines import line_error
from assignor.cli.assign.output import output_on_stderr
from assignor.cli.assign.text import print_answer, print_rounds
from assignor.placement import (
    LAG_UNKNOWN,
    GroupState,
    Strategy,
    error_line,
    named_strategy,
    run_with_trace,
)
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

# Objects made before the garbage collector looks for cycles; a group makes thousands, and no cycle.
_GARBAGE = 50_000


class _Caught(io.StringIO):
    """Text that is to be printed on another stream, formatted for that stream."""

    encoding = ""

    def __init__(self, encoding: str, *, is_terminal: bool) -> None:
        super().__init__()
        self.encoding = encoding
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self._is_terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command, and the stream that answers are printed on.

    Attributes:
        strategy: its name, or MODULE:CALLABLE.
        settings: override the settings of the groups.
        simulate: whether to simulate rebalances until none is requested.
        form: text or json.
        encoding: of stdout.
        is_terminal: whether stdout is a terminal.
    """

    strategy: str
    settings: Mapping[str, object]
    simulate: bool
    form: str
    encoding: str
    is_terminal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the command prints for a line.

    Attributes:
        text: for stdout.
        error: sentence for stderr that names the line; empty if the group is assigned.
        name: of the group, which may be empty; None if the problem cannot be read.
        is_endless: whether a simulated group never settled.
    """

    text: str
    error: str = ""
    name: str | None = None
    is_endless: bool = False


class Assigner:
    """Answers lines with one strategy."""

    def __init__(self, options: Options) -> None:
        """Load the strategy.

        Raises:
            ConfigError: no strategy has this name.
        """
        self._options = options
        with output_on_stderr():
            self._strategy = named_strategy(options.strategy)

    def answer(self, number: int, line: bytes, memory: LagMemory) -> Answer:
        """Return what is printed for a line; a group that cannot be assigned becomes an error.

        Args:
            number: of the line, from 1.
            line: the problem.
            memory: lags at the last rebalance; updated if the problem can be read.
        """
        given, label, name = self._options, "", None
        caught = _Caught(given.encoding, is_terminal=given.is_terminal)
        try:
            data = parse_problem(line, number=number)
            label = data.get("name", "") if isinstance(data.get("name"), str) else ""
            problem = read_problem(data, settings=given.settings, memory=memory)
            name = problem.name
            with redirect_stdout(caught):
                answer = _simulate if given.simulate else _answer
                is_settled = answer(problem, self._strategy, given.strategy, given.form)
        except (RebalanceError, MemoryError, GeneratorExit) as error:
            why = str(error) if isinstance(error, RebalanceError) else _failed(error)
            group = f"group {shown(label)}" if label else "group without a name"
            if given.form == "json":
                with redirect_stdout(caught):
                    _emit({"name": label, "error": why})
            sentence = line_error(number, why, group)
            return Answer(text=caught.getvalue(), error=sentence, name=name)
        return Answer(text=caught.getvalue(), name=name, is_endless=not is_settled)


def _failed(error: BaseException) -> str:
    """Return why a group cannot be assigned whose strategy or size raised this."""
    if isinstance(error, MemoryError):
        return f"the group needs more memory than the process has, {error_line(error)}"
    return f"the strategy failed, {error_line(error)}"


@contextmanager
def rare_collections() -> Iterator[None]:
    """Return a context in which the garbage collector runs rarely, and skips what exists now."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_GARBAGE, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _answer(problem: Problem, strategy: Strategy, name: str, form: str) -> bool:
    """Print the assignment of a group; True."""
    started = time.perf_counter()
    with output_on_stderr():
        assignment, trace = run_with_trace(problem.state, strategy)
    millis = (time.perf_counter() - started) * 1000
    found = measures_of(problem.state, assignment, trace)
    if form == "json":
        _emit(result_of(problem, assignment, assignor=name, millis=millis, measures=found))
    else:
        print_answer(problem, assignment, strategy=name, millis=millis, measures=found)
    return True


def _simulate(problem: Problem, strategy: Strategy, name: str, form: str) -> bool:
    """Simulate a problem and print the result; False if it never settled."""
    started = time.perf_counter()
    with output_on_stderr():
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
