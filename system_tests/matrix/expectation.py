"""The expected outcome of every pair of releases: one of seven, computed from the release table.

Rows and columns are *kinds*: releases that behave alike in a group share a row. Expectations come
from the release table alone (`probing.upgrade_path`); `evidence.py` checks them in the simulator. A
pair without a path has a cell with a reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from probing import (
    RELEASES,
    Direction,
    Release,
    Standing,
    UpgradePath,
    find_release,
    upgrade_path,
)
from probing.upgrades import one_way_formats_between
from system_tests.sim.world import behaviour_of

_PLANNED_RELEASES = frozenset({"next", "incompatible"})
_LEADERS_OWN_NUMBER = "leader's own number"


class CellOutcome(StrEnum):
    """How a group gets from one release to another, or why it cannot."""

    SAME = "same release"
    ONE_BOUNCE = "one bounce"
    TWO_BOUNCES = "two bounces"
    BRIDGE = "bridge needed"
    BROKEN = "broken"
    REFUSED = "refused"
    OFFLINE = "offline only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Releases that behave alike in a group, oldest first."""

    releases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The newest release, which is simulated for all."""
        return self.releases[-1]

    @property
    def label(self) -> str:
        """The oldest and the newest release; a kind need not hold all releases in between."""
        first, last = self.releases[0], self.releases[-1]
        return last if first == last else f"{first} - {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The expectation of one pair, from the release table.

    Attributes:
        old, new: names of the releases.
        outcome: the expected outcome.
        path: upgrade path of `probing`.
        route: releases in between that allow rolling bounces on every leg; empty if none is needed
            or none exists.
        issue: id of the Kafka issue that breaks the path; "" if none.
        fatal_setting: sentence about a value of `upgrade.from` that crashes or is refused at
            start; "" if there is none.
        reason: the reason of the outcome, one sentence.
    """

    old: str
    new: str
    outcome: CellOutcome
    path: UpgradePath
    route: tuple[str, ...]
    issue: str
    fatal_setting: str
    reason: str

    @property
    def direction(self) -> Direction:
        """Upgrade, rollback or none."""
        return self.path.direction

    @property
    def upgrade_from(self) -> str | None:
        """`upgrade.from` of the first bounce; None if it has none."""
        return self.path.bounces[0].upgrade_from if self.path.bounces else None


def route(old: Release, new: Release) -> tuple[str, ...]:
    """Return the release in between that allows rolling bounces on both legs; empty if none.

    It is the best of `routes` among the bridges that the path names.
    """
    named = {find_release(bridge).name for bridge in upgrade_path(old, new).bridges}
    return tuple(stop.name for stop in routes(old, new) if stop.name in named)[:1]


def routes(old: Release, new: Release) -> tuple[Release, ...]:
    """Return the releases in between that allow rolling bounces on both legs, the best one first.

    They are the bridges of the path, and the newest patch of each series between the two.

    It has the fewest bounces, then deletes state least often, then has the fewest bounces that set
    `upgrade.from`. Of equal ones, the newest release between the two, since newer releases have
    fewer open issues; else the release nearest to them, since a later one may write stores that the
    target does not read.
    """
    named = {find_release(bridge).name for bridge in upgrade_path(old, new).bridges}
    lower, higher = sorted((old.order, new.order))
    bridges = (
        stop
        for stop in RELEASES
        if (stop.name in named or (lower < stop.order < higher and _is_newest_patch(stop)))
        and _is_bridge(old, stop, new)
    )
    return tuple(sorted(bridges, key=lambda bridge: _route_cost(old, bridge, new)))


def _is_newest_patch(release: Release) -> bool:
    """Whether a release is of Kafka, and no later one has its series."""
    return not release.is_native and find_release(release.series) is release


def _is_bridge(old: Release, through: Release, new: Release) -> bool:
    """Whether rolling bounces lead to ``through``, a third release, and from there to ``new``."""
    return through.name not in (old.name, new.name) and all(
        upgrade_path(*leg).possible for leg in ((old, through), (through, new))
    )


