"""Presence of a finding: in the new release, only during the upgrade, or in the old release alone.

Each finding of an upgrade is looked for in two more searches with the same bounds: a group that
runs only the new release and is restarted member by member, and the same with the old release. For
a group of two, three members without a crash are searched, too. Two findings are the same if the
same rule is broken by the same issue.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from system_tests.explore.bounds import Bounds
from system_tests.explore.search import Explored, Found, Progress, explore
from system_tests.sim import BounceOptions, Plan, plan_bounce

_ENOUGH_MEMBERS = 3


class Presence(StrEnum):
    """Where a finding is present; the first value that any finding has is the verdict."""

    NEW = "present in the new release"
    UPGRADE = "introduced by the upgrade"
    OLD = "present in the old release only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A finding and where it is present.

    Attributes:
        found: the finding of the search of the upgrade.
        presence: where it is present.
        is_certain: the searches that `presence` depends on were complete.
    """

    found: Found
    presence: Presence
    is_certain: bool

    @property
    def is_bad(self) -> bool:
        """Whether the finding is a reason against the upgrade."""
        return self.presence is not Presence.OLD


def place(
    plan: Plan,
    bounds: Bounds,
    findings: Iterable[Found],
    *,
    workers: int = 1,
    is_out_of_time: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[Placed, ...]:
    """Return where each finding is present; the worst first, otherwise in the given order.

    Args:
        plan: bounces of the upgrade.
        bounds: bounds of all searches; each search ends when it has met all findings.
        findings: findings of the search of the upgrade; if empty, nothing is searched.
        workers: processes of each search.
        is_out_of_time: called before each state; True ends a search.
        on_progress: called before each state.
    """
    given = tuple(findings)
    if not given:
        return ()
    wanted = frozenset(kind_of(broken) for broken in given)

    def search(release: str) -> Explored:
        return explore_alone(
            release,
            bounds,
            wanted=wanted,
            workers=workers,
            is_out_of_time=is_out_of_time,
            on_progress=on_progress,
        )

    # The old release first: its own findings are found fast, which leaves time for the new one.
    in_old = search(plan.old)
    return placed_by(given, in_old=in_old, in_new=search(plan.new))


def explore_alone(
    release: str,
    bounds: Bounds,
    *,
    wanted: frozenset[tuple[str, str | None]] = frozenset(),
    workers: int = 1,
    is_out_of_time: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Explored:
    """Return the search of a group of one release that is restarted member by member.

    Some findings need more than two members, such as KAFKA-14382 without another version. What two
    members do not show is looked for among three members, without a crash.

    Args:
        release: release of every member, before and after the restart.
        bounds: bounds of the search.
        wanted: look only for these rules with their issues; default: all.
        workers: processes of each search.
        is_out_of_time: called before each state; True ends the search.
        on_progress: called before each state.
    """
    plan = _restart(release, bounds)
    search = partial(
        explore, workers=workers, is_out_of_time=is_out_of_time, on_progress=on_progress
    )
    found = search(plan, bounds, wanted=wanted)
    missing = wanted - frozenset(map(kind_of, found.found))
    if bounds.members >= _ENOUGH_MEMBERS or (wanted and not missing):
        return found
    partitions = bounds.partitions * _ENOUGH_MEMBERS // bounds.members
    wider = replace(bounds, members=_ENOUGH_MEMBERS, partitions=partitions, crashes=0)
    among_three = search(plan, wider, wanted=missing)
    return replace(
        found,
        stopped=found.stopped or among_three.stopped,
        found=(*found.found, *among_three.found),
    )


def placed_by(
    findings: Iterable[Found], *, in_old: Explored, in_new: Explored
) -> tuple[Placed, ...]:
    """Return where each finding is present; the worst first, otherwise in the given order.

    Args:
        findings: findings of the search of the upgrade.
        in_old: search of the old release alone.
        in_new: search of the new release alone.
    """
    old, new = (frozenset(map(kind_of, searched.found)) for searched in (in_old, in_new))
    placed = []
    for finding in findings:
        kind = kind_of(finding)
        if kind in new:
            found = Placed(found=finding, presence=Presence.NEW, is_certain=True)
        elif kind in old:
            found = Placed(found=finding, presence=Presence.OLD, is_certain=in_new.complete)
        else:
            certain = in_new.complete and in_old.complete
            found = Placed(found=finding, presence=Presence.UPGRADE, is_certain=certain)
        placed.append(found)
    order = list(Presence)
    return tuple(sorted(placed, key=lambda finding: order.index(finding.presence)))


def kind_of(found: Found) -> tuple[str, str | None]:
    """Return the identity of a finding: the broken rule and the id of its issue."""
    return found.finding.broken.rule, found.issue


def _restart(release: str, bounds: Bounds) -> Plan:
    """Return the plan that restarts every member on the release that it runs."""
    return plan_bounce(
        BounceOptions(
            old=release,
            new=release,
            static=bounds.static,
            force=True,
            dimensions=bounds.dimensions,
        )
    )
