"""The plans of many groups, each by what it uses and runs."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from assignor.problems import ProblemError, quoted
from probing import Release, ReleaseError, find_release
from system_tests.cli.fleet.group_plan import GroupPlan
from system_tests.cli.fleet.groups import FoundGroup, distinct_groups, live_groups, saved_groups
from system_tests.cli.fleet.pages import check_directory, check_pages, write_page
from system_tests.cli.fleet.table import print_plans
from system_tests.cli.move_to_streams import planned_move, planned_upgrade
from system_tests.cli.options import EXIT_BAD, refuse, refuse_options
from system_tests.cli.planned_group import CONNECTING, planned_saved
from system_tests.cli.progress import counted
from system_tests.engine import OptionError
from system_tests.plan import (
    STREAMS,
    SavedGroup,
    Use,
    assumptions,
    check_group,
    decision_of,
    make_plan,
    spelled_releases,
    step_costs,
)
from system_tests.plan.report import move_decision

_SEEDS: Final = 10
"""Simulated bounces of each step of each group by default."""
_SHOWN: Final = 5
_USELESS: Final = (
    "streams_group",
    "topologies",
    "application_id",
    "group_id",
    "members",
    "threads",
    "partitions",
)
_SIMULATED: Final = ("seeds", "sample", "restart_ms", "growth")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is planned for every group.

    Attributes:
        given: the options of the command.
        new: the target, a release or the streams protocol.
        uses: what applications use, unless `uses_of` says it.
        old: release of groups whose metadata does not tell theirs; None: not given.
    """

    given: Mapping[str, Any]
    new: str
    uses: frozenset[Use]
    old: Release | None

    def uses_of(self, group: str) -> frozenset[Use]:
        """Return what the application of a group uses."""
        own: Mapping[str, frozenset[Use]] = dict(self.given["uses_of"])
        return own.get(group, self.uses)


def print_fleet_plan(given: Mapping[str, Any], uses: frozenset[Use]) -> NoReturn:
    """Print one row for each group, write their reports, and end with 1 if one of them is red."""
    refuse_options("--all plans every group as it is; leave out", _USELESS)
    new = given["new"].lower()
    if new == STREAMS:
        refuse_options("--to streams simulates no bounces; leave out", _SIMULATED)
        if given["brokers"] is None:
            refuse("give the release of the brokers, which assign the tasks: --brokers RELEASE")
    elif given["streams_version"] is not None:
        refuse("--streams-version needs --to streams; leave it out")
    is_live = given["bootstrap_server"] is not None or given["command_config"] is not None
    if is_live == (given["saved"] is not None):
        refuse("--all takes the groups of a cluster (--bootstrap-server) or of --problem FILE")
    if not is_live:
        refuse_options("--problem asks no cluster; leave out", CONNECTING)
    new = new if new == STREAMS else find_release(new).name
    directory = given["report"]
    if directory is not None:
        check_directory(directory)
    skipped: list[str] = []
    others: list[str] = []
    found = live_groups(given, skipped, others) if is_live else saved_groups(given["saved"])
    groups = distinct_groups(list(found), others)
    _check_uses_of([group for group, _ in given["uses_of"]], {group.name for group in groups})
    if directory is not None:
        check_pages(directory, (group.name for group in groups), given)
    old = find_release(given["old"]) if given["old"] else None
    wanted = _Wanted(given=given, new=new, uses=uses, old=old)
    made: list[GroupPlan] = []
    with counted("groups planned", len(groups)) as add:
        for group in groups:
            made.append(_planned(group, wanted, lambda _: add(0)))
            add(1)
            if directory is not None:
                write_page(directory, made[-1])
    print_plans(made, skipped, given["form"])
    sys.exit(EXIT_BAD if any(plan.is_red for plan in made) else 0)


