"""Rollback to the first release of a plan: the bounces it takes, and the state it loses.

Version probing can always downgrade the group's version. A rollback costs state if the later
release wrote something that the earlier one cannot read: RocksDB files, repartition topics in the
format of KIP-904, offsets in a column family (KIP-1035).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from probing import Release, find_release, upgrade_path
from system_tests.matrix import route
from system_tests.plan.changes.formats import deletion, state_formats_between, topic_formats_between
from system_tests.plan.exactly_once import Switch, crosses, has_both, with_switch

_KTABLE: Final = "KIP-904"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """A rollback from one release to the first one.

    Attributes:
        rolling: rolling bounces are enough; False: all members have to be stopped.
        free: rolling, and no state has to be rebuilt or discarded.
        sentence: what to do.
        costs: data that the first release cannot read, and what to do about it, as sentences, in
            the order of the way back.
        bounces: number of rolling bounces; 0 if all members are stopped.
        deletions: how many times each member deletes its state directory on the way.
    """

    rolling: bool
    free: bool
    sentence: str
    costs: tuple[str, ...]
    deletions: int = 0
    bounces: int = 0


def rollback_to(
    first: Release,
    now: Release,
    upgrade_from: str | None,
    *,
    writes_ktables: bool,
    switch: Switch | None = None,
) -> Rollback:
    """Return the rollback of a group from `now` to `first`.

    Args:
        first: release that the group ran before the upgrade.
        now: release that its members run.
        upgrade_from: setting that its members run with.
        writes_ktables: the application has KTable repartition topics.
        switch: of processing.guarantee that the members have made; None if they made none.
    """
    bounces = _bounces_back(first, now, upgrade_from, switch)
    deletions = _deletions(first, now, bounces)
    costs = (
        *(sentence for _, sentence in deletions),
        *(drains(first, now, upgrade_from) if writes_ktables else ()),
    )
    if bounces:
        sentence = _sentence(first, now, upgrade_from, bounces)
    else:
        reason = upgrade_path(now, first).reasons[0]
        sentence = f"stop all members and start them on {first.name}: {reason}"
    rolling = bool(bounces)
    return Rollback(
        rolling=rolling,
        free=rolling and not costs,
        sentence=sentence,
        costs=costs,
        deletions=len({started for started, _ in deletions}),
        bounces=len(bounces),
    )


class _Bounce(NamedTuple):
    """A bounce on the way back: `guarantee` is ``name=value``, empty if no switch was made."""

    release: str
    upgrade_from: str | None
    guarantee: str

    def settings(self) -> str:
        pin = f"upgrade.from={self.upgrade_from}" if self.upgrade_from else "no upgrade.from"
        return ", ".join(filter(None, (self.release, pin, self.guarantee)))


def _bounces_back(
    first: Release, now: Release, upgrade_from: str | None, switch: Switch | None
) -> list[_Bounce]:
    """Return the rolling bounces of a rollback, in order; empty if all members have to stop."""
    undone = switch.undone() if switch is not None else None
    if first.name == now.name:
        return [_Bounce(now.name, None, undone.named(now) if undone is not None else "")]
    pinned_to_first = upgrade_from is not None and find_release(upgrade_from).series == first.series
    if pinned_to_first:
        return [_Bounce(first.name, None, switch.named(first) if switch is not None else "")]
    through = () if upgrade_path(now, first).possible else route(now, first)
    if not through and not upgrade_path(now, first).possible:
        return []
    stops: tuple[str, ...] = (now.name, *through, first.name)
    has_to_switch = switch is not None and crosses(now, first)
    if has_to_switch:
        stops = with_switch(stops)
    bounces: list[_Bounce] = []
    current = switch
    for old, new in pairwise(map(find_release, stops)):
        if has_to_switch and current == switch and undone is not None and has_both(old):
            current = undone
            _switch_back(bounces, old, new, undone.named(old))
        for bounce in upgrade_path(old, new).bounces:
            named = "" if current is None else current.named(find_release(bounce.release))
            bounces.append(_Bounce(bounce.release, bounce.upgrade_from, named))
    if undone is not None and undone.version > 1 and current == switch and has_both(first):
        _set_guarantee(bounces, first, undone.named(first))  # that the group rolled back from
    return bounces


def _switch_back(bounces: list[_Bounce], at: Release, new: Release, guarantee: str) -> None:
    """Add the bounce that sets the guarantee, unless the next one is given it."""
    if upgrade_path(at, new).bounces[0].release != at.name:
        _set_guarantee(bounces, at, guarantee)


def _set_guarantee(bounces: list[_Bounce], at: Release, guarantee: str) -> None:
    """Set the guarantee in the last bounce if it can, or else add a bounce.

    It can if it sets or removes `upgrade.from` only: every member runs the release before it.
    """
    if [bounce.release for bounce in bounces[-2:]] == [at.name] * 2:
        bounces[-1] = bounces[-1]._replace(guarantee=guarantee)
    else:
        bounces.append(_Bounce(at.name, None, guarantee))


def _sentence(
    first: Release, now: Release, upgrade_from: str | None, bounces: Sequence[_Bounce]
) -> str:
    """Return the bounces of a rollback as a sentence, numbered if there are several."""
    only = bounces[0]
    if len(bounces) > 1:
        steps = (f"({number}) {bounce.settings()}" for number, bounce in enumerate(bounces, 1))
        return f"{len(bounces)} rolling bounces: {'; '.join(steps)}"
    if first.name == now.name and only.guarantee and upgrade_from is None:
        return f"stay on {now.name}: bounce every member with {only.guarantee}, as before"
    guarantee = f" and with {only.guarantee}" if only.guarantee else ""
    if first.name == now.name:
        return f"stay on {now.name}: bounce every member without upgrade.from{guarantee}"
    if upgrade_from is not None and find_release(upgrade_from).series == first.series:
        return f"bounce every member back to {first.name}{guarantee.replace(' and', '', 1)}"
    return f"one rolling bounce back to {first.name}, without upgrade.from{guarantee}"


def _deletions(first: Release, now: Release, bounces: Sequence[_Bounce]) -> list[tuple[str, str]]:
    """Return before which release of the way back state is deleted, and why, in its order."""
    found = []
    for row in reversed(state_formats_between(first, now)):
        since = find_release(row.since)
        releases = (find_release(bounce.release) for bounce in bounces)
        started = next((r for r in releases if r.order < since.order), first)
        found.append((started.name, deletion(row, started)))
    return found


def drains(first: Release, now: Release, upgrade_from: str | None) -> tuple[str, ...]:
    """Return what `first` cannot read in repartition topics of KTables, and what to do about it.

    Args:
        first: release that the group returns to.
        now: release that its members run.
        upgrade_from: setting that its members run with.
    """
    kept = () if upgrade_from is None else now.upgrade_from[upgrade_from].formats
    if any(_KTABLE in name for name in kept):
        return ()
    return tuple(
        f"since {row.since} {row.what}: {_drain(first, now)}"
        for row in topic_formats_between(first, now)
    )


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
