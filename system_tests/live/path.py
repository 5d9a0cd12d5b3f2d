"""From two releases and the operator's switches to a plan, or to the sentence why not."""

from dataclasses import dataclass

from probing import Release, UpgradePath, find_release, upgrade_path
from system_tests.live.plan import LivePlan, Stage


class PathError(ValueError):
    """The path cannot be taken, or must be asked for; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """How the operator wants the path taken.

    Attributes:
        no_pin: one bounce without `upgrade.from`, whatever the path needs.
        offline: stop all, start all, without a pin.
        force: take a path that is known to be broken.
    """

    no_pin: bool = False
    offline: bool = False
    force: bool = False


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
    if switches.offline or switches.no_pin:
        stages: tuple[Stage, ...] = (_stage(after, None),)
    else:
        stages = _rolling_stages(path, after, force=switches.force)
    return LivePlan(
        before=_stage(before, None),
        stages=stages,
        promised_versions=(after.latest_version,),
        extra_rebalances=True,
        advice=_advice(path, after),
    )


def _rolling_stages(path: UpgradePath, after: Release, *, force: bool) -> tuple[Stage, ...]:
    if path.possible:
        return tuple(_stage(bounce.release, bounce.upgrade_from) for bounce in path.bounces)
    if force:
        return (_stage(after, None),)
    raise PathError(path.why)


def _stage(release: Release, upgrade_from: str | None) -> Stage:
    return Stage(
        release=release.name, upgrade_from=upgrade_from, latest_version=release.latest_version
    )


def _advice(path: UpgradePath, after: Release) -> str | None:
    pinned = [bounce for bounce in path.bounces if bounce.upgrade_from is not None]
    if not pinned:
        return None
    first = pinned[0]
    return (
        f"bounce every member to {first.release.name} with upgrade.from={first.upgrade_from} "
        f"first, then once more to {after.name} without it"
    )
