"""``rolling-bounce live``: options in, trace and verdict out, exit status."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console

from assignor.cli.extras import absent_extra
from assignor.cli.lazy import CONTEXT
from probing import RebalanceProtocol, ReleaseError, find_release
from system_tests.command_options import (
    EXIT_BAD,
    EXIT_SURROUNDINGS,
    EXIT_USAGE,
    MAX_MEMBERS,
    format_option,
    given_again,
    group_options,
    partitions_option,
    refuse,
    report_option,
)
from system_tests.live.bounce import LiveBounce, Outcome
from system_tests.live.hold_back import HELD_VERSION
from system_tests.live.order import (
    CLIENTS,
    MIXED,
    OrderError,
    check_order,
    find_member,
    member_names,
)
from system_tests.live.path import PathError, Switches, plan_path
from system_tests.live.plan import LiveOptions, LivePlan
from system_tests.live.report import outcome_json, summary_lines
from system_tests.live.screen import PlainScreen, RecordingScreen, SilentScreen, TerminalScreen
from system_tests.real.jars import broker_release
from system_tests.report_figure import ReportError
from system_tests.report_live import story_of_live
from system_tests.report_page import check_report, write_report
from system_tests.surroundings import SurroundingsError
from system_tests.trace import LEGEND

_EXIT_INTERRUPTED = 130

_EPILOG = f"""
\b
Examples:
  rolling-bounce live --from 3.1 --to native --members 3 --seed 7
  rolling-bounce live --from 0.10.2 --to 2.0            two bounces, upgrade.from set and removed
  rolling-bounce live --from 0.10.2 --to 2.0 --no-pin   what happens without it
  rolling-bounce live --from 2.8 --to 3.2 --members 5 --kill leader
  rolling-bounce live --from 3.1 --to native --format json | jq .checks
  rolling-bounce live --from 3.1 --to native --report bounce.html
  rolling-bounce live --from 2.8 --to native --broker kafka:3.9    on a real Kafka
  rolling-bounce live --from 3.1 --to native --members 4 --client mixed     two clients, one group
  rolling-bounce live --from 2.3 --to native --protocol cooperative         in two bounces
  rolling-bounce live --from 3.1 --to native --replace-brokers              brokers come and go
  rolling-bounce live --from native --to next --static                      without a rebalance

\b
The trace has a lane per member:
  {LEGEND}

