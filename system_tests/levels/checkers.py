"""Rules of a group with levels, each a function over what was seen; none looks into a member."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from probing import HELD_BACK
from probing.features import ASSIGNMENT_PROTOCOL, FinalizedLevels
from system_tests.levels.seen import Seen, What
from system_tests.levels.world import LATER, LATER_FIRST, PARTITIONS
from system_tests.sim import Broken

_HELD_VERSION: Final = HELD_BACK.level_of(ASSIGNMENT_PROTOCOL)
_LATEST: Final = {"native": 101, "next": 102, LATER.name: 102}
_Finding = tuple[int, str]


def check_levels(seen: Sequence[Seen]) -> list[Broken]:
    """Return every rule that was broken, in the order of the rules.

    Args:
        seen: of one whole run, to its end.
    """
    return [
        Broken(rule=rule, at_ms=step, sentence=sentence)
        for rule, check in LEVEL_RULES.items()
        for step, sentence in check(seen)
    ]


def _log(seen: Sequence[Seen]) -> dict[int, FinalizedLevels]:
    changes = (What.UPDATED, What.DEPRECATED)
    return {one.levels.epoch: one.levels for one in seen if one.what in changes}


def _only_finalized(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """Nobody goes by levels that were never finalized."""
    log = _log(seen)
    for one in seen:
        levels = one.levels
        if levels.epoch > 0 and log.get(levels.epoch) != levels:
            yield one.step, f"{one.who} goes by {dict(levels.levels)} at epoch {levels.epoch}"


def _never_back(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """No member of a life goes back to an older epoch, whatever its broker or leader says."""
    epochs: dict[str, int] = {}
    for one in seen:
        if one.what is What.STARTED:
            epochs[one.who] = one.levels.epoch
        elif one.what in (What.WROTE, What.FOLLOWED):
            if one.levels.epoch < epochs[one.who]:
                yield one.step, f"{one.who} went from {epochs[one.who]} to {one.levels.epoch}"
            epochs[one.who] = one.levels.epoch


def _newest_wins(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """After a rebalance everybody goes by the newest levels that were brought to it.

    What one follower alone brings counts if all can go by it, so that nobody waits for one process.
    """
    brought, wrote = -1, []
    releases: dict[str, str] = {}
    for one in seen:
        if one.what is What.STARTED:
            releases[one.who] = one.why
        if one.what is What.WROTE:
            wrote.append(one)
        elif one.what is What.LED:
            programs = [releases[each.who] for each in wrote]
            epochs = [each.levels.epoch for each in wrote]
            brought = max(
                each.levels.epoch
                for each in wrote
                if each.who == one.who
                or epochs.count(each.levels.epoch) > 1
                or not any(_lacks(program, each.levels) for program in programs)
            )
            wrote = []
        elif one.what is What.FOLLOWED and one.levels.epoch < brought:
            yield one.step, f"{one.who} is at epoch {one.levels.epoch}, {brought} was known"
        elif one.what not in (What.FOLLOWED, What.REJOINED, What.REFUSED):
            brought, wrote = -1, []


def _lacks(program: str, levels: FinalizedLevels) -> bool:
    level = levels.level_of(ASSIGNMENT_PROTOCOL)
    first = LATER_FIRST if program == LATER.name else 1
    return level > 0 and not first <= level <= _LATEST[program]


def _capped(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """Nobody writes above the level that it goes by."""
    for one in seen:
        level = one.levels.level_of(ASSIGNMENT_PROTOCOL)
        if one.what is What.WROTE and level and one.version > level:
            yield one.step, f"{one.who} writes version {one.version} at level {level}"


def _held_back(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """A group that holds back writes nothing of ours before the first level is finalized."""
    for one in seen if _holds_back(seen) else ():
        if one.what is What.UPDATED:
            return
        if one.what is What.WROTE and one.version > _HELD_VERSION:
            yield one.step, f"{one.who} writes version {one.version} in a group that holds back"


def _no_rejoin(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """A level never makes a member rejoin for the version."""
    for one in seen:
        if one.what is What.REJOINED:
            yield one.step, f"{one.who} rejoined: {one.why}"


def _all_tasks(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """After a rebalance every task has one owner, none of them who cannot follow."""
    group: tuple[str, ...] = ()
    tasks: dict[str, tuple[str, ...]] = {}
    for one in [*seen, Seen(step=seen[-1].step, what=What.LED)]:
        if one.what is What.LED:
            found = sorted(task for owned in tasks.values() for task in owned)
            wanted = [f"0_{number}" for number in range(PARTITIONS)]
            if group and found != wanted:
                yield one.step, f"tasks run are {found}"
            group, tasks = one.followers, {}
        elif one.what is What.FOLLOWED:
            tasks[one.who] = one.tasks


def _minimum(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """The minimum rises once every member supports it only, never falls, and binds operators."""
    releases: dict[str, str] = {}
    minimum = 0
    for one in seen:
        if one.what is What.STARTED:
            releases[one.who] = one.why
        elif one.what in (What.STOPPED, What.REFUSED):
            releases.pop(one.who, None)
        elif one.what is What.DEPRECATED:
            older = sorted(name for name, release in releases.items() if release != LATER.name)
            if older or one.minimum <= minimum:
                yield one.step, f"the minimum goes from {minimum} to {one.minimum} above {older}"
            minimum = one.minimum
        elif one.what is What.UPDATED and one.levels.level_of(ASSIGNMENT_PROTOCOL) < minimum:
            yield one.step, f"an update goes below the minimum of {minimum}"


def _goes_back(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """After the level was lowered every member may be bounced to the older program."""
    group: tuple[str, ...] | None = None
    tasks: dict[str, tuple[str, ...]] = {}
    for one in seen:
        if one.what is What.GOES_BACK:
            group = one.followers
        elif one.what is What.LED:
            tasks = {}
        elif one.what is What.FOLLOWED:
            tasks[one.who] = one.tasks
        elif group is not None and one.what is What.REFUSED:
            yield one.step, f"{one.who} was refused on the way back: {one.why}"
        elif group is not None and one.what is What.WENT_BACK:
            found = sum(map(len, tasks.values()))
            if one.followers != group or tuple(sorted(tasks)) != group or found != PARTITIONS:
                yield one.step, f"{found} tasks are run by {sorted(tasks)} of {group}"
            group = None


def _settles(seen: Sequence[Seen]) -> Iterator[_Finding]:
    """Once the brokers know, all go by the last levels, and write as high as they may."""
    end = seen[-1]
    level = end.levels.level_of(ASSIGNMENT_PROTOCOL)
    releases = {one.who: one.why for one in seen if one.what is What.STARTED}
    lowest = min((_LATEST[releases[name]] for name in end.followers), default=0)
    last = _last(seen, What.FOLLOWED)
    wrote = _last(seen, What.WROTE)
    cap = level or (_HELD_VERSION if _holds_back(seen) and not end.levels.epoch else 0)
    for name in end.followers:
        if end.levels.epoch and last[name].levels != end.levels:
            yield end.step, f"{name} is at epoch {last[name].levels.epoch} at the end"
        wanted = min(lowest, cap) if cap else lowest
        if wrote[name].version != wanted:
            yield end.step, f"{name} writes version {wrote[name].version}, not {wanted}"


def _holds_back(seen: Sequence[Seen]) -> bool:
    return any(one.what is What.STARTED and one.levels == HELD_BACK for one in seen)


def _last(seen: Sequence[Seen], what: What) -> dict[str, Seen]:
    return {one.who: one for one in seen if one.what is what}


LEVEL_RULES: Final[Mapping[str, Callable[[Sequence[Seen]], Iterator[_Finding]]]] = {
    "only what was finalized": _only_finalized,
    "never back to an older epoch": _never_back,
    "the newest levels win": _newest_wins,
    "nobody writes above its level": _capped,
    "held back until a level is finalized": _held_back,
    "no rejoin for a level": _no_rejoin,
    "every task has one owner": _all_tasks,
    "a minimum rises when all have it": _minimum,
    "the older program comes back": _goes_back,
    "all arrive at the last levels": _settles,
}
"""Name of a rule -> findings as (step, sentence)."""
