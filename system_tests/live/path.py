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
    asked_for = switches.offline or switches.no_pin or switches.force
    if not path.possible and not asked_for:
        raise PathError(f"{path.reasons[0]} (--offline does that; --force shows what it prevents)")
    one_bounce = switches.offline or switches.no_pin or not path.bounces
    return LivePlan(
        before=_stage(before, None),
        stages=(_stage(after, None),)
        if one_bounce
        else tuple(_stage(find_release(b.release), b.upgrade_from) for b in path.bounces),
        promised_versions=(after.latest_native_version or after.latest_version,),
        notes=(*path.reasons, *path.notes),
        advice=_advice(path),
    )


def _stage(release: Release, upgrade_from: str | None) -> Stage:
    return Stage(
        release=release.name,
        upgrade_from=upgrade_from,
        latest_version=release.latest_native_version or release.latest_version,
    )


def _advice(path: UpgradePath) -> str | None:
    """Say what would have gone well, where one bounce without a pin does not."""
    needs_advice = not path.possible or any(b.upgrade_from is not None for b in path.bounces)
    return path.reasons[0] if needs_advice else None
