"""``rolling-bounce plan --to streams``: the move of a group to the streams protocol (KIP-1071)."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click

from assignor.cli import all_of
from assignor.problems import ProblemError
from encoding import shown
from probing import Release, ReleaseError, find_release
from system_tests.cli.options import (
    EXIT_BAD,
    EXIT_ENVIRONMENT,
    Decorator,
    refuse,
    refuse_options,
)
from system_tests.cli.planned_group import CONNECTING, note_unchecked
from system_tests.plan import (
    RESTORE_RATE,
    STREAMS,
    UNNAMED,
    WAY_BACK_IS,
    SavedGroup,
    StreamsMove,
    Use,
    When,
    changes_when,
    plan_streams_move,
    plan_streams_upgrade,
    reports_offsets,
    restored_by_broker,
    verdict_line,
    way_back,
    with_sources,
)
from system_tests.plan.report import move_decision, write_move_report
from system_tests.report import ReportError, check_report

_UPGRADE_USED = (
    "old",
    "new",
    "saved",
    "group_id",
    *CONNECTING,
    "uses",
    "brokers",
    "report",
    "form",
    "no_costs",
    "streams_group",
)
_USED = (*_UPGRADE_USED[:-1], "streams_version", "session_timeout_ms", "restore")
move_options: Decorator = all_of(
    (
        click.option(
            "--brokers",
            metavar="RELEASE",
            help="Release of the brokers: the plan says whether members can use them, and leaves"
            " out what only concerns others. Required for a streams group and with --to streams.",
        ),
        click.option(
            "--streams-group",
            is_flag=True,
            help="The group is a streams group (KIP-1071) already: plan a new release of its "
            "members. A saved group tells this by itself.",
        ),
        click.option(
            "--streams-version",
            type=click.IntRange(0, 1),
            help="With --to streams: finalized level of streams.version, as `assignor features"
            " describe` shows it; by default that of a new cluster of this release.",
        ),
    )
)
"""The brokers that take a group over."""


def refuse_move_options(given: dict[str, Any]) -> None:
    """Refuse the options of this move in another plan."""
    if given["streams_version"] is not None:
        refuse("--streams-version needs --to streams; leave it out")


def refuse_from_streams(given: dict[str, Any]) -> None:
    """Refuse the streams protocol as a start: its way back is part of the move."""
    if (given["new"] or "").lower() == "classic":
        refuse(
            "--to classic is the way back of a streams group."
            f" {way_back(given['old'], given['brokers'])}"
        )
    if (given["old"] or "").lower() == STREAMS:
        refuse(
            "--from streams has no plan of its own: the way back to the classic protocol is part of"
            " the move, in each step of rolling-bounce plan --from RELEASE --to streams --brokers"
            " RELEASE"
        )


def print_streams_move(
    given: dict[str, Any], saved: SavedGroup | None, uses: frozenset[Use]
) -> NoReturn:
    """Print the plan, and end with 0, or with 1 if the group cannot move."""
    refuse_options("--to streams simulates no bounces; leave out", but=_USED)
    if given["brokers"] is None:
        refuse("give the release of the brokers, which assign the tasks: --brokers RELEASE")

    def plan() -> StreamsMove:
        old = find_release(given["old"]) if given["old"] is not None else None
        move = planned_move(given, saved, old, uses)
        note_unchecked("" if saved is None else saved.unchecked(move.release))
        return move

    _print_move(given, saved, plan)


def print_streams_upgrade(
    given: dict[str, Any], saved: SavedGroup | None, uses: frozenset[Use]
) -> NoReturn:
    """Print the plan of a new release for a streams group; end with 1 if it is refused."""
    refuse_options("a plan of a streams group simulates no bounces; leave out", but=_UPGRADE_USED)
    if saved is not None and not saved.is_streams_group:
        refuse(f"group {saved.group.name} is a classic group: leave out --streams-group")
    _print_move(given, saved, lambda: planned_upgrade(given, saved, uses))


def _print_move(
    given: dict[str, Any], saved: SavedGroup | None, plan: Callable[[], StreamsMove]
) -> NoReturn:
    """Print a plan of a streams group, write its report, and end with 1 if it is refused."""
    report: Path | None = given["report"]
    try:
        if report is not None:
            check_report(report)
        move = plan()
        if report is not None:
            write_move_report(report, move, group="" if saved is None else saved.group.name)
    except (ReleaseError, ProblemError) as error:
        refuse(str(error))
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    if given["form"] == "json":
        decision = move_decision(move)
        verdict = {"verdict": decision.words, "is_red": decision.is_red}
        click.echo(json.dumps(asdict(move) | verdict, indent=2))
    else:
        for line in with_sources(move_lines(move)):
            click.echo(shown(line, limit=None))
    sys.exit(EXIT_BAD if move.obstacles else 0)


def planned_upgrade(
    given: Mapping[str, Any], saved: SavedGroup | None, uses: frozenset[Use]
) -> StreamsMove:
    """Return the plan of a new release for a streams group.

    Raises:
        ReleaseError: a release is not given or not known.
    """
    if given["old"] is None or given["brokers"] is None:
        raise ReleaseError(
            "brokers assign the tasks of a streams group, and members do not write their release:"
            " give --from RELEASE and --brokers RELEASE"
        )
    if saved is not None and saved.group.static_members:
        uses |= {Use.STATIC}
    old, new, brokers = (find_release(given[name]) for name in ("old", "new", "brokers"))
    records = sum(saved.group.sizes) if saved is not None and saved.group.sizes else None
    group = UNNAMED if saved is None else saved.group
    return plan_streams_upgrade(old, new, brokers, uses, records=records, group=group)


def planned_move(
    given: Mapping[str, Any], saved: SavedGroup | None, old: Release | None, uses: frozenset[Use]
) -> StreamsMove:
    """Return the plan that moves a classic group of a release to the streams protocol.

    Raises:
        ReleaseError: the group is a streams group, or its release is not known.
    """
    unchecked, state = "", None
    if saved is not None:
        if saved.is_streams_group:
            raise ReleaseError(
                f"group {saved.group.name} is a streams group already."
                f" {way_back(given['old'], given['brokers'])}"
            )
        old, state = find_release(saved.release(old)), saved.state
        if saved.group.static_members:
            uses |= {Use.STATIC}
        unchecked = saved.unchecked(old.name)
    if old is None:
        raise ReleaseError(
            "give the release that the group runs: --from RELEASE, --problem FILE or --group ID"
        )
    brokers = find_release(given["brokers"])
    reports = reports_offsets(old, brokers)
    return plan_streams_move(
        old,
        brokers,
        uses,
        streams_version=given["streams_version"],
        session_timeout_ms=given["session_timeout_ms"],
        restored=None if state is None else restored_by_broker(state, reports_offsets=reports),
        restore_rate=given["restore"] or RESTORE_RATE,
        unchecked=unchecked,
        group=UNNAMED if saved is None else saved.group,
    )


def move_lines(move: StreamsMove) -> Iterator[str]:
    """Yield a move as lines of text."""
    if move.obstacles:
        yield f"{move.title}: refused"
        for obstacle in move.obstacles:
            yield f"  refused: {obstacle}"
        return
    yield f"{move.title}: {move.how}; the brokers' {move.assignor} assignor"
    yield verdict_line(move_decision(move))
    yield f"  downtime: {move.downtime}"
    for what, action in move.assumed:
        yield f"  assumed: {what}"
        yield f"  check:   {action}"
    for number, step in enumerate(move.steps, 1):
        yield ""
        yield f"step {number}: {step.what}"
        yield f"  seen: {step.seen}"
        yield f"  cost: {step.cost}"
        yield f"  stop: {step.stop}"
        for at, line in enumerate(step.back):
            yield f"  {'      ' if at else 'back: '}{line}"
    if move.rehearsal:
        yield ""
        yield f"try: {move.rehearsal}"
    yield ""
    yield f"point of no return: {move.no_return}"
    if move.steps:
        yield f"the way back: {WAY_BACK_IS}"
    for name, lines in (
        ("What going back restores", move.back_restores),
        ("What stays", move.kept),
        ("What does not stay", move.lost),
        *((when, changes_when(move.changes, when)) for when in When),
        ("Not checked", move.not_checked),
    ):
        if lines:
            yield ""
            yield f"{name}:"
            yield from (f"  - {line}" for line in lines)
