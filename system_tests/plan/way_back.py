"""The way back: how a group returns to where it came from, and what it leaves behind.

A version can always be probed downwards. What closes the way is what a later release wrote to disk
or into a topic that an earlier one cannot read: RocksDB files, repartition topics in the format of
KIP-904, offsets in a column family (KIP-1035).
"""

from dataclasses import dataclass
from typing import Final

from probing import Release, find_release, upgrade_path
from probing import releases as data
from system_tests.matrix import route

_KTABLE_SINCE: Final = "3.5.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """From one release back to the first one.

    Attributes:
        rolling: without a stop of all members; free: and without losing or rebuilding anything.
        sentence: what to do; costs: what cannot be read any more, sentences.
    """

    rolling: bool
    free: bool
    sentence: str
    costs: tuple[str, ...]


def way_back(
    first: Release, now: Release, upgrade_from: str | None, *, writes_ktables: bool
) -> WayBack:
    """Return how a group of `now` becomes one of `first` again.

    Args:
        first: where the group came from.
        now: what its members run.
        upgrade_from: the setting they run with.
        writes_ktables: the application has repartition topics of KTables.
    """
    costs = tuple(_costs(first, now, upgrade_from, writes_ktables=writes_ktables))
    pinned_to_first = upgrade_from is not None and find_release(upgrade_from).series == first.series
    path = upgrade_path(now, first)
    stops = () if path.possible else route(now, first)
    if first.name == now.name:
        sentence, rolling = f"bounce every member without upgrade.from: it is {now.name}", True
    elif pinned_to_first:
        sentence, rolling = f"bounce every member back to {first.name}", True
    elif path.possible and len(path.bounces) == 1:
        sentence, rolling = f"one rolling bounce back to {first.name}, no setting", True
    elif path.possible:
        pin = path.bounces[0].upgrade_from
        sentence = f"two bounces: {now.name} with upgrade.from={pin}, then {first.name}"
        rolling = True
    elif stops:
        over = find_release(stops[0])
        pin = upgrade_path(over, first).bounces[0].upgrade_from
        setting = f" with upgrade.from={pin}" if pin else ""
        sentence = f"over {over.name}: {now.name} to {over.name}, {over.name}{setting}"
        sentence += f", then {first.name}" if pin else f" to {first.name}"
        rolling = True
    else:
        sentence = f"stop all members and start them as {first.name}: {path.reasons[0]}"
        rolling = False
    return WayBack(rolling=rolling, free=rolling and not costs, sentence=sentence, costs=costs)


def _costs(
    first: Release, now: Release, upgrade_from: str | None, *, writes_ktables: bool
) -> list[str]:
    """Return what `now` wrote that `first` may not read."""
    if now.is_native or first.order >= now.order:
        return []
    kept = () if upgrade_from is None else now.upgrade_from[upgrade_from].formats
    costs = []
    for since, what in data.ONE_WAY_FORMATS:
        if not first.order < find_release(since).order <= now.order:
            continue
        if since == _KTABLE_SINCE:
            if writes_ktables and not any("KIP-904" in name for name in kept):
                costs.append(f"since {since} {what}: {_drain(first, now)}")
        else:
            costs.append(
                f"since {since} {what}: members of {first.name} delete their state"
                " directories and restore from the changelogs"
            )
    return costs


def _drain(first: Release, now: Release) -> str:
    """Say how the topics come to hold only what the first release reads."""
    stops = () if upgrade_path(now, first).possible else route(now, first)
    for writer in (now, *map(find_release, stops)):
        if first.series in writer.upgrade_from:
            return (
                f"on the way back run {writer.name} with upgrade.from={first.series} until the"
                f" topics have been read to their end, for {first.name} cannot read them"
            )
    return (
        f"{first.name} cannot read them and {now.name} cannot be told to write the old format:"
        " let all members read to the end, stop them and reset the application"
    )