\b
Exit status: 0 the verdict is good, 1 it is not, 2 wrong usage or an impossible path,
3 the surroundings failed (no broker, no Java, port in use, the report cannot be made).
"""


@click.command(epilog=_EPILOG, context_settings=CONTEXT)
@group_options(members=MAX_MEMBERS)
@partitions_option()
@click.option(
    "--rate",
    type=click.FloatRange(1, 20_000),
    default=200.0,
    show_default=True,
    help="Records written per second.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order and the ids.")
@click.option(
    "--client",
    type=click.Choice([*CLIENTS, MIXED]),
    default=CLIENTS[0],
    show_default=True,
    help="What members run on; mixed takes the two in turn.",
)
@click.option(
    "--protocol",
    type=click.Choice([one.value for one in RebalanceProtocol]),
    default=RebalanceProtocol.EAGER.value,
    show_default=True,
    help="How members move partitions at the end; aiokafka is always eager.",
)
@click.option(
    "--static",
    is_flag=True,
    help="Members carry a group.instance.id: coming back in time costs no rebalance.",
)
@click.option(
    "--order",
    default="random",
    show_default=True,
    help="leader-last, leader-first, random, or members: 1,2,0 or b,c,a.",
)
@click.option("--no-pin", is_flag=True, help="One bounce without upgrade.from, come what may.")
@click.option("--offline", is_flag=True, help="Stop all, start all, without upgrade.from.")
@click.option(
    "--kill", metavar="leader|MEMBER", help="SIGKILL it in the middle of the first bounce."
)
@click.option(
    "--hold-back",
    is_flag=True,
    help="Hold the group at v11; after the bounce raise its level and lower it again.",
)
@click.option(
    "--replace-brokers",
    is_flag=True,
    help="In the middle of each bounce, put new brokers in place of all (KIP-1102).",
)
@click.option("--garbage", is_flag=True, help="Let a foreign member in that nobody can read.")
@click.option(
    "--bootstrap-server", metavar="HOST:PORT", help="A broker instead of the embedded one."
)
@click.option(
    "--broker",
    metavar="kafka:RELEASE",
    help="Start a real Kafka for it: kafka:3.9, kafka:4 (the newest). Needs the extra `real`.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Of the broker; 0: any free one."
)
@click.option(
    "--session-timeout-ms", type=click.IntRange(1000, 300_000), default=6000, show_default=True
)
@click.option("--heartbeat-ms", type=click.IntRange(50, 60_000), default=300, show_default=True)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(1, 3600),
    default=30.0,
    show_default=True,
    help="Seconds that the group may take to settle after each step.",
)
@format_option()
@report_option
@click.option("--verbose", is_flag=True, help="With json: the trace on stderr.")
@click.option("--force", is_flag=True, help="Take a path that is known to be broken.")
def live(**given: Any) -> None:
    """Bounce a group of real processes, one by one, and judge what happened.

    Real consumers, one process each, read a topic that is written all the while. They emulate
    RELEASE: x.y for its newest patch, x.y.z, or native.
    """
    options, plan = _prepare(given)
    if given["report"] is not None:
        with _report_refused():
            check_report(given["report"])
    names = member_names(options.members)
    title = f"{plan.before.release} -> {plan.stages[-1].release}, seed {options.seed}"
    screen: PlainScreen | TerminalScreen
    if given["form"] == "json":
        screen = (PlainScreen if given["verbose"] else SilentScreen)(sys.stderr, names)
    elif sys.stdout.isatty():
        screen = TerminalScreen(Console(), names, title=title)
    else:
        screen = PlainScreen(sys.stdout, names)
    # Set for both: a shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    recording = RecordingScreen(screen)
    try:
        with screen:
            outcome = LiveBounce(options, plan, recording).run()
    except SurroundingsError as error:
        refuse(str(error), EXIT_SURROUNDINGS)
    except KeyboardInterrupt:
        refuse("interrupted; every member and the broker are stopped", _EXIT_INTERRUPTED)
    _print(outcome, plan, options, form=given["form"])
    if given["report"] is not None:
        replay = given_again(without={"report", "form"})
        story = story_of_live(outcome, plan, options, lines=recording.lines, replay=replay)
        with _report_refused():
            write_report(given["report"], story)
    sys.exit(0 if outcome.ok else EXIT_BAD)


def _prepare(given: dict[str, Any]) -> tuple[LiveOptions, LivePlan]:
    """Check everything that can be checked before anything is started."""
    names = member_names(given["members"])
    broker = given["broker"]
    try:
        broker = broker and broker_release(broker)
        check_order(given["order"], names)
        if given["kill"] not in (None, "leader"):
            find_member(given["kill"], names)
        plan = plan_path(
            given["old"],
            given["new"],
            Switches(
                no_pin=given["no_pin"],
                offline=given["offline"],
                force=given["force"],
                rebalance_protocol=given["protocol"],
                static=given["static"],
            ),
        )
    except (OrderError, ReleaseError, PathError) as error:
        refuse(str(error), EXIT_USAGE)
    _check_combinations(given)
    if given["client"] != CLIENTS[0] and (advice := absent_extra("aiokafka")) is not None:
        refuse(f"--client {given['client']}: {advice}", EXIT_SURROUNDINGS)
    if given["hold_back"]:
        plan = replace(plan, promised_versions=(HELD_VERSION,))
    options = LiveOptions(
        members=given["members"],
        client=given["client"],
        static=given["static"],
        partitions=given["partitions"],
        rate=given["rate"],
        seed=given["seed"],
        order=given["order"],
        offline=given["offline"],
        kill=given["kill"],
        garbage=given["garbage"],
        hold_back=given["hold_back"],
        replace_brokers=given["replace_brokers"],
        bootstrap_server=given["bootstrap_server"],
        broker=broker,
        port=given["port"],
        session_timeout_ms=given["session_timeout_ms"],
        heartbeat_ms=given["heartbeat_ms"],
        settle_timeout_s=given["timeout_s"],
    )
    return options, plan


_Given = dict[str, Any]
_CONFLICTS: tuple[tuple[Callable[[_Given], bool], str], ...] = (
    (
        lambda given: given["client"] == "aiokafka" and given["protocol"] != "eager",
        "aiokafka moves partitions eagerly; leave --protocol out, or take --client mixed",
    ),
    (
        lambda given: given["offline"] and given["kill"] is not None,
        "--kill needs a rolling bounce; leave --offline out",
    ),
    (
        lambda given: given["offline"] and given["garbage"],
        "--garbage needs a rolling bounce; leave --offline out",
    ),
    (
        lambda given: given["offline"] and given["no_pin"],
        "--offline never pins; leave --no-pin out",
    ),
    (
        lambda given: (
            given["garbage"] and not given["force"] and not find_release(given["new"]).is_native
        ),
        "--garbage needs --to native: Kafka's leaders die of what they cannot read; or --force",
    ),
    (
        lambda given: given["hold_back"] and not find_release(given["new"]).is_native,
        "--hold-back needs --to native: JVM releases know no levels",
    ),
    (
        lambda given: given["bootstrap_server"] is not None and given["port"] != 0,
        "--port is that of a broker to start; leave it or --bootstrap-server out",
    ),
    (
        lambda given: given["bootstrap_server"] is not None and given["broker"] is not None,
        "--broker starts one and --bootstrap-server names one; leave one of them out",
    ),
    (
        lambda given: (
            given["replace_brokers"]
            and (given["bootstrap_server"] is not None or given["broker"] is not None)
        ),
        "--replace-brokers needs the embedded brokers; leave --bootstrap-server and --broker out",
    ),
    (
        lambda given: given["offline"] and given["replace_brokers"],
        "--replace-brokers needs a rolling bounce; leave --offline out",
    ),
    (
        lambda given: not isfinite(given["rate"]) or not isfinite(given["timeout_s"]),
        "--rate and --timeout must be numbers; give finite ones",
    ),
    (
        lambda given: 3 * given["heartbeat_ms"] > given["session_timeout_ms"],
        "--session-timeout-ms must be at least three times --heartbeat-ms; raise it",
    ),
)


def _check_combinations(given: _Given) -> None:
    for conflicts, sentence in _CONFLICTS:
        if conflicts(given):
            refuse(sentence, EXIT_USAGE)


def _print(outcome: Outcome, plan: LivePlan, options: LiveOptions, *, form: str) -> None:
    if form == "json":
        click.echo(outcome_json(outcome, plan, options))
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print()
        for line, style in summary_lines(outcome, plan):
            console.print(line, style=style, markup=False)
    sys.stdout.flush()
    if outcome.death is not None:
        for line in () if outcome.death.explained else outcome.death.last_lines:
            click.echo(f"  {outcome.death.member}| {line}", err=True)
        if plan.advice is not None:
            click.echo(f"rolling-bounce: {plan.advice}", err=True)


@contextmanager
def _report_refused() -> Iterator[None]:
    try:
        yield
    except ReportError as error:
        refuse(str(error), EXIT_SURROUNDINGS)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 signal's signature
    raise KeyboardInterrupt
