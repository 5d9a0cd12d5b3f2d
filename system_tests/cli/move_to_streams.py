"""``rolling-bounce plan --to streams``: the move of a group to the streams protocol (KIP-1071)."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click

from assignor.cli import all_of
from assignor.problems import ProblemError
from encoding import shown
from probing import ReleaseError, find_release
from system_tests.cli.options import (
    EXIT_BAD,
    EXIT_ENVIRONMENT,
    Decorator,
    refuse,
    refuse_options,
)
from system_tests.cli.planned_group import note_unchecked
from system_tests.plan import (
    RESTORE_RATE,
    STREAMS,
    WAY_BACK,
    SavedGroup,
    StreamsMove,
    Use,
    When,
    changes_when,
    plan_streams_move,
    plan_streams_upgrade,
    read_saved,
    reports_offsets,
    restored_by_broker,
)
from system_tests.plan.report import write_move_report
from system_tests.report import ReportError, check_report

_USED = (
    "old",
    "new",
    "saved",
    "uses",
    "brokers",
    "streams_version",
    "session_timeout_ms",
    "restore",
    "report",
    "form",
)
_UPGRADE_USED = ("old", "new", "saved", "uses", "brokers", "report", "form", "streams_group")
move_options: Decorator = all_of(
    (
        click.option(
            "--brokers",
            metavar="RELEASE",
            help="Of a streams group, or with --to streams: release of the brokers.",
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
    if given["brokers"] is not None or given["streams_version"] is not None:
        refuse(
            "--brokers needs --to streams or --streams-group, and --streams-version --to streams;"
            " leave them out"
        )


def refuse_from_streams(given: dict[str, Any]) -> None:
    """Refuse the streams protocol as a start: its way back is part of the move."""
    if (given["old"] or "").lower() == STREAMS:
        refuse(
            "--from streams has no plan of its own: the way back to the classic protocol is part of"
            " the move, in each step of rolling-bounce plan --from RELEASE --to streams --brokers"
            " RELEASE"
        )


def print_streams_move(given: dict[str, Any], uses: frozenset[Use]) -> NoReturn:
    """Print the plan, and end with 0, or with 1 if the group cannot move."""
    if given["group_id"] is not None:
        refuse(
            "--to streams reads no live group with --group; save it first (assignor inspect --group"
            " ID --save FILE) and give --problem FILE"
        )
    refuse_options("--to streams simulates no bounces; leave out", but=_USED)
    if given["brokers"] is None:
        refuse("give the release of the brokers, which assign the tasks: --brokers RELEASE")
    report: Path | None = given["report"]
    try:
        if report is not None:
            check_report(report)
        name, move = _planned(given, uses)
        if report is not None:
            write_move_report(report, move, group=name)
    except (ReleaseError, ProblemError) as error:
        refuse(str(error))
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    _print_move(move, given["form"])


def print_streams_upgrade(
    given: dict[str, Any], saved: SavedGroup | None, uses: frozenset[Use]
) -> NoReturn:
    """Print the plan of a new release for a streams group; end with 1 if it is refused."""
    refuse_options("a plan of a streams group simulates no bounces; leave out", but=_UPGRADE_USED)
    if given["old"] is None or given["brokers"] is None:
        refuse(
            "brokers assign the tasks of a streams group, and members do not write their release:"
            " give --from RELEASE and --brokers RELEASE"
        )
    try:
        if given["report"] is not None:
            check_report(given["report"])
        if saved is not None and saved.group.static_members:
            uses |= {Use.STATIC}
        old, new, brokers = (find_release(given[name]) for name in ("old", "new", "brokers"))
        records = sum(saved.group.sizes) if saved is not None and saved.group.sizes else None
        made = plan_streams_upgrade(old, new, brokers, uses, records=records)
        name = saved.group.name if saved is not None else ""
        if given["report"] is not None:
            write_move_report(given["report"], made, group=name)
    except (ReleaseError, ProblemError) as error:
        refuse(str(error))
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    _print_move(made, given["form"])


def _print_move(move: StreamsMove, form: str) -> NoReturn:
    """Print a plan of a streams group, and end with 1 if it is refused."""
    if form == "json":
        click.echo(json.dumps(asdict(move), indent=2))
    else:
        for line in move_lines(move):
            click.echo(shown(line, limit=None))
    sys.exit(EXIT_BAD if move.obstacles else 0)


def _planned(given: dict[str, Any], uses: frozenset[Use]) -> tuple[str, StreamsMove]:
    """Return the name of the saved group, or an empty one, and the plan."""
    name, unchecked, saved, state = "", "", given["saved"], None
    old = find_release(given["old"]) if given["old"] is not None else None
    if saved is not None:
        group = read_saved(saved)
        if group.is_streams_group:
            refuse(f"group {group.group.name} is a streams group already. {WAY_BACK}")
        name, old, state = group.group.name, find_release(group.release(old)), group.state
        if group.group.static_members:
            uses |= {Use.STATIC}
        unchecked = group.unchecked(old.name)
        note_unchecked(unchecked)
    if old is None:
        refuse("give the release that the group runs: --from RELEASE, or --problem FILE")
    brokers = find_release(given["brokers"])
    reports = reports_offsets(old, brokers)
    move = plan_streams_move(
        old,
        brokers,
        uses,
        streams_version=given["streams_version"],
        session_timeout_ms=given["session_timeout_ms"],
        restored=None if state is None else restored_by_broker(state, reports_offsets=reports),
        restore_rate=given["restore"] or RESTORE_RATE,
        unchecked=unchecked,
    )
    return name, move


def move_lines(move: StreamsMove) -> Iterator[str]:
    """Yield a move as lines of text."""
    if move.obstacles:
        yield f"{move.title}: refused"
        for obstacle in move.obstacles:
            yield f"  refused: {obstacle}"
        return
    yield f"{move.title}: {move.how}; the brokers' {move.assignor} assignor"
    yield f"  downtime: {move.downtime}"
    for what, action in move.assumed:
        yield f"  assumed: {what.removesuffix(')')}; {action})"
    for number, step in enumerate(move.steps, 1):
        yield ""
        yield f"step {number}: {step.what}"
        yield f"  seen: {step.seen}"
        yield f"  cost: {step.cost}"
        yield f"  stop: {step.stop}"
        yield f"  back: {step.back}"
    if move.rehearsal:
        yield ""
        yield f"try: {move.rehearsal}"
    yield ""
    yield f"point of no return: {move.no_return}"
    for name, lines in (
        ("The broker keeps", move.kept),
        ("The broker does not keep", move.lost),
        *((when, changes_when(move.changes, when)) for when in When),
        ("Not checked", move.not_checked),
    ):
        if lines:
            yield ""
            yield f"{name}:"
            yield from (f"  - {line}" for line in lines)
