"""``assignor assign``: problems in, one answer a line out, for as long as the stream lasts.

A problem that makes no sense is answered in its place with its error, so that the others are
answered all the same; the exit status says in the end that there was one.
"""

import json
import sys
import time
from collections.abc import Iterator
from typing import IO, Any

import click

from assignor.cli.assign_text import print_answer, print_rounds
from assignor.config import setting_value
from assignor.errors import ConfigError
from assignor.problem import LagMemory, Problem, parse_problem, read_problem, result_of
from assignor.problem_events import play_problem
from assignor.simulate import Round, totals
from assignor.state import Strategy
from assignor.strategies import STRATEGIES, named_strategy, run_strategy
from encoding import RebalanceError

LINE_LIMIT = 1 << 30

_HELP = (
    """Place the tasks of groups: problems in (JSON lines), one answer a line out.

\b
Examples:
  assignor assign --problem groups.jsonl --format text
  assignor assign --problem groups.jsonl --simulate --format text
  assignor assign --problem - --strategy sticky --config num.standby.replicas=1 < groups.jsonl
  assignor assign --problem - --strategy my_module:my_strategy < groups.jsonl

A strategy is one of these names, or MODULE:CALLABLE of your own:
  """
    + ", ".join(sorted(STRATEGIES))
    + """

Exit status: 0 all were answered, 1 with --simulate a group never settled, 2 a problem or an option
makes no sense (it is answered in its place with its error, the others all the same).
"""
)


class BadInput(click.ClickException):
    """One sentence on stderr, exit status 2."""

    exit_code = 2


@click.command(help=_HELP, short_help="Place the tasks of groups.")
@click.option("--problem", "problems", type=click.File("rb"), required=True, metavar="FILE|-")
@click.option("--strategy", "name", default="high_availability", help="[high_availability]")
@click.option("--config", "settings", multiple=True, metavar="KEY=VALUE", help="Wins over FILE's.")
@click.option("--simulate", is_flag=True, help="Play rounds until no follow-up is asked for.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def assign(
    *, problems: IO[bytes], name: str, settings: tuple[str, ...], simulate: bool, style: str
) -> None:
    """Entry point of the subcommand."""
    try:
        strategy = named_strategy(name)
    except ConfigError as error:
        raise BadInput(f"{error}.") from None
    given = dict(setting_of(text) for text in settings)
    memory = LagMemory()
    failed = endless = False
    for number, line in enumerate(problem_lines(problems), start=1):
        label = ""
        try:
            data = parse_problem(line, number=number)
            label = data.get("name", "") if isinstance(data.get("name"), str) else ""
            problem = read_problem(data, settings=given, memory=memory)
            if simulate:
                endless |= not _simulate(problem, strategy, name, style)
            else:
                _answer(problem, strategy, name, style)
        except RebalanceError as error:
            failed = True
            click.echo(f"line {number}, {label or 'no name'}: {error}", err=True)
            if style == "json":
                _emit({"name": label, "error": str(error)})
    sys.exit(2 if failed else int(endless))


def setting_of(text: str) -> tuple[str, Any]:
    """One KEY=VALUE of --config."""
    key, sign, value = text.partition("=")
    if not sign:
        raise BadInput(f"--config {text} has no value; write KEY=VALUE.")
    return key, setting_value(key, value)


def problem_lines(stream: IO[bytes]) -> Iterator[str]:
    """Lines that are not blank; one that is too long ends the stream as its last line."""
    while line := stream.readline(LINE_LIMIT):
        if len(line) >= LINE_LIMIT:
            raise BadInput(f"a line is longer than {LINE_LIMIT} bytes; split the groups.")
        if line.strip():
            yield line.decode("utf-8", errors="replace")


def _answer(problem: Problem, strategy: Strategy, name: str, style: str) -> None:
    started = time.perf_counter()
    assignment = run_strategy(problem.state, strategy)
    millis = (time.perf_counter() - started) * 1000
    if style == "json":
        _emit(result_of(problem, assignment, assignor=name, millis=millis))
    else:
        print_answer(problem, assignment, strategy=name, millis=millis)


def _simulate(problem: Problem, strategy: Strategy, name: str, style: str) -> bool:
    """Play a problem; False when it never settled."""
    started = time.perf_counter()
    phases = list(play_problem(problem, strategy))
    millis = (time.perf_counter() - started) * 1000
    is_settled = all(not rounds[-1].assignment.followup for _, rounds in phases)
    last = phases[-1][1][-1]
    if style == "json":
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
    return Problem(name=problem.name, state=last.state, data=problem.data)


def _emit(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
    sys.stdout.flush()
