"""Where a finding is present: in the new release, in the upgrade alone, in the old release alone.

A finding of an upgrade is looked for in two more searches with the same bounds: a group that runs
the new release all the while and is restarted member by member, and one of the old release; of a
group of two also among three members, without a crash. It is
the same finding if the same rule is broken by the same issue.
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
    """Where a finding is present; the verdict is that of the first one that any finding has."""

    NEW = "present in the new release"
    UPGRADE = "introduced by the upgrade"
    OLD = "present in the old release only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A finding and where it is present.

    Attributes:
        found: the finding, as the search of the upgrade met it.
        presence: where it is present.
        is_certain: every search that this rests on was complete.
    """

    found: Found
    presence: Presence
    is_certain: bool

    @property
    def is_bad(self) -> bool:
        """Return whether it speaks against the upgrade."""
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
        plan: of the upgrade.
        bounds: of its search, and of the two more, each of which ends once it has met all findings.
        findings: of the search of the upgrade; without any, nothing is searched.
        workers: processes of each search.
        is_out_of_time: asked before each state; True ends a search where it is.
        on_progress: told before each state.
    """
    given = tuple(findings)
    if not given:
        return ()
    wanted = frozenset(kind_of(one) for one in given)

    def search(release: str) -> Explored:
        return explore_alone(
            release,
            bounds,
            wanted=wanted,
            workers=workers,
            is_out_of_time=is_out_of_time,
            on_progress=on_progress,
        )

    # The old release first: what it does alone is found soon, and then there is time for the new.
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
    """Return what a group does in which one release is restarted member by member.

    Two members are too few for some of what a release does, such as KAFKA-14382 without another
    version: what they do not do is looked for among three, without a crash.

    Args:
        release: of every member, before and after.
        bounds: of the search.
        wanted: look for these alone; all by default.
        workers: processes of each search.
        is_out_of_time: asked before each state; True ends the search where it is.
        on_progress: told before each state.
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
        findings: of the search of the upgrade.
        in_old: the search of the old release alone.
        in_new: the search of the new release alone.
    """
    old, new = (frozenset(map(kind_of, searched.found)) for searched in (in_old, in_new))
    placed = []
    for one in findings:
        kind = kind_of(one)
        if kind in new:
            found = Placed(found=one, presence=Presence.NEW, is_certain=True)
        elif kind in old:
            found = Placed(found=one, presence=Presence.OLD, is_certain=in_new.complete)
        else:
            certain = in_new.complete and in_old.complete
            found = Placed(found=one, presence=Presence.UPGRADE, is_certain=certain)
        placed.append(found)
    order = list(Presence)
    return tuple(sorted(placed, key=lambda one: order.index(one.presence)))


def kind_of(found: Found) -> tuple[str, str | None]:
    """Return what makes two findings the same: the broken rule and the issue behind it."""
    return found.finding.broken.rule, found.issue


def _restart(release: str, bounds: Bounds) -> Plan:
    """Every member is restarted on the release that it runs."""
    return plan_bounce(
        BounceOptions(
            old=release,
            new=release,
            static=bounds.static,
            force=True,
            dimensions=bounds.dimensions,
        )
    )
