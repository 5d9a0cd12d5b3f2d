"""``rolling-bounce live``: options in, trace and verdict out, exit status."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any, NoReturn

import click

from assignor.cli import (
    EXIT_INTERRUPTED,
    Command,
    format_option,
    say,
    text_console,
    timeout_option,
)
from encoding import shown
from probing import RebalanceProtocol, ReleaseError
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
    given_again,
    group_options,
    offline_option,
    partitions_option,
    refuse,
    report_option,
    seed_option,
    session_timeout_option,
    static_option,
)
from system_tests.errors import SurroundingsError
from system_tests.live import (
    HELD_VERSION,
    LiveBounce,
    LiveOptions,
    LivePlan,
    OrderError,
    Outcome,
    PathError,
    PlainScreen,
    RecordingScreen,
    SilentScreen,
    Switches,
    TerminalScreen,
    check_order,
    conflict_of,
    find_member,
    member_names,
    outcome_json,
    plan_path,
    story_of_live,
    summary_lines,
)
from system_tests.real import broker_release
from system_tests.report import ReportError, check_report, write_report
from system_tests.trace import LEGEND

_NOTES = f"""
\b
The trace has a lane per member:
{LEGEND}
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
"""
_EXITS = {
    0: "the verdict is good",
    1: "it is not",
    2: "an impossible path",
    3: "no broker, no Java, a port in use, a report that cannot be made",
}


@click.command(
    "live",
    cls=Command,
    short_help="Bounce a group of real processes, and judge what happened.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@group_options(members=MAX_MEMBERS)
@partitions_option()
@rate_option
@seed_option(default=0)
@client_option
@click.option(
    "--protocol",
    type=click.Choice([one.value for one in RebalanceProtocol]),
    default=RebalanceProtocol.EAGER.value,
    show_default=True,
    help="How members move partitions at the end; aiokafka is always eager.",
)
@static_option
@click.option(
    "--order",
    default="random",
    show_default=True,
    help="leader-last, leader-first, random, or members: 1,2,0 or b,c,a.",
)
@click.option("--no-pin", is_flag=True, help="One bounce without upgrade.from, come what may.")
@offline_option
@click.option(
    "--kill", metavar="leader|MEMBER", help="SIGKILL it in the middle of the first bounce."
)
@click.option(
    "--hold-back",
    is_flag=True,
    help="Hold the group at v11; after the bounce raise its level and lower it again.",
)
@click.option(
    "--take-back",
    is_flag=True,
    help="With --hold-back: bounce back to the old release once the level is lowered.",
)
@click.option(
    "--replace-brokers",
    is_flag=True,
    help="In the middle of each bounce, put new brokers in place of all (KIP-1102).",
)
@click.option("--garbage", is_flag=True, help="Let a foreign member in that nobody can read.")
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT",
    help="Where to connect first; no broker is started then.",
)
@broker_option(metavar="kafka:RELEASE")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Of the broker; 0: any free one.",
)
@session_timeout_option(1000)
@click.option(
    "--heartbeat-ms",
    type=click.IntRange(50, 60_000),
    default=300,
    show_default=True,
    help="How often members tell that they live.",
)
@timeout_option("How long to wait; for the group to settle after each step.", least=1, default=30.0)
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
        screen = TerminalScreen(text_console(), names, title=title)
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
        refuse("interrupted; every member and the broker are stopped", EXIT_INTERRUPTED)
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
    if (conflict := conflict_of(given)) is not None:
        refuse(conflict)
    check_client(given["client"])
    if given["hold_back"]:
        last = plan.before.latest_version if given["take_back"] else HELD_VERSION
        plan = replace(plan, promised_versions=(min(last, HELD_VERSION),))
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
        take_back=given["take_back"],
        replace_brokers=given["replace_brokers"],
        bootstrap_server=given["bootstrap_server"],
        broker=broker,
        port=given["port"],
        session_timeout_ms=given["session_timeout_ms"],
        heartbeat_ms=given["heartbeat_ms"],
        settle_timeout_s=given["timeout"],
    )
    return options, plan


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
def _report_refused() -> Iterator[None]:
    try:
        yield
    except ReportError as error:
        refuse(str(error), EXIT_SURROUNDINGS)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 signal's signature
    raise KeyboardInterrupt