def _route_cost(old: Release, through: Release, new: Release) -> tuple[int, ...]:
    """Return the sort key of a route: bounces, deletions, pins, releases outside, and back."""
    legs = ((old, through), (through, new))
    bounces = [bounce for leg in legs for bounce in upgrade_path(*leg).bounces]
    deletions = sum(bool(one_way_formats_between(after, before)) for before, after in legs)
    pinned = sum(bounce.upgrade_from is not None for bounce in bounces)
    place = RELEASES.index(through)
    lower, higher = sorted((RELEASES.index(old), RELEASES.index(new)))
    return (len(bounces), deletions, pinned, max(lower - place, 0, place - higher), -place)


def expect(old: Release, new: Release) -> Expectation:
    """Return the expectation of a pair of releases."""
    path = upgrade_path(old, new)
    stops = () if path.possible else route(old, new)
    issue = {_LEADERS_OWN_NUMBER: "KAFKA-8649", "no backport of KAFKA-6054": "KAFKA-6054"}.get(
        path.rule, ""
    )
    lower, higher = sorted((old, new), key=lambda release: release.order)
    fatal = _fatal_setting(lower, higher)
    return Expectation(
        old=old.name,
        new=new.name,
        outcome=_outcome(path, stops, refused=bool(fatal)),
        path=path,
        route=stops,
        issue=issue,
        fatal_setting=fatal,
        reason=path.reasons[0],
    )


def _outcome(path: UpgradePath, stops: tuple[str, ...], *, refused: bool) -> CellOutcome:
    """Return the outcome of the first row whose condition holds."""
    rows = (
        (path.direction is Direction.NONE, CellOutcome.SAME),
        (path.possible and len(path.bounces) == 1, CellOutcome.ONE_BOUNCE),
        (path.possible, CellOutcome.TWO_BOUNCES),
        (path.rule == _LEADERS_OWN_NUMBER, CellOutcome.BROKEN),
        (bool(stops), CellOutcome.BRIDGE),
        (refused, CellOutcome.REFUSED),
        (True, CellOutcome.OFFLINE),
    )
    return next(outcome for holds, outcome in rows if holds)


def _fatal_setting(lower: Release, higher: Release) -> str:
    """Return a sentence about `upgrade.from` of the older release if it prevents the start."""
    for row in higher.upgrade_from_rows:
        if row.value == lower.series and row.standing is not Standing.ACCEPTED:
            return f"upgrade.from={row.value} {row.standing} on {higher.name}: {row.why}"
    return ""


@cache
def kinds() -> tuple[Kind, ...]:
    """Return the kinds of the release table, oldest first, native last.

    Two releases are of one kind if they have the same group rules, simulated behaviour, open
    issues and handling of `upgrade.from`.
    """
    found: dict[tuple[object, ...], list[str]] = {}
    for release in RELEASES:
        if release.name not in _PLANNED_RELEASES:
            found.setdefault(_signature(release), []).append(release.name)
    return tuple(Kind(releases=tuple(names)) for names in found.values())


def _signature(release: Release) -> tuple[object, ...]:
    """Return everything about a release that affects other members of its group."""
    settings = frozenset(
        (row.standing, row.pinned_version, row.rebalance_protocol, row.formats)
        for row in release.upgrade_from_rows
    )
    nameless = replace(behaviour_of(release.name, None), release=find_release("native"))
    return (
        release.readable_versions,
        release.leader_model,
        release.member_model,
        release.rebalance_protocol,
        release.open_issues,
        settings,
        nameless,
    )


def pairs_between(olds: Iterable[str], news: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return all pairs of different releases, one of `olds` and one of `news`."""
    targets = tuple(news)
    return tuple((old, new) for old in olds for new in targets if old != new)


def all_pairs() -> tuple[tuple[str, str], ...]:
    """Return the pairs of the matrix, in both directions: of kinds, and within each kind."""
    names = [kind.name for kind in kinds()]
    ends = [(kind.releases[0], kind.name) for kind in kinds() if len(kind.releases) > 1]
    within = [pair for old, new in ends for pair in ((old, new), (new, old))]
    return (*pairs_between(names, names), *within)
