"""Rollback to the first release of a plan: the bounces it takes, and the state it loses.

Version probing can always downgrade the group's version. A rollback costs state if the later
release wrote something that the earlier one cannot read: RocksDB files, repartition topics in the
format of KIP-904, offsets in a column family (KIP-1035).
"""

from dataclasses import dataclass
from typing import Final

from probing import Release, find_release, upgrade_path
from probing import releases as data
from system_tests.matrix import route
from system_tests.plan.exactly_once import switch_back

_KTABLE_SINCE: Final = "3.5.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """A rollback from one release to the first one.

    Attributes:
        rolling: rolling bounces are enough; False: all members have to be stopped.
        free: rolling, and no state has to be rebuilt or discarded.
        sentence: what to do.
        costs: data that the first release cannot read, and what to do about it, as sentences.
    """

    rolling: bool
    free: bool
    sentence: str
    costs: tuple[str, ...]


def rollback_to(
    first: Release,
    now: Release,
    upgrade_from: str | None,
    *,
    writes_ktables: bool,
    is_switched: bool = False,
) -> Rollback:
    """Return the rollback of a group from `now` to `first`.

    Args:
        first: release that the group ran before the upgrade.
        now: release that its members run.
        upgrade_from: setting that its members run with.
        writes_ktables: the application has KTable repartition topics.
        is_switched: members were switched to another processing.guarantee before.
    """
    costs = tuple(_costs(first, now, upgrade_from, writes_ktables=writes_ktables))
    pinned_to_first = upgrade_from is not None and find_release(upgrade_from).series == first.series
    path = upgrade_path(now, first)
    stops = () if path.possible else route(now, first)
    if first.name == now.name:
        sentence, rolling = f"stay on {now.name}: bounce every member without upgrade.from", True
    elif pinned_to_first:
        sentence, rolling = f"bounce every member back to {first.name}", True
    elif path.possible and len(path.bounces) == 1:
        sentence, rolling = f"one rolling bounce back to {first.name}, without upgrade.from", True
    elif path.possible:
        pin = path.bounces[0].upgrade_from
        sentence = f"two bounces: {now.name} with upgrade.from={pin}, then {first.name}"
        rolling = True
    elif stops:
        over = find_release(stops[0])
        pin = upgrade_path(over, first).bounces[0].upgrade_from
        setting = f" with upgrade.from={pin}" if pin else ""
        sentence = f"through {over.name}: bounce to {over.name}"
        sentence += f", then to {over.name}{setting}" if pin else ""
        sentence += f", then to {first.name}"
        rolling = True
    else:
        sentence = f"stop all members and start them on {first.name}: {path.reasons[0]}"
        rolling = False
    if is_switched:
        sentence += switch_back(first, now)
    return Rollback(rolling=rolling, free=rolling and not costs, sentence=sentence, costs=costs)


def _costs(
    first: Release, now: Release, upgrade_from: str | None, *, writes_ktables: bool
) -> list[str]:
    """Return a sentence for each format that `now` writes and `first` may not read."""
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
                f"since {since} {what}: delete the state directories before you start"
                f" {first.name}; its members restore from the changelogs"
            )
    return costs


def _drain(first: Release, now: Release) -> str:
    """Return how to get repartition topics that hold only records that `first` reads."""
    stops = () if upgrade_path(now, first).possible else route(now, first)
    for writer in (now, *map(find_release, stops)):
        if first.series in writer.upgrade_from:
            return (
                f"{first.name} cannot read them; before you roll back, run {writer.name} with"
                f" upgrade.from={first.series} until all records in them have been consumed"
            )
    return (
        f"{first.name} cannot read them and {now.name} cannot write the old format: let the members"
        " consume all records, stop them and reset the application"
    )
