"""Formats beside the rebalance protocol: of state on disk, and of records in internal topics.

Some are one-way: a group that returns below a release deletes its state. Others are kept at their
former layout by `upgrade.from`, or by nothing, so that no rolling bounce is possible.
"""

from itertools import pairwise
from typing import Final

from probing import RELEASES, Release, Standing, find_release, upgrade_path
from probing import releases as data
from system_tests.matrix import route
from system_tests.plan.uses import Use

_FORMAT_BY_USE: Final = dict(zip((Use.FK_JOIN, Use.KTABLE), data.FORMATS, strict=True))


def state_formats_between(lower: Release, higher: Release) -> tuple[data.OneWayFormat, ...]:
    """Return the formats of state that `higher` writes and `lower` cannot read; often none."""
    return tuple(row for row in data.one_way_formats_between(lower, higher) if row.is_state)


def topic_formats_between(lower: Release, higher: Release) -> tuple[data.OneWayFormat, ...]:
    """Return the formats of records in topics that `higher` writes and `lower` cannot read."""
    return tuple(row for row in data.one_way_formats_between(lower, higher) if not row.is_state)


def deletion(row: data.OneWayFormat, release: Release) -> str:
    """Return why the state directories are deleted, and before which release is started."""
    return (
        f"since {row.since} {row.what}: delete the state directories before you start"
        f" {release.name}; its members restore from the changelogs"
    )


def formats_to_hold(old: Release, new: Release, uses: frozenset[Use]) -> list[str]:
    """Return the names of the application's formats that change between two releases."""
    lower, higher = sorted((old, new), key=lambda release: release.order)
    if higher.is_native:
        return []
    return [
        row.name
        for use, row in _FORMAT_BY_USE.items()
        if use in uses and lower.order < _order(row.changed_in) <= higher.order
    ]


def obstacles_of(
    old: Release, new: Release, uses: frozenset[Use]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the formats that prevent rolling bounces, and the later patches that allow them."""
    lower, higher = sorted((old, new), key=lambda release: release.order)
    notes, instead = [], []
    for name in formats_to_hold(old, new, uses):
        path = upgrade_path(old, new)
        stops = (old.name, *(() if path.possible else route(old, new)), new.name)
        if _holds(name, [find_release(stop) for stop in stops]):
            continue
        row = {row.value: row for row in higher.upgrade_from_rows}.get(lower.series)
        what = (
            f"upgrade.from={lower.series} is {row.why} in {higher.name}"
            if row is not None and row.standing is Standing.CRASHES
            else f"no setting makes {higher.name} keep the old format"
        )
        notes.append(
            f"{name}: the format changes between {lower.name} and {higher.name}, and {what}"
        )
        instead += _later_holders(name, lower, higher)
    return tuple(notes), tuple(dict.fromkeys(instead))


def _holds(name: str, stops: list[Release]) -> bool:
    """Whether `upgrade.from` keeps the old format on the leg on which the format changes."""
    for earlier, other in pairwise(stops):
        lower, higher = sorted((earlier, other), key=lambda release: release.order)
        changed = next(_order(row.changed_in) for row in data.FORMATS if row.name == name)
        if not lower.order < changed <= higher.order:
            continue
        value = higher.upgrade_from.get(lower.series)
        if value is None or name not in value.formats:
            return False
    return True


def _later_holders(name: str, lower: Release, higher: Release) -> list[str]:
    """Return the first later release that accepts `upgrade.from` and keeps the old format."""
    return [
        release.name
        for release in RELEASES
        if release.order > higher.order
        and lower.series in release.upgrade_from
        and name in release.upgrade_from[lower.series].formats
    ][:1]


def _order(name: str) -> tuple[int, ...]:
    return find_release(name).order
