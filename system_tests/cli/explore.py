"""``rolling-bounce explore``: search all orders of a small bounce, print findings."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import click

from assignor.cli import Command, format_option, timeout_option, workers_option
from assignor.workers import WorkerLostError
from probing import RebalanceProtocol, ReleaseError
from system_tests.cli.options import (
    EXIT_BAD,
    EXIT_ENVIRONMENT,
    group_options,
    partitions_option,
    refuse,
)
from system_tests.cli.progress import LINE_EVERY_S, lines_every
from system_tests.engine import OptionError
from system_tests.explore import (
    ISSUES,
    Bounds,
    Explored,
    Placed,
    Progress,
    document,
    explore,
    findings_of_issue,
    lines_of,
    place,
)
from system_tests.sim import BounceOptions, Dimensions, Plan, plan_bounce

_NOTES = """
Without a rolling path between the releases, one bounce without a pin is explored.
"""
_EXAMPLES = """
PROGRAM explore --from 3.9.1 --to native  # one crash anywhere
PROGRAM explore --from 2.0.1 --to 2.3.0  # a known issue
PROGRAM explore --from 2.4.1 --to 2.5.1 --static --issue KAFKA-9821
PROGRAM explore --from 3.1 --to 3.9 --members 2 --crashes 2
PROGRAM explore --from native --to native --members 2 --views
"""
_EXITS = {
    0: "no rule can be broken, or only in the old release; an incomplete search is reported",
    1: "a rule can be broken, in the new release alone or by the upgrade",
}

_BOUNDS = Bounds()
_PROGRESS_S = 0.5
_CLEAR = "\r\x1b[K"


@click.command(
    "explore",
    cls=Command,
    short_help="Try every order in which a small group can be bounced.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@group_options(members=6, threads=4)
@partitions_option(most=100, default=None, more="; two per thread by default")
@click.option(
    "--crashes",
    type=click.IntRange(0, 4),
    default=1,
    show_default=True,
    help="Number of processes that are killed, at any time, and restarted unchanged.",
)
@click.option(
    "--max-states",
    type=click.IntRange(1),
    default=_BOUNDS.max_states,
    show_default=True,
    help="Stop the search after this many states; it is incomplete then.",
)
@click.option(
    "--more-states",
    type=click.IntRange(0),
    default=_BOUNDS.more_states,
    show_default=True,
    help="After the first finding, number of further states to visit for other rules.",
)
@click.option(
    "--protocol",
    type=click.Choice([protocol.value for protocol in RebalanceProtocol]),
    default=RebalanceProtocol.EAGER.value,
    show_default=True,
    help="How native members move partitions; with Kafka's members the release decides.",
)
@click.option("--endpoints", is_flag=True, help="Every process serves queries (host maps).")
@click.option(
    "--views",
    is_flag=True,
    help="As --endpoints; native leaders also send changes of the routing view.",
)
@click.option(
    "--standbys",
    type=click.IntRange(0, 3),
    default=0,
    show_default=True,
    help="Standby replicas (num.standby.replicas); they are complete at once.",
)
@timeout_option("Limit of the search, which is incomplete then; none by default.", least=0)
@click.option(
    "--issue",
    type=click.Choice([issue.id for issue in ISSUES]),
    metavar="ID",
    help="Look for this known issue only, and stop when it is found: "
    f"{', '.join(issue.id for issue in ISSUES)}.",
)
@workers_option
@format_option()
def explore_command(**given: Any) -> None:
    """Try every order in which a small group can be bounced, and report the rules it can break.

    Real leaders and members exchange real bytes over a real group coordinator, in every order of
    bounces, joins, syncs, crashes and expired sessions, under every leader. For each broken rule
    the shortest runbook is printed, and whether the new release alone, the upgrade, or only the
    old release alone breaks it. RELEASE is x.y for its newest patch, x.y.z, native, next or
    incompatible.
    """
    dimensions = Dimensions.of(
        given["members"],
        cooperative=given["protocol"] == RebalanceProtocol.COOPERATIVE.value,
        endpoints=given["endpoints"],
        views=given["views"],
        standbys=given["standbys"],
    )
    try:
        plan = _plan(given, dimensions)
    except (ReleaseError, OptionError) as error:
        refuse(str(error))
    partitions = given["partitions"] or given["members"] * given["threads"] * 2
    bounds = Bounds(
        members=given["members"],
        threads=given["threads"],
        static=given["static"],
        partitions=partitions,
        crashes=given["crashes"],
        max_states=given["max_states"],
        more_states=given["more_states"],
        dimensions=dimensions,
    )
    issue, seconds = given["issue"], given["timeout"]
    until = float("inf") if seconds is None else time.monotonic() + seconds
    workers = given["workers"] or os.cpu_count() or 1

    def is_late() -> bool:
        return time.monotonic() > until

    try:
        with _progress_line() as on_progress:
            how = _Searching(workers, is_late, on_progress)
            explored, placed = _search(plan, bounds, issue, how)
    except WorkerLostError as error:
        refuse(f"{error}, or reduce --max-states", EXIT_ENVIRONMENT)
    if given["form"] == "json":
        click.echo(json.dumps(document(plan, bounds, explored, placed), indent=2))
    else:
        click.echo("\n".join(lines_of(plan, bounds, explored, placed, issue=issue)))
    sys.exit(EXIT_BAD if any(found.is_bad for found in placed) else 0)


class _Searching(NamedTuple):
    """How to search.

    Attributes:
        workers: number of processes.
        is_out_of_time: whether the search must stop.
        on_progress: called with the progress, or None.
    """

    workers: int
    is_out_of_time: Callable[[], bool]
    on_progress: Callable[[Progress], None] | None


def _search(
    plan: Plan, bounds: Bounds, issue: str | None, how: _Searching
) -> tuple[Explored, tuple[Placed, ...]]:
    """Search; return what was explored, and in which releases each finding is present."""
    explored = explore(
        plan,
        bounds,
        issue=issue,
        workers=how.workers,
        is_out_of_time=how.is_out_of_time,
        on_progress=how.on_progress,
    )
    placed = place(
        plan,
        bounds,
        findings_of_issue(explored, issue),
        workers=how.workers,
        is_out_of_time=how.is_out_of_time,
        on_progress=how.on_progress,
    )
    return explored, placed


@contextmanager
def _progress_line() -> Iterator[Callable[[Progress], None]]:
    """Provide a function that shows progress on stderr: one line of a terminal, or many lines."""
    if not sys.stderr.isatty():
        say_line = lines_every(LINE_EVERY_S)
        yield lambda progress: say_line(lambda seconds: progress_text(progress, seconds))
        return
    began = time.monotonic()
    shown = began

    def show(progress: Progress) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= _PROGRESS_S:
            shown = now
            click.echo(f"{_CLEAR}{progress_text(progress, now - began)}", err=True, nl=False)

    try:
        yield show
    finally:
        if shown > began:
            click.echo(_CLEAR, err=True, nl=False)


def progress_text(progress: Progress, seconds: float) -> str:
    """Return the progress of a search as one line.

    >>> progress_text(Progress(states=1234, transitions=5678, waiting=90), 12.3)
    '1,234 states, 5,678 transitions, 90 waiting, 12 s'
    """
    return (
        f"{progress.states:,} states, {progress.transitions:,} transitions,"
        f" {progress.waiting:,} waiting, {seconds:.0f} s"
    )


def _plan(given: Mapping[str, Any], dimensions: Dimensions) -> Plan:
    """Return the path between two releases, or one bounce without a pin if there is none."""
    options = BounceOptions(
        old=given["old"],
        new=given["new"],
        static=given["static"],
        waits_for_sessions=given["waits_for_sessions"],
        dimensions=dimensions,
    )
    try:
        return plan_bounce(options)
    except OptionError:
        return plan_bounce(replace(options, force=True))
