"""``assignor assign``: reads one problem per line and writes one assignment per line.

For an invalid problem, or one without a valid assignment, an error is written in its place. The
other problems are assigned, and the exit status is 2.
"""

import sys
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import IO

import click

from assignor.cli.assign.answers import Answer, Assigner, Options, rare_collections
from assignor.cli.assign.lines import problem_lines
from assignor.cli.assign.output import output_on_stderr
from assignor.cli.assign.workers import answers_of_workers
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
from assignor.placement import Strategy, named_strategy
from assignor.problems import LagMemory

_ERRORS_SHOWN = 5

_HELP = f"""Assign the tasks of groups to their clients: one answer per group, in input order.

{strategies_note()}
"""
_EXAMPLES = """
PROGRAM assign --problem groups.jsonl
PROGRAM assign --problem groups.jsonl --simulate
PROGRAM assign --problem groups.jsonl --format json --workers 4
PROGRAM assign --problem - --strategy sticky < groups.jsonl
PROGRAM assign --problem groups.jsonl --config num.standby.replicas=1
PROGRAM assign --problem - --strategy my_module:my_strategy < groups.jsonl
"""
_EXITS = {
    0: "all groups are assigned",
    1: "with --simulate: at least one group never settled",
    2: "an invalid group gets an `error` line; the other groups are processed",
    3: "a worker process ended early",
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
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes; the answers are the same, in the same order.",
)
@format_option()
def assign(
    *,
    problem: IO[bytes],
    strategy: str,
    settings: tuple[str, ...],
    simulate: bool,
    workers: int,
    form: str,
) -> None:
    """Entry point of the subcommand."""
    chosen_strategy(strategy)
    options = Options(
        strategy=strategy,
        settings=given_settings(settings),
        simulate=simulate,
        form=form,
        encoding=sys.stdout.encoding,
        is_terminal=sys.stdout.isatty(),
    )
    many = answers_of_workers(problem, options, workers) if workers > 1 else None
    with closing(many or _answers_here(problem, options)) as answers:
        sys.exit(_print(answers))


def _answers_here(stream: IO[bytes], options: Options) -> Generator[Answer, None, None]:
    """Answer the lines in this process."""
    assigner, memory = Assigner(options), LagMemory()
    with rare_collections():
        for number, line in enumerate(problem_lines(stream), start=1):
            yield assigner.answer(number, line, memory)


def _print(answers: Iterable[Answer]) -> int:
    """Print answers in order; return the exit status."""
    failures, endless = 0, False
    for answer in answers:
        if answer.error:
            failures += 1
            if failures <= _ERRORS_SHOWN:
                say("assignor", answer.error)
        endless |= answer.is_endless
        sys.stdout.write(answer.text)
        sys.stdout.flush()
    if failures > _ERRORS_SHOWN:
        say("assignor", f"and {failures - _ERRORS_SHOWN} more lines with errors")
    return 2 if failures else int(endless)


def chosen_strategy(name: str) -> Strategy:
    """Return the strategy of this name.

    Raises:
        BadInput: no strategy has this name.
    """
    try:
        with output_on_stderr():
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
