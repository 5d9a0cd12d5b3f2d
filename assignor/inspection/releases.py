"""Releases of Kafka Streams that may have written a subscription: evidence, not certainty.

The supported version is the newest one of the member's program. Versions 1 and 2 have no such
number, so an old program and a newer one pinned by `upgrade.from` write the same. The version of
the consumer protocol distinguishes most of them: a consumer of 2.4 or newer that writes version 2
is pinned.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from assignor.inspection.values import ReleaseEvidence
from probing import EARLIEST_NATIVE_VERSION, RELEASES, UNKNOWN_VERSION, Release, find_release

CONSUMER_PROTOCOL_SINCE: Final = (("0.10.0.0", 0), ("2.4.0", 1), ("3.4.0", 3))
"""First release whose consumer writes each version of its protocol, read from the published jars;
no release has 2 as its newest version."""

_KAFKA: Final = tuple(release for release in RELEASES if not release.is_native)
_SINCE: Final = tuple((find_release(name), version) for name, version in CONSUMER_PROTOCOL_SINCE)


@lru_cache(maxsize=256)  # members of a group write few distinct numbers
def releases_writing(
    used: int,
    supported: int,
    consumer_version: int,
    *,
    native: int | None = None,
    pin: int | None = None,
) -> ReleaseEvidence:
    """Releases that write these numbers in a consumer protocol of this version.

    Args:
        used: version of the subscription.
        supported: latest supported version in it; -1 in versions 1 and 2.
        consumer_version: version of the consumer protocol.
        native: highest version of a native member.
        pin: version that a native member reports as its pin.
    """
    if native is not None or used >= EARLIEST_NATIVE_VERSION:
        latest = native if native is not None else supported
        name = f"native v{latest}"
        return ReleaseEvidence(latest=latest, spelled=f"{name} pinned" if pin else name)
    fitting = [release for release in _KAFKA if _consumer_version(release) == consumer_version]
    found = _writing(used, supported, fitting)
    if not (found.releases or found.pinned):
        # Another client library, such as a native member that emulates an old release.
        found = _writing(used, supported, _KAFKA)
    return found


def _writing(used: int, supported: int, among: Sequence[Release]) -> ReleaseEvidence:
    if supported != UNKNOWN_VERSION:
        own = [release for release in among if release.latest_version == supported]
        pinned: list[Release] = []
        values: list[str] = []
    else:
        own = [release for release in among if release.latest_version == used]
        pinned = [
            release
            for release in among
            if any(row.pinned_version == used for row in release.upgrade_from.values())
        ]
        values = _pin_values(used, pinned)
    return ReleaseEvidence(
        releases=tuple(release.name for release in own),
        pinned=tuple(release.name for release in pinned),
        pin_values=tuple(values),
        latest=max((release.latest_version for release in (*own, *pinned)), default=supported),
        spelled=_spelled_both(own, pinned),
    )


def _pin_values(used: int, pinned: Iterable[Release]) -> list[str]:
    """The settings that make any of these releases write `used`, oldest first."""
    found = {
        row.value
        for release in pinned
        for row in release.upgrade_from.values()
        if row.pinned_version == used
    }
    return sorted(found, key=lambda value: find_release(value).order)


def _consumer_version(release: Release) -> int:
    return [version for since, version in _SINCE if since.order <= release.order][-1]


def _spelled_both(own: Sequence[Release], pinned: Sequence[Release]) -> str:
    """As `0.10.1.0-1.1.1, or 2.0.0-2.3.1 pinned`."""
    parts = [spelled_range(own)] if own else []
    if pinned:
        parts.append(f"{spelled_range(pinned)} pinned")
    return ", or ".join(parts) or "unknown"


def spelled_range(releases: Sequence[Release]) -> str:
    """Runs of neighbouring releases: the first and the last of each.

    >>> spelled_range([find_release("2.3.0"), find_release("2.3.1"), find_release("3.0.0")])
    '2.3.0-2.3.1, 3.0.0'
    """
    runs: list[list[Release]] = []
    for release in releases:
        is_next = bool(runs) and _KAFKA.index(runs[-1][-1]) + 1 == _KAFKA.index(release)
        if is_next:
            runs[-1].append(release)
        else:
            runs.append([release])
    return ", ".join(
        run[0].name if len(run) == 1 else f"{run[0].name}-{run[-1].name}" for run in runs
    )
