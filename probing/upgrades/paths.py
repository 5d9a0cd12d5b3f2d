"""Path from one release to another by rolling bounces: how many, with which setting, or why not.

A rolling bounce restarts every member, one at a time, with another program or setting; meanwhile
the group is mixed, and any member may lead. One ordered table decides for upgrades and rollbacks,
the first row that holds: the *higher* release has to write the versions of the *lower* one while
the group is mixed. Sources: KIP-268, KIP-429, KAFKA-6054, KAFKA-8649, KAFKA-18839.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from probing.releases import (
    BRIDGE_SERIES,
    FIRST_PATCH_WITHOUT_EAGER,
    RELEASES,
    WITHOUT_EAGER,
    LeaderModel,
    RebalanceProtocol,
    Release,
    Standing,
    parse_order,
)
from probing.upgrades.notes import notes_for
from probing.versions import EARLIEST_PROBEABLE_VERSION


class Direction(StrEnum):
    """Direction of a path."""

    NONE = "none"
    UPGRADE = "upgrade"
    ROLLBACK = "rollback"


class BounceReason(StrEnum):
    """Why a bounce is needed."""

    METADATA = "metadata"
    """The version must be pinned while members without version probing are in the group."""
    PROTOCOL = "protocol"
    """The rebalance protocol must stay eager while eager members are in the group."""
    PROBING = "probing"
    """Another release; version probing finds the version."""
    PROGRAM = "program"
    """Another release that writes the same version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounce:
    """One rolling bounce: every member is restarted as ``release`` with ``upgrade_from``."""

    release: str
    upgrade_from: str | None
    reasons: tuple[BounceReason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePath:
    """How a group changes from one release to another.

    Attributes:
        old, new: names of the releases.
        direction: upgrade, rollback or none.
        possible: by rolling bounces; if False, stop all members, or go through ``bridges``.
        bounces: in order; empty if not possible, or if there is nothing to do.
        bridges: intermediate releases, if there is no direct path.
        rule: the row that decided.
        reasons: sentences: why these bounces, or why none.
        notes: sentences on other formats, known issues and rollback.
    """

    old: str
    new: str
    direction: Direction
    possible: bool
    bounces: tuple[Bounce, ...]
    bridges: tuple[str, ...]
    rule: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    def stages(self, *, in_one: bool = False) -> tuple[Bounce, ...]:
        """Return the bounces to run: those of the path, or one to ``new`` without a pin.

        Args:
            in_one: return one bounce, whatever the path needs. A path without bounces always
                gets one.
        """
        if self.bounces and not in_one:
            return self.bounces
        return (Bounce(release=self.new, upgrade_from=None, reasons=()),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Two releases: ``old`` and ``new`` of the path, ``lower`` and ``higher`` by age."""

    old: Release
    new: Release

    @property
    def lower(self) -> Release:
        return min(self.old, self.new, key=lambda release: release.order)

    @property
    def higher(self) -> Release:
        return max(self.old, self.new, key=lambda release: release.order)

    @property
    def direction(self) -> Direction:
        if self.old.order == self.new.order:
            return Direction.NONE
        return Direction.UPGRADE if self.old.order < self.new.order else Direction.ROLLBACK

    @property
    def pin_reasons(self) -> tuple[BounceReason, ...]:
        """Return why the higher release must be pinned while the group is mixed."""
        lower, higher = self.lower, self.higher
        metadata = lower.latest_version < min(EARLIEST_PROBEABLE_VERSION, higher.latest_version)
        protocol = (
            lower.rebalance_protocol is RebalanceProtocol.EAGER
            and higher.rebalance_protocol is RebalanceProtocol.COOPERATIVE
        )
        wanted = ((metadata, BounceReason.METADATA), (protocol, BounceReason.PROTOCOL))
        return tuple(reason for needed, reason in wanted if needed)

    @property
    def standing(self) -> Standing | None:
        """Return how the higher release treats upgrade.from=<lower series>, None if unknown."""
        rows = {row.value: row.standing for row in self.higher.upgrade_from_rows}
        return rows.get(self.lower.series)

    @property
    def is_broken(self) -> bool:
        """Tell whether KAFKA-8649 applies: the higher leads, and the lower copies its version."""
        return (
            self.higher.leader_model is LeaderModel.EMPTY_AND_OWN
            and EARLIEST_PROBEABLE_VERSION <= self.lower.latest_version < self.higher.latest_version
        )


def _order(name: str) -> tuple[int, ...]:
    return parse_order(name) or ()


def _one_bounce(pair: _Pair) -> tuple[Bounce, ...]:
    same = pair.old.latest_version == pair.new.latest_version
    reason = BounceReason.PROGRAM if same else BounceReason.PROBING
    return (Bounce(release=pair.new.name, upgrade_from=None, reasons=(reason,)),)


def _two_bounces(pair: _Pair) -> tuple[Bounce, ...]:
    """Return a bounce that pins the higher release, then one that starts ``new`` without a pin."""
    reasons = pair.pin_reasons
    return (
        Bounce(release=pair.higher.name, upgrade_from=pair.lower.series, reasons=reasons),
        Bounce(release=pair.new.name, upgrade_from=None, reasons=reasons),
    )


def _fixed_bridges(_: _Pair) -> tuple[str, ...]:
    """Return the releases whose leader answers with the lowest supported version."""
    model = LeaderModel.EMPTY_AND_LOWEST
    return (*(release.name for release in RELEASES if release.leader_model is model), "2.4")


def _backport_bridges(pair: _Pair) -> tuple[str, ...]:
    """Return the releases between the two that accept upgrade.from=0.10.0."""
    return tuple(
        release.name
        for release in RELEASES
        if release.leader_model is LeaderModel.LOWEST_USED
        and pair.lower.order < release.order < pair.higher.order
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRule:
    """One row: its condition, whether there is a path, and which."""

    name: str
    holds: Callable[[_Pair], bool]
    possible: bool
    why: str
    bounces: Callable[[_Pair], tuple[Bounce, ...]] = lambda _: ()
    bridges: Callable[[_Pair], tuple[str, ...]] = lambda _: ()


PATH_RULES: Final = (
    PathRule(
        name="same release",
        holds=lambda p: p.direction is Direction.NONE,
        possible=True,
        why="every member already runs {new}",
    ),
    PathRule(
        name="leader's own number",
        holds=lambda p: p.is_broken,
        possible=False,
        bridges=_fixed_bridges,
        why="a leader of {higher} answers with version {higher_latest}, a member of {lower} copies"
        " it and cannot write it (KAFKA-8649); use one of {bridges} instead, or stop all members"
        " and start them as {new}",
    ),
    PathRule(
        name="pinned, two bounces",
        holds=lambda p: bool(p.pin_reasons) and p.standing is Standing.ACCEPTED,
        possible=True,
        bounces=_two_bounces,
        why="{pin_why}: set upgrade.from={value} on {higher} for the first rolling bounce, and"
        " {second} in the second one",
    ),
    PathRule(
        name="eager protocol is gone",
        holds=lambda p: bool(p.pin_reasons) and p.higher.order >= _order(FIRST_PATCH_WITHOUT_EAGER),
        possible=False,
        bridges=lambda _: BRIDGE_SERIES,
        why="{pin_why}, and {higher} cannot be pinned: " + WITHOUT_EAGER + "; bounce to"
        " {three_bounces} ({others} serve as well; a bridge below 3.5 needs one more pinned bounce,"
        " KIP-904), or stop all members and start them as {new}",
    ),
    PathRule(
        name="no backport of KAFKA-6054",
        holds=lambda p: bool(p.pin_reasons),
        possible=False,
        bridges=_backport_bridges,
        why="{pin_why}, and {higher} has no upgrade.from (KAFKA-6054); {detour}stop all members"
        " and start them as {new}",
    ),
    PathRule(
        name="same version, one bounce",
        holds=lambda p: p.old.latest_version == p.new.latest_version,
        possible=True,
        bounces=_one_bounce,
        why="{old} and {new} both write version {higher_latest}: one rolling bounce, no setting",
    ),
    PathRule(
        name="probing, one bounce",
        holds=lambda _: True,
        possible=True,
        bounces=_one_bounce,
        why="version probing finds version {lower_latest} while the group is mixed: one rolling"
        " bounce, no setting",
    ),
)


def upgrade_path(old: Release, new: Release) -> UpgradePath:
    """Return the path from ``old`` to ``new`` by rolling bounces, or why there is none."""
    pair = _Pair(old=old, new=new)
    rule = next(rule for rule in PATH_RULES if rule.holds(pair))
    bridges = rule.bridges(pair)
    return UpgradePath(
        old=old.name,
        new=new.name,
        direction=pair.direction,
        possible=rule.possible,
        bounces=rule.bounces(pair),
        bridges=bridges,
        rule=rule.name,
        reasons=(_sentence(rule.why, pair, bridges),),
        notes=notes_for(old, new),
    )


def _sentence(template: str, pair: _Pair, bridges: tuple[str, ...]) -> str:
    """Fill in a row's sentence."""
    lower, higher = pair.lower, pair.higher
    whys = {
        BounceReason.METADATA: f"read up to version {lower.latest_version} without version probing",
        BounceReason.PROTOCOL: "know the eager rebalance protocol only",
    }
    upwards = pair.direction is Direction.UPGRADE
    over, pinned = "".join(bridges[-1:]), f"with upgrade.from={lower.series}"
    pins = (f"{over} {pinned}", f"{over} without it") if upwards else (over, f"{over} {pinned}")
    return template.format(
        old=pair.old.name,
        new=pair.new.name,
        lower=lower.name,
        higher=higher.name,
        lower_latest=lower.latest_version,
        higher_latest=higher.latest_version,
        value=lower.series,
        pin_why=f"members of {lower.name} "
        + ", and ".join(whys[reason] for reason in pair.pin_reasons),
        second="remove it" if upwards else f"start the members as {pair.new.name}",
        bridges=", ".join(bridges),
        three_bounces=f"{pins[0]}, then {pins[1]}, then {pair.new.name}",
        others=f"{bridges[0]} to {bridges[-2]}" if len(bridges) > 1 else "",
        detour=f"go through {' or '.join(bridges)}, or " if bridges else "",
    )
