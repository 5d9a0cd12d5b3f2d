"""The group that ``rolling-bounce plan`` starts from: as given, from a file, or from a cluster."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from assignor.cli import AnswerIsNo, all_of, connect_options, connected, target_of
from assignor.inspection import groups_below, is_present, problem_of
from assignor.problems import ProblemError
from probing import Release, find_release
from system_tests.cli.options import (
    MAX_PARTITIONS,
    MAX_SIMULATED,
    MAX_THREADS,
    Decorator,
    given_here,
    group_options,
    partitions_option,
    refuse,
    refuse_options,
)
from system_tests.plan import (
    MOST_MEMBERS,
    SavedGroup,
    SimulatedGroup,
    Use,
    as_static,
    begun_bounce,
    read_saved,
    saved_group,
    scaled,
)
from system_tests.sim.world import RESTARTS

planned_group_options: Decorator = all_of(
    (
        group_options(members=MAX_SIMULATED, saved=True, optional=True),
        partitions_option(most=MAX_PARTITIONS, default=None, more="; two per thread by default"),
        click.option(
            "--threads",
            type=click.IntRange(1, MAX_THREADS),
            default=1,
            show_default=True,
            help="Stream threads in each process.",
        ),
        click.option(
            "--sample",
            type=click.IntRange(1, MAX_SIMULATED),
            metavar="MEMBERS",
            help="Simulate a part of the group with so many of its members; by default"
            f" {MOST_MEMBERS} threads at most. Durations and rebalances are those of all members.",
        ),
        click.option(
            "--session-timeout-ms",
            type=click.IntRange(6_000, 1_800_000),
            help="session.timeout.ms of the members, 6000 at least as brokers demand by default;"
            " by default that of their release.",
        ),
        click.option(
            "--restore-rate",
            "restore",
            type=click.IntRange(1_000, 1_000_000_000),
            metavar="RECORDS",
            help="Records a second that a member restores of each changelog; 50000 by default.",
        ),
        click.option(
            "--restart-ms",
            type=click.IntRange(0, 86_400_000),
            help="How long a bounced member is down; by default"
            f" {RESTARTS.usual_ms[0]} to {RESTARTS.usual_ms[1]}, and {RESTARTS.slow_ms[0]} to"
            f" {RESTARTS.slow_ms[1]} in {100 * RESTARTS.slow_share:g} % of restarts.",
        ),
        click.option(
            "--problem",
            "saved",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="One group, as JSON, as `assignor inspect --save` writes it.",
        ),
        click.option(
            "--growth",
            type=click.IntRange(0, 1_000_000_000),
            metavar="RECORDS",
            help="Records a second that are written to each changelog; by default 100, and of a"
            " saved or live group 0.1 % of each changelog, at most 100.",
        ),
        click.option("--group", "group_id", metavar="GROUP", help="A live group of a cluster."),
        connect_options,
    )
)
"""Releases and sizes of a group, a file with one, or a live one."""

_SIZES = ("members", "threads", "partitions", "growth")
_VALUES = ("session_timeout_ms", "restore", "restart_ms")
CONNECTING = ("bootstrap_server", "command_config", "timeout")


def planned_group(
    given: Mapping[str, Any], saved: SavedGroup | None, uses: frozenset[Use]
) -> tuple[Release, SimulatedGroup]:
    """Return the release that a group runs, and the group as it is simulated.

    Args:
        given: the options.
        saved: of the file or the cluster, if one is given (`saved_group_of`).
        uses: what the application uses.

    Raises:
        ProblemError, ReleaseError: the file is invalid, or its members do not run the release.
        ClickException: the options do not fit together.
    """
    old = find_release(given["old"]) if given["old"] else None
    if saved is not None:
        release, group, unchecked = planned_saved(saved, old, given, uses)
        note_unchecked(unchecked)
        return release, group
    chosen = {name: given[name] for name in _VALUES}
    if old is None:
        refuse("give the release that the group runs: --from RELEASE, --problem FILE or --group ID")
    sizes = {name: given[name] for name in _SIZES}
    usual = min(2 * given["members"] * given["threads"], MAX_PARTITIONS)
    sizes["partitions"] = given["partitions"] or usual
    assumed = SimulatedGroup(is_static=Use.STATIC in uses)
    return old, scaled(assumed, {**chosen, **sizes}, sample=given["sample"])


def planned_saved(
    saved: SavedGroup, old: Release | None, given: Mapping[str, Any], uses: frozenset[Use]
) -> tuple[Release, SimulatedGroup, str]:
    """Return the release that a saved group runs, the group as it is simulated, what is unchecked.

    Raises:
        ReleaseError: its members do not run `old`, or it is None and not known from the file.
    """
    here = given_here()
    values = {name: given[name] for name in _VALUES}
    sizes = {name: given[name] if name in here else None for name in _SIZES}
    begun = begun_bounce(saved.releases_by_client, old, find_release(given["new"]), uses)
    release = find_release(saved.release(old)) if begun is None else begun.old
    found = as_static(saved.group) if Use.STATIC in uses else saved.group
    unchecked = saved.unchecked(release.name)
    group = scaled(found, {**values, **sizes}, sample=given["sample"])
    notes = (*group.notes, *((f"not checked: {unchecked}",) if unchecked else ()))
    done = "" if begun is None else begun.done
    return release, replace(group, notes=notes, begun=done), unchecked


def refuse_report_over_problem(given: Mapping[str, Any]) -> None:
    """Refuse a report that would overwrite the saved group, by any spelling of its path."""
    report, saved = given["report"], given["saved"]
    if report is None or saved is None:
        return
    if report.is_file() and saved.is_file() and report.samefile(saved):
        refuse(
            f"--report {report} is the file of --problem and would overwrite the saved group;"
            " choose another file for --report"
        )


def note_unchecked(what: str) -> None:
    """Say on stderr what of a saved group could not be checked; nothing if it is empty."""
    if what:
        click.echo(f"rolling-bounce plan: not checked: {what}", err=True)


def saved_group_of(given: Mapping[str, Any]) -> SavedGroup | None:
    """Return the group of the given file, which may be a pipe, or the live one; None without one.

    Raises:
        ClickException: the file is invalid, the cluster does not answer or has no such group, both
            are given, or options of a live group that is not.
    """
    if given["saved"] is not None and given["group_id"] is not None:
        refuse("--problem is a saved group and --group a live one; give one of them")
    if given["group_id"] is None:
        refuse_options("give the group of the cluster, too (--group ID), or leave out", CONNECTING)
    try:
        if given["group_id"] is not None:
            return _live(given)
        return None if given["saved"] is None else read_saved(given["saved"])
    except ProblemError as error:
        refuse(str(error))


def _live(given: Mapping[str, Any]) -> SavedGroup:
    """Return a live group, as `assignor inspect --save` would write it."""
    target = target_of(given["bootstrap_server"], given["command_config"], given["timeout"])
    with connected(target) as admin:
        from assignor.adapters.admin import (  # noqa: PLC0415 the client is an extra
            list_groups,
            look_at_group,
        )

        look = look_at_group(admin, given["group_id"])
        others = [group.group_id for group in list_groups(admin)]
    if not is_present(look.described):
        raise AnswerIsNo(f"{look.summary}; list all groups with assignor inspect --all")
    if look.streams_group is None and not look.described.members:
        raise AnswerIsNo(
            f"{look.summary}: start it, or plan without --group, with --from RELEASE --members N"
        )
    longer = groups_below(others, look.described.group_id)
    return saved_group(problem_of(look)).beside(longer)
