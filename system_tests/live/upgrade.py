"""From two releases and the operator's switches to a plan, or to the sentence why not."""

from dataclasses import dataclass, replace

from assignor.adapters.membership import offered_protocol
from probing import RebalanceProtocol, Release, UpgradePath, find_release, upgrade_path
from system_tests.live.plan import LivePlan, Stage

_COOPERATIVE = RebalanceProtocol.COOPERATIVE.value
_TO_COOPERATIVE = (
    "eager members first, cooperative ones in a second bounce: leaders up to 2.3 do not wait for "
    "cooperative owners"
)


class PathError(ValueError):
    """The path cannot be taken, or must be asked for; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """How the operator wants the path taken.

    Attributes:
        no_pin: one bounce without `upgrade.from`, whatever the path needs.
        offline: stop all, start all, without a pin.
        force: take a path that is known to be broken.
        rebalance_protocol: "cooperative": how members move partitions at the end, as far as their
            release and their pin let them.
        static: members that come back within their session cause no rebalance (KIP-345), so the
            version may stay until there is one.
    """

    no_pin: bool = False
    offline: bool = False
    force: bool = False
    rebalance_protocol: str = "eager"
    static: bool = False


def plan_path(old: str, new: str, switches: Switches) -> LivePlan:
    """Decide on the stages.

    Args:
        old: name of the release that the group runs.
        new: name of the release that it is brought to.
        switches: how.

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
    first = _stage(before, None)
    notes = (*path.reasons, *path.notes)
    if switches.rebalance_protocol == _COOPERATIVE:
        stages = _cooperative(stages, before, after, in_one=in_one)
        # Members of ours begin as they are by default: eager.
        first = first if before.is_native else _moved_as_told(first)
        notes = (_TO_COOPERATIVE, *notes) if len(stages) > 1 and after.is_native else notes
    return LivePlan(
        before=first,
        stages=stages,
        promised_versions=tuple(
            dict.fromkeys(one.latest_version for one in (stages[-1], *([first] * switches.static)))
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

    A leader up to 2.3 hands a partition on while its owner still has it. Members of ours stay eager
    until the last such program is gone, and let go of it in a bounce of their own (KIP-429).
    """
    cooperative = tuple(_moved_as_told(stage) for stage in stages)
    old_leaders = before.rebalance_protocol is RebalanceProtocol.EAGER and not before.is_native
    if in_one or not (after.is_native and old_leaders):
        return cooperative
    return (*stages, cooperative[-1])


def _moved_as_told(stage: Stage) -> Stage:
    """The stage with members that were told to be cooperative, and are if they can."""
    offered = offered_protocol(find_release(stage.release), stage.upgrade_from, "cooperative")
    return replace(stage, rebalance_protocol=offered.value)


def _advice(path: UpgradePath) -> str | None:
    """Say what would have gone well, where one bounce without a pin does not."""
    needs_advice = not path.possible or any(b.upgrade_from is not None for b in path.bounces)
    return path.reasons[0] if needs_advice else None
