"""``rolling-bounce soak``: options in, trace, figures and verdict out, exit status."""

import signal
import sys
from math import isfinite
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import click

from assignor.cli import EXIT_INTERRUPTED, Command, format_option, timeout_option
from probing import ReleaseError
from system_tests.cli.live_members import (
    broker_option,
    check_client,
    client_option,
    print_lines,
    rate_option,
)
from system_tests.cli.options import (
    EXIT_BAD,
    EXIT_SURROUNDINGS,
    EXIT_USAGE,
    MAX_MEMBERS,
    partitions_option,
    refuse,
    seed_option,
    session_timeout_option,
)
from system_tests.errors import SurroundingsError
from system_tests.live import PlainScreen, SilentScreen
from system_tests.real import broker_release
from system_tests.soak import (
    SPARE_LANES,
    Journal,
    Soak,
    SoakOptions,
    judge_soak,
    outcome_document,
    outcome_json,
    summary_lines,
)

_EMBEDDED = "embedded"

_EXAMPLES = """
PROGRAM soak --minutes 3
PROGRAM soak --minutes 60 --rate 200 --seed 7 --out soak.jsonl
PROGRAM soak --minutes 20 --client mixed
PROGRAM soak --minutes 20 --broker kafka:4 --format json | jq .checks
"""
_NOTES = """
Ctrl-C ends it early, with the figures and the verdict so far; a second one ends it at once.
"""
_EXITS = {
    0: "the verdict is good",
    1: "it is not: a record lost, two owners, not settled, a member that ended or grew",
    3: "no broker, no Java",
}


@click.command(
    "soak",
    cls=Command,
    short_help="Disturb a group of real processes for an hour, and say what it cost.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@click.option(
    "--minutes",
    type=click.FloatRange(0.1, 60 * 24 * 30),
    default=60.0,
    show_default=True,
    help="How long; what has begun then is brought to its end.",
)
@click.option(
    "--members",
    type=click.IntRange(3, MAX_MEMBERS - SPARE_LANES),
    default=4,
    show_default=True,
    help="Processes; two more come and go.",
)
@partitions_option(most=200)
@rate_option
@seed_option(default=7)
@broker_option(metavar="embedded|kafka:RELEASE", default=_EMBEDDED)
@client_option
@session_timeout_option(2000)
@click.option(
    "--calm",
    "calm_s",
    type=click.FloatRange(0, 3600),
    default=4.0,
    show_default=True,
    help="Seconds without a disturbance after each, at least; at most twice as many.",
)
@timeout_option(
    "How long to wait; for the group to settle after each disturbance.", least=1, default=60.0
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write; every event, as a line of JSON, at once.",
)
@format_option()
def soak(**given: Any) -> None:
    """Disturb a group of real processes for an hour, and say what it cost.

    Members are bounced between releases, killed, paused, come and go, and the broker fails, one
    after the other, while records flow. Nothing may be lost, no partition may have two owners, the
    group must settle each time, and no process may grow. Needs the extra `soak`.
    """
    options = _options(given)
    stopping = _stop_on_signals()
    stream = sys.stderr if given["form"] == "json" else sys.stdout
    screen = (SilentScreen if given["form"] == "json" else PlainScreen)(stream, options.names)
    try:
        with Journal(given["out"]) as journal, screen:
            outcome = Soak(options, screen=screen, journal=journal, stopping=stopping).run()
            verdict = judge_soak(outcome)
            journal.write("verdict", **outcome_document(outcome, verdict, options))
    except SurroundingsError as error:
        refuse(str(error), EXIT_SURROUNDINGS)
    except KeyboardInterrupt:
        refuse("interrupted; every member and the broker are stopped", EXIT_INTERRUPTED)
    if given["form"] == "json":
        click.echo(outcome_json(outcome, verdict, options))
    else:
        print_lines(summary_lines(outcome, verdict, options))
    sys.exit(0 if verdict.ok else EXIT_BAD)


def _options(given: dict[str, Any]) -> SoakOptions:
    """Check everything that can be checked before anything is started."""
    broker = given["broker"]
    try:
        release = None if broker == _EMBEDDED else broker_release(broker)
    except ReleaseError as error:
        refuse(f"{error}; or say {_EMBEDDED}", EXIT_USAGE)
    check_client(given["client"])
    # A range takes no notice of nan.
    for name in ("minutes", "rate", "calm_s", "timeout"):
        if not isfinite(given[name]):
            refuse(f"{name.removesuffix('_s')} must be a number; give a finite one", EXIT_USAGE)
    return SoakOptions(
        minutes=given["minutes"],
        members=given["members"],
        partitions=given["partitions"],
        rate=given["rate"],
        seed=given["seed"],
        broker=release,
        client=given["client"],
        session_timeout_ms=given["session_timeout_ms"],
        calm_s=given["calm_s"],
        settle_timeout_s=given["timeout"],
    )


def _stop_on_signals() -> Event:
    """The first signal asks for the verdict so far, the second ends everything at once."""
    stopping = Event()

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 signal's signature
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    return stopping
