"""The switch of processing.guarantee that an exactly-once application needs on some paths.

Up to 2.5 there is only ``exactly_once`` (EOS version 1). From 2.6 to 3.9 both versions exist, and
from 4.0 on only version 2, ``exactly_once_v2`` (``exactly_once_beta`` up to 2.8). Members may
differ in the value while they are bounced, if all of them run a release that has both. Source:
KIP-447, KIP-732 and the upgrade guide of Kafka Streams.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from probing import Release, find_release, upgrade_path

_SETTING: Final = "processing.guarantee"
_V1: Final = f"{_SETTING}=exactly_once"
_BRIDGE: Final = "3.9"  # the last series with both versions
_FIRST_WITH_BOTH: Final = (2, 6, 0)
_FIRST_WITH_V2_NAME: Final = (3, 0, 0)
_FIRST_WITHOUT_V1: Final = (4, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A bounce that changes processing.guarantee only.

    Attributes:
        release: what the members run meanwhile, a release with both versions.
        version: of exactly-once after it, 1 or 2.
        why: reasons, as sentences.
    """

    release: str
    version: int
    why: tuple[str, ...]

    @property
    def setting(self) -> str:
        """``name=value`` after the switch."""
        return self.named(find_release(self.release))

    def named(self, release: Release) -> str:
        """Return ``name=value`` of the version after the switch, as a release names it."""
        return guarantee_of(release) if self.version > 1 else _V1

    def undone(self) -> "Switch":
        """Return the switch back, on the same release."""
        return replace(self, version=3 - self.version, why=())


def crosses(old: Release, new: Release) -> bool:
    """Whether the two releases have no version of exactly-once in common."""
    if old.is_native or new.is_native:
        return False
    lower, higher = sorted((old, new), key=lambda release: release.order)
    if old.order < new.order:
        # A member of 2.6 to 3.9 may still run version 1.
        return lower.order < _FIRST_WITHOUT_V1 <= higher.order
    return lower.order < _FIRST_WITH_BOTH <= higher.order


def guarantee_of(release: Release) -> str:
    """Return ``name=value`` for exactly-once in a release, version 2 if it has it."""
    if release.order < _FIRST_WITH_BOTH:
        return _V1
    beta = release.order < _FIRST_WITH_V2_NAME
    return f"{_SETTING}={'exactly_once_beta' if beta else 'exactly_once_v2'}"


def renamed_guarantee(old: Release, new: Release) -> tuple[str, ...]:
    """Return the setting that a member needs because 3.0 renamed version 2; often none."""
    lower, higher = sorted((old, new), key=lambda release: release.order)
    is_beta = _FIRST_WITH_BOTH <= lower.order < _FIRST_WITH_V2_NAME
    is_other = is_beta and not higher.is_native and higher.order >= _FIRST_WITHOUT_V1
    return (guarantee_of(new),) if is_other else ()


def with_switch(stops: Sequence[str]) -> tuple[str, ...]:
    """Return the stops of a path with one at which members can switch, if they have to.

    A path that has no such stop goes through the newest patch of the last series with both
    versions, if rolling bounces lead there and on; otherwise it stays as it is.
    """
    found = [find_release(stop) for stop in stops]
    if not crosses(found[0], found[-1]) or any(map(has_both, found)):
        return tuple(stops)
    over = find_release(_BRIDGE)
    legs = ((found[0], over), (over, found[-1]))
    if not all(upgrade_path(old, new).possible for old, new in legs):
        return tuple(stops)
    return (stops[0], over.name, stops[-1])


def switch_between(stops: Sequence[Release]) -> Switch | None:
    """Return the switch on a path; None if its releases have a version in common."""
    first, last = stops[0], stops[-1]
    over = [stop for stop in stops if has_both(stop)]
    if not crosses(first, last) or not over or over[0].name == last.name:
        return None
    at = over[0]
    if first.order < last.order:
        only_v2 = (
            f"{last.name} accepts exactly_once_v2 only (KIP-732), and members may switch one by one"
            f" once all of them run {at.name}"
        )
        why = [only_v2, "version 2 needs brokers of 2.5 or later (KIP-447)"]
        if at.name == first.name:
            why.append("leave this step out if the members run version 2 already")
    else:
        only_v1 = (
            f"{last.name} knows exactly_once only: switch while the members run {at.name}, which"
            " has both versions"
        )
        why = [only_v1]
    return Switch(release=at.name, version=1 + (first.order < last.order), why=tuple(why))


def has_both(release: Release) -> bool:
    """Whether members of a release accept both versions of exactly-once."""
    return not release.is_native and _FIRST_WITH_BOTH <= release.order < _FIRST_WITHOUT_V1
