"""The switch of processing.guarantee that an exactly-once application needs on some paths.

Up to 2.5 there is only ``exactly_once`` (EOS version 1). From 2.6 to 3.9 both versions exist, and
from 4.0 on only version 2, ``exactly_once_v2`` (``exactly_once_beta`` up to 2.8). Members may
differ in the value while they are bounced, if all of them run a release that has both. Source:
KIP-447, KIP-732 and the upgrade guide of Kafka Streams.
"""

from typing import Final

from probing import Release

_SETTING: Final = "processing.guarantee"
_FIRST_WITH_BOTH: Final = (2, 6, 0)
_FIRST_WITH_V2_NAME: Final = (3, 0, 0)
_FIRST_WITHOUT_V1: Final = (4, 0, 0)


def guarantee_of(release: Release, version: int = 2) -> str:
    """Return ``name=value`` for a version of exactly-once, as a release names it.

    A release without version 2 has version 1.
    """
    if version == 1 or release.order < _FIRST_WITH_BOTH:
        return f"{_SETTING}=exactly_once"
    beta = release.order < _FIRST_WITH_V2_NAME
    return f"{_SETTING}={'exactly_once_beta' if beta else 'exactly_once_v2'}"


def is_guarantee(setting: str) -> bool:
    """Whether a setting, as `name=value`, is the guarantee of processing."""
    return setting.startswith(f"{_SETTING}=")


def versions_between(
    old: Release, new: Release, known: int | None = None
) -> tuple[int, int] | None:
    """Return the versions that a group has before and after a path; None if none has to be known.

    Args:
        old: first release of the path.
        new: its last one.
        known: the version before; None: assumed, on the way up the only one of earlier releases, on
            the way down the only one of later releases, if the two releases have none in common;
            version 2 where the last release refuses its name.
    """
    if old.is_native or new.is_native:
        return None
    is_renamed = new.order < _FIRST_WITH_V2_NAME <= old.order
    before = known or next((v for v in (1, 2) if not has_version(new, v)), 2 * is_renamed)
    if not before or not (known or has_version(old, before)):
        return None
    return before, before if has_version(new, before) else 3 - before


def has_version(release: Release, version: int) -> bool:
    """Whether members of a release accept a version of exactly-once."""
    if release.is_native:
        return True
    return release.order < _FIRST_WITHOUT_V1 if version == 1 else release.order >= _FIRST_WITH_BOTH


def has_both(release: Release) -> bool:
    """Whether members of a release accept both versions of exactly-once."""
    return not release.is_native and has_version(release, 1) and has_version(release, 2)


def renamed_guarantee(old: Release, new: Release) -> tuple[str, ...]:
    """Return the setting that a member needs because 3.0 renamed version 2; often none."""
    lower, higher = sorted((old, new), key=lambda release: release.order)
    is_beta = _FIRST_WITH_BOTH <= lower.order < _FIRST_WITH_V2_NAME
    is_other = is_beta and not higher.is_native and higher.order >= _FIRST_WITHOUT_V1
    return (guarantee_of(new),) if is_other else ()


def switch_reasons(first: Release, at: Release, last: Release) -> tuple[str, ...]:
    """Return why members switch versions on a release between two others, as sentences."""
    if first.order > last.order:
        known = f"{last.name} knows exactly_once only"
        return (f"{known}: switch while the members run {at.name}, which has both versions",)
    only_v2 = (
        f"{last.name} accepts exactly_once_v2 only (KIP-732), and members may switch one by one"
        f" once all of them run {at.name}"
    )
    return (only_v2, "version 2 needs brokers of 2.5 or later (KIP-447)")
