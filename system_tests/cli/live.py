"""``rolling-bounce live``: bounce real processes, print trace and verdict, end with a status."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from assignor.cli import EXIT_INTERRUPTED, Command, format_option, say, text_console
from assignor.interrupts import handle_interrupts
from encoding import shown
from probing import ReleaseError
from system_tests.cli.live_members import check_client, print_lines
from system_tests.cli.options import (
    EXIT_BAD,
    EXIT_ENVIRONMENT,
    EXIT_USAGE,
    given_again,
    options_of,
    path_options,
    read_options,
    refuse,
    report_option,
)
from system_tests.cli.streams_rehearsal import rehearse_streams_move
from system_tests.cli.topology_change import TOPOLOGY_CHANGES, change_topology
from system_tests.errors import EnvironmentFailureError
from system_tests.live import (
    HELD_VERSION,
    LiveOptions,
    LivePlan,
    OrderError,
    Outcome,
    PathError,
    PlainScreen,
    RecordingScreen,
    SilentScreen,
    TerminalScreen,
    check_order,
    conflict_of,
    find_member,
    member_names,
    outcome_json,
    plan_path,
    run_live_bounce,
    story_of_live,
    summary_lines,
)
from system_tests.plan import NOT_REHEARSED, STREAMS
from system_tests.real import broker_release
from system_tests.report import ReportError, check_report, write_report
from system_tests.trace import LEGEND

_LEFT_OUT = "\n".join(
    fill(f"- {sentence}", 76, subsequent_indent="  ") for sentence in NOT_REHEARSED
)
_NOTES = f"""
\b
The trace has a lane per member:
{LEGEND}

\b
Not rehearsed, as plan says, too:
{_LEFT_OUT}
"""
_EXAMPLES = """
PROGRAM live --from 3.1 --to native --members 3 --seed 7
PROGRAM live --from 0.10.2 --to 2.0  # in two bounces
PROGRAM live --from 0.10.2 --to 2.0 --no-pin  # what happens without it
PROGRAM live --from 2.8 --to 3.2 --members 5 --kill leader
PROGRAM live --from 3.1 --to native --format json | jq .checks
PROGRAM live --from 3.1 --to native --report bounce.html
PROGRAM live --from 2.8 --to native --broker kafka:3.9  # a real Kafka
PROGRAM live --from 3.1 --to native --members 4 --client mixed
PROGRAM live --from 2.3 --to native --protocol cooperative
PROGRAM live --from 3.1 --to native --replace-brokers
PROGRAM live --from native --to next --static  # without a rebalance
PROGRAM live --from native --to native --topology change
PROGRAM live --from 4.4 --to streams --broker kafka:4.4  # and back
"""
_EXITS = {
    0: "good: every check holds",
    1: "bad: a check failed, a member ended by itself, or the group did not settle in time",
    2: "an impossible path",
    3: "no broker, no Java, a port in use, a report that cannot be made",
}


@click.command(
    "live",
    cls=Command,
    short_help="Bounce a group of real processes, and check what happened.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@path_options()
@options_of(LiveOptions)
@format_option()
@report_option("; not with --to streams")
@click.option("--verbose", is_flag=True, help="With --format json: write the trace to stderr.")
@click.option(
    "--topology",
    type=click.Choice(TOPOLOGY_CHANGES),
    help="With --from native --to native: change the application instead of the release.",
)
def live(
    old: str,
    new: str,
    form: str,
    report: Path | None,
    *,
    verbose: bool,
    topology: str | None,
    **values: Any,
) -> None:
    """Bounce a group of real processes, one by one, and check what happened.

    Real consumers, one process each, read a topic while records are written to it. They emulate
    RELEASE: x.y for its newest patch, x.y.z, or native. --to streams moves real JVM members to the
    streams protocol (KIP-1071) and back.
    """
    if topology is not None:
        change_topology(topology, old, new, read_options(LiveOptions, values), form=form)
    if new.lower() == STREAMS:
        if report is not None:
            refuse("--to streams draws no report; leave --report out")
        rehearse_streams_move(old, read_options(LiveOptions, values), form=form)
    options, plan = _checked(read_options(LiveOptions, values), old, new)
    if report is not None:
        with _refused_report():
            check_report(report)
    title = f"{plan.before.release} -> {plan.stages[-1].release}, seed {options.seed}"
    screen = _screen(form, title, options, verbose=verbose)
    recording = RecordingScreen(screen)
    # Set for both: a shell starts background jobs with SIGINT ignored.
    handle_interrupts(signal.SIGTERM, signal.SIGINT)
    try:
        with screen:
            outcome = run_live_bounce(options, plan, recording)
    except EnvironmentFailureError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    except KeyboardInterrupt:
        refuse("interrupted; every member and the broker are stopped", EXIT_INTERRUPTED)
    _print(outcome, plan, options, form=form)
    if report is not None:
        replay = given_again(without={"report", "form"})
        story = story_of_live(outcome, plan, options, lines=recording.lines, replay=replay)
        with _refused_report():
            write_report(report, story)
    sys.exit(0 if outcome.ok else EXIT_BAD)


def _checked(options: LiveOptions, old: str, new: str) -> tuple[LiveOptions, LivePlan]:
    """Check everything that can be checked before a process starts, and plan the path."""
    names = member_names(options.members)
    try:
        if options.broker is not None:
            options = replace(options, broker=broker_release(options.broker))
        check_order(options.order, names)
        if options.kill not in (None, "leader"):
            find_member(options.kill, names)
        plan = plan_path(old, new, options.switches)
    except (OrderError, ReleaseError, PathError) as error:
        refuse(str(error), EXIT_USAGE)
    if (conflict := conflict_of(options, new=new)) is not None:
        refuse(conflict)
    check_client(options.client)
    if options.hold_back:
        last = plan.before.latest_version if options.take_back else HELD_VERSION
        plan = replace(plan, promised_versions=(min(last, HELD_VERSION),))
    return options, plan


def _screen(
    form: str, title: str, options: LiveOptions, *, verbose: bool
) -> PlainScreen | TerminalScreen:
    """Return where the trace is shown."""
    names = member_names(options.members)
    if form == "json":
        return (PlainScreen if verbose else SilentScreen)(sys.stderr, names)
    if sys.stdout.isatty():
        return TerminalScreen(text_console(), names, title=title)
    return PlainScreen(sys.stdout, names)


def _print(outcome: Outcome, plan: LivePlan, options: LiveOptions, *, form: str) -> None:
    if form == "json":
        click.echo(outcome_json(outcome, plan, options))
    else:
        print_lines(summary_lines(outcome, plan))
    sys.stdout.flush()
    if outcome.death is not None:
        for line in () if outcome.death.explained else outcome.death.last_lines:
            click.echo(shown(f"  {outcome.death.member}| {line}", limit=None), err=True)
        if plan.advice is not None:
            say("rolling-bounce", plan.advice)


@contextmanager
def _refused_report() -> Iterator[None]:
    try:
        yield
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
