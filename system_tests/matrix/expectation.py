"""The upgrade matrix: what the release table expects of every pair, in one of seven outcomes.

Rows and columns are not releases but *kinds*: releases that no group could tell apart stand for one
another, so the table stays readable and nothing is left out. What is expected here is computed from
the release table alone (`probing.upgrade_path`); `evidence.py` asks the simulator whether it is
true. A forbidden cell is a cell with a reason, never a missing one.
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
from system_tests.sim.world import behaviour_of

_OURS_TO_COME = frozenset({"next", "incompatible"})
_LEADERS_OWN_NUMBER = "leader's own number"


class CellOutcome(StrEnum):
    """What becomes of a group that goes from one release to another."""

    SAME = "same release"
    ONE_BOUNCE = "one bounce"
    TWO_BOUNCES = "two bounces"
    BRIDGE = "bridge needed"
    BROKEN = "broken"
    REFUSED = "refused"
    OFFLINE = "offline only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Releases that behave alike in a group, oldest first; the newest stands for all."""

    releases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The release that is simulated."""
        return self.releases[-1]

    @property
    def label(self) -> str:
        """From the oldest to the newest; a kind may leave out releases in between."""
        first, last = self.releases[0], self.releases[-1]
        return last if first == last else f"{first} - {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the release table says of one pair.

    Attributes:
        old, new: names of the releases.
        outcome: one of seven; direction: upgrade, rollback or none.
        path: as `probing` gives it.
        route: releases to stop over at that make every leg possible; empty where none is needed or
            none helps.
        issue: the id of what is broken, "" where nothing is.
        fatal_setting: the sentence about an `upgrade.from` that is fatal or refused at start here,
            "" where there is none.
        reason: one sentence.
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
        """The setting of the first bounce."""
        return self.path.bounces[0].upgrade_from if self.path.bounces else None


def route(old: Release, new: Release) -> tuple[str, ...]:
    """Return where to stop over so that every leg is a rolling one; empty if nothing helps.

    Releases between the two come first, and of those the newest, since it has the fewest open
    issues.
    """
    bridges = [find_release(bridge) for bridge in upgrade_path(old, new).bridges]
    lower, higher = sorted((old.order, new.order))
    bridges.sort(key=lambda one: (lower < one.order < higher, one.order), reverse=True)
    for through in bridges:
        legs = (upgrade_path(old, through), upgrade_path(through, new))
        if through.name not in (old.name, new.name) and all(leg.possible for leg in legs):
            return (through.name,)
    return ()


def expect(old: Release, new: Release) -> Expectation:
    """Return what the release table says of the way from one release to another."""
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
    """Return the first row that holds."""
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
    """Say that the value one would set ends the program, where it does."""
    for row in higher.upgrade_from_rows:
        if row.value == lower.series and row.standing is not Standing.ACCEPTED:
            return f"upgrade.from={row.value} {row.standing} on {higher.name}: {row.why}"
    return ""


@cache
def kinds() -> tuple[Kind, ...]:
    """Return the kinds of the release table, oldest first, ours last.

    Two releases are of one kind if the group's rules, the simulator's behaviour, the open issues
    and what each makes of the values of `upgrade.from` are the same for both.
    """
    found: dict[tuple[object, ...], list[str]] = {}
    for release in RELEASES:
        if release.name not in _OURS_TO_COME:
            found.setdefault(_signature(release), []).append(release.name)
    return tuple(Kind(releases=tuple(names)) for names in found.values())


def _signature(release: Release) -> tuple[object, ...]:
    """Return everything that others in a group could notice of a release."""
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
    """Return every way from one of the first to one of the second."""
    targets = tuple(news)
    return tuple((old, new) for old in olds for new in targets if old != new)


def all_pairs() -> tuple[tuple[str, str], ...]:
    """Return the pairs of the matrix: kinds both ways, and within a kind oldest and newest."""
    names = [kind.name for kind in kinds()]
    ends = [(kind.releases[0], kind.name) for kind in kinds() if len(kind.releases) > 1]
    within = [pair for old, new in ends for pair in ((old, new), (new, old))]
    return (*pairs_between(names, names), *within)
