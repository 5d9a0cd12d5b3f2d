"""``rolling-bounce soak``: disturb real processes, print figures and verdict, end with a status."""

import signal
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import click

from assignor.cli import EXIT_INTERRUPTED, Command, format_option
from assignor.interrupts import handle_interrupts
from probing import ReleaseError
from system_tests.cli.live_members import check_client, print_lines
from system_tests.cli.options import (
    EXIT_BAD,
    EXIT_ENVIRONMENT,
    EXIT_USAGE,
    options_of,
    read_options,
    refuse,
)
from system_tests.errors import EnvironmentFailureError
from system_tests.live import PlainScreen, SilentScreen
from system_tests.real import broker_release
from system_tests.soak import (
    EMBEDDED,
    Journal,
    SoakOptions,
    check_soak,
    outcome_document,
    outcome_json,
    run_soak,
    summary_lines,
)

_EXAMPLES = """
PROGRAM soak --minutes 3
PROGRAM soak --minutes 60 --rate 200 --seed 7 --out soak.jsonl
PROGRAM soak --minutes 20 --client mixed
PROGRAM soak --minutes 20 --broker kafka:4 --format json | jq .checks
"""
_NOTES = """
Ctrl-C ends the soak early, with figures and verdict so far; a second Ctrl-C ends it at once.
"""
_EXITS = {
    0: "good: every check holds",
    1: "bad: a check failed (a record lost, two owners, not settled, a member ended, a leak)",
    3: "no broker, no Java",
}


@click.command(
    "soak",
    cls=Command,
    short_help="Disturb a group of real processes for an hour, and report what it cost.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@options_of(SoakOptions)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File for the events, one line of JSON each, written at once.",
)
@format_option()
def soak(out: Path | None, form: str, **values: Any) -> None:
    """Disturb a group of real processes for an hour, and report what it cost.

    Members are bounced between releases, killed, paused, added and removed, and the broker fails,
    one after the other, while records flow. No record may be lost, no partition may have two
    owners, the group must settle each time, and no process may grow. Needs the extra `soak`.
    """
    options = _checked(read_options(SoakOptions, values))
    stopping = Event()
    handle_interrupts(signal.SIGTERM, signal.SIGINT, first=stopping.set)
    stream = sys.stderr if form == "json" else sys.stdout
    screen = (SilentScreen if form == "json" else PlainScreen)(stream, options.names)
    try:
        with Journal(out) as journal, screen:
            outcome = run_soak(options, screen=screen, journal=journal, stopping=stopping)
            verdict = check_soak(outcome)
            journal.write("verdict", **outcome_document(outcome, verdict, options))
    except EnvironmentFailureError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    except KeyboardInterrupt:
        refuse("interrupted; every member and the broker are stopped", EXIT_INTERRUPTED)
    if form == "json":
        click.echo(outcome_json(outcome, verdict, options))
    else:
        print_lines(summary_lines(outcome, verdict, options))
    sys.exit(0 if verdict.ok else EXIT_BAD)


def _checked(options: SoakOptions) -> SoakOptions:
    """Check everything that can be checked before a process starts."""
    check_client(options.client)
    if options.broker is None:
        return options
    try:
        return replace(options, broker=broker_release(options.broker))
    except ReleaseError as error:
        refuse(f"{error}; or {EMBEDDED}", EXIT_USAGE)
