"""The path of a live bounce: which releases the members run, stage by stage."""

from dataclasses import dataclass, replace
from itertools import pairwise

from assignor.adapters.membership import offered_protocol
from probing import RebalanceProtocol, Release, UpgradePath, find_release, upgrade_path
from probing.upgrades import former_answer_is_unreadable
from system_tests.live.options import Switches

_COOPERATIVE = RebalanceProtocol.COOPERATIVE.value
_TO_COOPERATIVE = (
    "eager members first, cooperative ones in a second bounce: leaders up to 2.3 do not wait for "
    "cooperative owners"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One bounce of the path: every member is brought to this release.

    Attributes:
        release: exact name, as in the release table.
        upgrade_from: the pin the members run with, or None.
        latest_version: the highest version the release reads and writes.
        rebalance_protocol: "eager" or "cooperative", as the members are configured.
        expires: a stopped member starts after its session has expired.
    """

    release: str
    upgrade_from: str | None
    latest_version: int
    rebalance_protocol: str = "eager"
    expires: bool = False

    def describe(self) -> str:
        """Return release, version, pin and protocol as text."""
        pin = f", upgrade.from {self.upgrade_from}" if self.upgrade_from else ""
        moves = "" if self.rebalance_protocol == "eager" else f", {self.rebalance_protocol}"
        return f"release {self.release} (latest v{self.latest_version}){pin}{moves}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """The stages of a live bounce, and the version that it ends with.

    Attributes:
        before: what every member runs at first.
        stages: the bounces, in order; at least one.
        promised_versions: versions that the group may use at the end, the usual one first.
        notes: sentences about the path, the reason for its number of bounces first.
        advice: one sentence for the case that members die of this path, or None.
    """

    before: Stage
    stages: tuple[Stage, ...]
    promised_versions: tuple[int, ...]
    notes: tuple[str, ...] = ()
    advice: str | None = None

    def admits_foreign(self, leader_release: str | None) -> bool:
        """Return whether a member with unreadable user data joins now.

        It joins under a leader that quarantines it; on a path to a release whose leaders all end
        because of it, at once.

        Args:
            leader_release: of the leader; None while the group has none.
        """
        if leader_release is None:
            return False
        ends_native = find_release(self.stages[-1].release).is_native
        return find_release(leader_release).is_native or not ends_native


class PathError(ValueError):
    """The path cannot be taken, or must be asked for; the message says why and what to do."""


def plan_path(old: str, new: str, switches: Switches) -> LivePlan:
    """Return the stages from one release to another.

    Args:
        old: name of the release that the group runs.
        new: name of the release that it is brought to.
        switches: how the path is taken.

    Raises:
        ReleaseError: a release does not exist; the message names the nearest ones.
        PathError: the path is impossible or broken and the switches do not ask for it.
    """
    before, after = find_release(old), find_release(new)
    path = upgrade_path(before, after)
    asked_for = switches.offline or switches.no_pin or switches.force
    if not path.possible and not asked_for:
        raise PathError(f"{path.reasons[0]} (--offline does that; --force shows what it prevents)")
    in_one = switches.offline or switches.no_pin
    stages = tuple(
        _stage(find_release(bounce.release), bounce.upgrade_from)
        for bounce in path.stages(in_one=in_one)
    )
    if switches.static and switches.waits_for_sessions:
        programs = pairwise(map(find_release, (old, *(stage.release for stage in stages))))
        stages = tuple(
            replace(stage, expires=former_answer_is_unreadable(*ends))
            for stage, ends in zip(stages, programs, strict=True)
        )
    first = _stage(before, None)
    notes = (*path.reasons, *path.notes)
    if switches.rebalance_protocol == _COOPERATIVE:
        stages = _cooperative(stages, before, after, in_one=in_one)
        # Native members begin with their default: eager.
        first = first if before.is_native else _with_offered_protocol(first)
        notes = (_TO_COOPERATIVE, *notes) if len(stages) > 1 and after.is_native else notes
    return LivePlan(
        before=first,
        stages=stages,
        promised_versions=tuple(
            dict.fromkeys(
                stage.latest_version for stage in (stages[-1], *([first] * switches.static))
            )
        ),
        notes=notes,
        advice=_advice(path),
    )


def _stage(release: Release, upgrade_from: str | None) -> Stage:
    return Stage(
        release=release.name,
        upgrade_from=upgrade_from,
        latest_version=release.latest_native_version or release.latest_version,
    )


def _cooperative(
    stages: tuple[Stage, ...], before: Release, after: Release, *, in_one: bool
) -> tuple[Stage, ...]:
    """The bounces to cooperative members; Kafka's releases go by their table and their pins.

    A leader up to 2.3 hands a partition on while its owner still has it. Native members stay eager
    until the last such program is gone, and let go of it in a bounce of their own (KIP-429).
    """
    cooperative = tuple(_with_offered_protocol(stage) for stage in stages)
    old_leaders = before.rebalance_protocol is RebalanceProtocol.EAGER and not before.is_native
    if in_one or not (after.is_native and old_leaders):
        return cooperative
    return (*stages, cooperative[-1])


def _with_offered_protocol(stage: Stage) -> Stage:
    """Return the stage with the protocol that its members offer when configured cooperative."""
    offered = offered_protocol(find_release(stage.release), stage.upgrade_from, "cooperative")
    return replace(stage, rebalance_protocol=offered.value)


def _advice(path: UpgradePath) -> str | None:
    """Say what would have gone well, where one bounce without a pin does not."""
    needs_advice = not path.possible or any(b.upgrade_from is not None for b in path.bounces)
    return path.reasons[0] if needs_advice else None
