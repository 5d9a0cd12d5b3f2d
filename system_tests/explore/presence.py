"""Where a finding is present: in the new release, in the upgrade alone, in the old release alone.

A finding of an upgrade is looked for in two more searches with the same bounds: a group that runs
the new release all the while and is restarted member by member, and one of the old release. It is
the same finding if the same rule is broken by the same issue.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from system_tests.explore.bounds import Bounds
from system_tests.explore.search import Explored, Found, explore
from system_tests.sim import BounceOptions, Plan, plan_bounce


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
    is_out_of_time: Callable[[], bool] = lambda: False,
) -> tuple[Placed, ...]:
    """Return where each finding is present; the worst first, otherwise in the given order.

    Args:
        plan: of the upgrade.
        bounds: of its search, and of the two more, each of which ends once it has met all findings.
        findings: of the search of the upgrade; without any, nothing is searched.
        is_out_of_time: asked before each state; True ends a search where it is.
    """
    given = tuple(findings)
    if not given:
        return ()
    wanted = frozenset(kind_of(one) for one in given)

    def met_in(release: str) -> tuple[frozenset[tuple[str, str | None]], Explored]:
        explored = explore(
            _restart(release, bounds), bounds, wanted=wanted, is_out_of_time=is_out_of_time
        )
        return frozenset(kind_of(one) for one in explored.found), explored

    # The old release first: what it does alone is found soon, and then there is time for the new.
    in_old, searched_old = met_in(plan.old)
    in_new, searched_new = met_in(plan.new)
    placed = []
    for one in given:
        kind = kind_of(one)
        if kind in in_new:
            found = Placed(found=one, presence=Presence.NEW, is_certain=True)
        elif kind in in_old:
            certain = searched_new.complete
            found = Placed(found=one, presence=Presence.OLD, is_certain=certain)
        else:
            certain = searched_new.complete and searched_old.complete
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