def _check_uses_of(named: Sequence[str], groups: Collection[str]) -> None:
    """Refuse --uses-of of groups that are not planned, and two of them for one group."""
    unknown = sorted({*named} - {*groups})
    if unknown:
        refuse(f"--uses-of names {quoted(unknown[:_SHOWN])}, which are not among the groups")
    twice = sorted({group for group in named if named.count(group) > 1})
    if twice:
        refuse(
            f"--uses-of names {quoted(twice[:_SHOWN])} more than once; give all features of a group"
            " in one list, as --uses-of GROUP fk-join,eos"
        )


def _planned(
    found: FoundGroup,
    wanted: _Wanted,
    progress: Callable[[int], object],
) -> GroupPlan:
    """Return the plan of one group; an error of one group must not hide the others."""
    name, saved = found.name, found.saved
    given, new, uses = wanted.given, wanted.new, wanted.uses_of(name)
    try:
        if saved is None:
            raise ProblemError(found.problem)  # noqa: TRY301 the row is that of other errors
        if saved.is_streams_group or new == STREAMS:
            return _planned_move(name, saved, wanted)
        old, group, _ = planned_saved(saved, _own_release(saved, wanted.old), given, uses)
        uses |= {Use.STATIC} if group.static_members else frozenset()
        brokers = find_release(given["brokers"]) if given["brokers"] else None
        made = make_plan(
            old,
            find_release(new),
            uses,
            threads=group.threads,
            subtopologies=group.subtopologies,
            brokers=brokers,
        )
        check_group(made, group)
    except (ReleaseError, ProblemError, OptionError) as error:
        why = str(error)
        return GroupPlan(name=name, old="", new=new, verdict="no plan", is_red=True, problem=why)
    costs = None
    if not given["no_costs"]:
        seeds = given["seeds"] or min(group.seeds, _SEEDS)
        costs = step_costs(made, group, seeds=seeds, progress=progress)
    decision = decision_of(made, group, costs or ())
    assumed = _assumed_release(saved, made.old, wanted.old)
    return GroupPlan(
        name=name,
        old=made.old,
        new=made.new,
        verdict=decision.words,
        is_red=decision.is_red,
        problem="; ".join(decision.reasons),
        made=made,
        group=group,
        costs=costs,
        unknowns=tuple(filter(None, (*assumed, group.begun, *assumptions(made), *group.notes))),
    )


def _planned_move(name: str, saved: SavedGroup, wanted: _Wanted) -> GroupPlan:
    """Return the plan of a streams group, or of a group that becomes one; errors as its makers."""
    given, new, uses = wanted.given, wanted.new, wanted.uses_of(name)
    if not saved.is_streams_group:
        move = planned_move(given, saved, _own_release(saved, wanted.old), uses)
        old = move.release
    elif new == STREAMS:
        verdict = "nothing to do, it is a streams group"
        return GroupPlan(name=name, old=new, new=new, verdict=verdict, is_red=False)
    else:
        move = planned_upgrade(given, saved, uses)
        old = find_release(given["old"]).name
    decision = move_decision(move)
    return GroupPlan(
        name=name,
        old=old,
        new=new,
        verdict=decision.words,
        problem="".join(move.obstacles[:1]),
        is_red=decision.is_red,
        move=move,
        unknowns=(*(f"{what}: {action}" for what, action in move.assumed), *saved.group.notes),
    )


def _own_release(saved: SavedGroup, given: Release | None) -> Release | None:
    """Return the given release if it fits what members wrote, else the oldest one that does."""
    common = saved.common_releases
    if given is not None and (not common or given.name in common):
        return given
    return min(map(find_release, common), key=lambda release: release.order, default=None)


def _assumed_release(saved: SavedGroup, release: str, given: Release | None) -> tuple[str, ...]:
    """Return that a release is one of several that fit, as a sentence; often nothing."""
    common = saved.common_releases
    if len(common) <= 1 or (given is not None and given.name in common):
        return ()
    fits = f"members write what {spelled_releases(common)} do; planned from {release}, the oldest"
    return (f"{fits}; --from RELEASE names another",)
