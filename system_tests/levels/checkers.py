"""Rules of a group with levels; each is a function of the events of a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from probing import HELD_BACK
from probing.features import ASSIGNMENT_PROTOCOL, NO_EPOCH, FinalizedLevels
from system_tests.engine import Broken
from system_tests.levels.events import Event, EventKind
from system_tests.levels.members import LATER, LATER_FIRST
from system_tests.levels.world import PARTITIONS

_HELD_VERSION: Final = HELD_BACK.level_of(ASSIGNMENT_PROTOCOL)
_LATEST: Final = {"native": 101, "next": 102, LATER.name: 102}
_Finding = tuple[int, str]


def check_levels(events: Sequence[Event]) -> list[Broken]:
    """Return the broken rules, in the order of the rules.

    Args:
        events: all events of a complete run.
    """
    return [
        Broken(rule=rule, at_ms=step, sentence=sentence)
        for rule, check in LEVEL_RULES.items()
        for step, sentence in check(events)
    ]


def _log(events: Sequence[Event]) -> dict[int, FinalizedLevels]:
    changes = (EventKind.UPDATED, EventKind.DEPRECATED)
    return {event.levels.epoch: event.levels for event in events if event.what in changes}


def _only_finalized(events: Sequence[Event]) -> Iterator[_Finding]:
    """Only finalized levels are used."""
    log = _log(events)
    for event in events:
        levels = event.levels
        if levels.epoch > 0 and log.get(levels.epoch) != levels:
            used = f"{dict(levels.levels)} at epoch {levels.epoch}"
            yield event.step, f"{event.subject} uses {used}, which was not finalized"


def _never_back(events: Sequence[Event]) -> Iterator[_Finding]:
    """A member never returns to an older epoch before it is restarted."""
    epochs: dict[str, int] = {}
    for event in events:
        if event.what is EventKind.STARTED:
            epochs[event.subject] = event.levels.epoch
        elif event.what in (EventKind.WROTE, EventKind.FOLLOWED):
            if event.levels.epoch < epochs[event.subject]:
                yield (
                    event.step,
                    f"{event.subject} went from {epochs[event.subject]} to {event.levels.epoch}",
                )
            epochs[event.subject] = event.levels.epoch


def _newest_wins(events: Sequence[Event]) -> Iterator[_Finding]:
    """After a rebalance all members use the newest levels that a member knew.

    Levels that only one follower knows count only if all members support them.
    """
    brought, wrote = -1, []
    releases: dict[str, str] = {}
    for event in events:
        if event.what is EventKind.STARTED:
            releases[event.subject] = event.why
        if event.what is EventKind.WROTE:
            wrote.append(event)
        elif event.what is EventKind.LED:
            programs = [releases[each.subject] for each in wrote]
            epochs = [each.levels.epoch for each in wrote]
            brought = max(
                each.levels.epoch
                for each in wrote
                if each.subject == event.subject
                or epochs.count(each.levels.epoch) > 1
                or not any(_lacks(program, each.levels) for program in programs)
            )
            wrote = []
        elif event.what is EventKind.FOLLOWED and event.levels.epoch < brought:
            yield (
                event.step,
                f"{event.subject} is at epoch {event.levels.epoch}, {brought} was known",
            )
        elif event.what not in (
            EventKind.FOLLOWED,
            EventKind.REJOINED,
            EventKind.REFUSED,
        ):
            brought, wrote = -1, []


def _lacks(program: str, levels: FinalizedLevels) -> bool:
    level = levels.level_of(ASSIGNMENT_PROTOCOL)
    first = LATER_FIRST if program == LATER.name else 1
    return level > 0 and not first <= level <= _LATEST[program]


def _capped(events: Sequence[Event]) -> Iterator[_Finding]:
    """A member never writes a version above its level."""
    for event in events:
        level = event.levels.level_of(ASSIGNMENT_PROTOCOL)
        if event.what is EventKind.WROTE and level and event.version > level:
            yield event.step, f"{event.subject} writes version {event.version} at level {level}"


def _held_back(events: Sequence[Event]) -> Iterator[_Finding]:
    """A group that holds back writes no native version before a level is finalized."""
    for event in events if _holds_back(events) else ():
        if event.what is EventKind.UPDATED:
            return
        if event.what is EventKind.WROTE and event.version > _HELD_VERSION:
            yield (
                event.step,
                f"{event.subject} writes version {event.version} in a group that holds back",
            )


def _no_rejoin(events: Sequence[Event]) -> Iterator[_Finding]:
    """No member rejoins only because of a level."""
    for event in events:
        if event.what is EventKind.REJOINED:
            yield event.step, f"{event.subject} rejoined: {event.why}"


def _leader_asks(events: Sequence[Event]) -> Iterator[_Finding]:
    """The leader, and no other member, asks for a rebalance when it finds new levels."""
    leader = ""
    used: dict[str, FinalizedLevels] = {}
    found: dict[str, int] = {}
    for event, after in pairwise(events):
        name, levels = event.subject, event.levels
        if event.what in (EventKind.STARTED, EventKind.WROTE, EventKind.FOLLOWED):
            used[name] = levels
        if event.what is EventKind.STARTED:
            found[name] = NO_EPOCH
        elif event.what is EventKind.LED:
            leader = name
        elif event.what is EventKind.POLLED:
            is_new = levels.epoch > max(found[name], used[name].epoch)
            is_new = is_new and levels.levels != used[name].levels
            found[name] = max(found[name], levels.epoch)
            asks = after.what is EventKind.ASKED and after.subject == name
            if asks != (is_new and name == leader):
                place = "leader" if name == leader else "follower"
                news = "newer levels" if is_new else "nothing new"
                asked = "asks" if asks else "does not ask"
                yield event.step, f"{place} {name} finds {news} and {asked} for a rebalance"


def _all_tasks(events: Sequence[Event]) -> Iterator[_Finding]:
    """After a rebalance every task has one owner, and every owner can apply its assignment."""
    group: tuple[str, ...] = ()
    tasks: dict[str, tuple[str, ...]] = {}
    for event in [*events, Event(step=events[-1].step, what=EventKind.LED)]:
        if event.what is EventKind.LED:
            found = sorted(task for owned in tasks.values() for task in owned)
            wanted = [f"0_{number}" for number in range(PARTITIONS)]
            if group and found != wanted:
                yield event.step, f"assigned tasks are {found}, expected {wanted}"
            group, tasks = event.followers, {}
        elif event.what is EventKind.FOLLOWED:
            tasks[event.subject] = event.tasks


def _minimum(events: Sequence[Event]) -> Iterator[_Finding]:
    """The minimum rises only if all members support it, never falls, and limits updates."""
    releases: dict[str, str] = {}
    minimum = 0
    for event in events:
        if event.what is EventKind.STARTED:
            releases[event.subject] = event.why
        elif event.what in (EventKind.STOPPED, EventKind.REFUSED):
            releases.pop(event.subject, None)
        elif event.what is EventKind.DEPRECATED:
            older = sorted(name for name, release in releases.items() if release != LATER.name)
            if older or event.minimum <= minimum:
                yield (
                    event.step,
                    f"the minimum changes from {minimum} to {event.minimum}; older: {older}",
                )
            minimum = event.minimum
        elif (
            event.what is EventKind.UPDATED and event.levels.level_of(ASSIGNMENT_PROTOCOL) < minimum
        ):
            yield event.step, f"an update was accepted below the minimum of {minimum}"


def _goes_back(events: Sequence[Event]) -> Iterator[_Finding]:
    """After the level was lowered, all members can be bounced to the older release."""
    group: tuple[str, ...] | None = None
    tasks: dict[str, tuple[str, ...]] = {}
    for event in events:
        if event.what is EventKind.ROLLBACK_STARTED:
            group = event.followers
        elif event.what is EventKind.LED:
            tasks = {}
        elif event.what is EventKind.FOLLOWED:
            tasks[event.subject] = event.tasks
        elif group is not None and event.what is EventKind.REFUSED:
            yield event.step, f"{event.subject} was refused during the rollback: {event.why}"
        elif group is not None and event.what is EventKind.ROLLBACK_DONE:
            found = sum(map(len, tasks.values()))
            if event.followers != group or tuple(sorted(tasks)) != group or found != PARTITIONS:
                yield event.step, f"{sorted(tasks)} of {group} run {found} tasks"
            group = None


def _settles(events: Sequence[Event]) -> Iterator[_Finding]:
    """At the end all members use the last levels and write the highest allowed version."""
    end = events[-1]
    level = end.levels.level_of(ASSIGNMENT_PROTOCOL)
    releases = {event.subject: event.why for event in events if event.what is EventKind.STARTED}
    lowest = min((_LATEST[releases[name]] for name in end.followers), default=0)
    last = _last(events, EventKind.FOLLOWED)
    wrote = _last(events, EventKind.WROTE)
    cap = level or (_HELD_VERSION if _holds_back(events) and not end.levels.epoch else 0)
    for name in end.followers:
        if end.levels.epoch and last[name].levels != end.levels:
            yield end.step, f"{name} is at epoch {last[name].levels.epoch} at the end"
        wanted = min(lowest, cap) if cap else lowest
        if wrote[name].version != wanted:
            yield end.step, f"{name} writes version {wrote[name].version}, expected {wanted}"


def _holds_back(events: Sequence[Event]) -> bool:
    return any(event.what is EventKind.STARTED and event.levels == HELD_BACK for event in events)


def _last(events: Sequence[Event], what: EventKind) -> dict[str, Event]:
    return {event.subject: event for event in events if event.what is what}


LEVEL_RULES: Final[Mapping[str, Callable[[Sequence[Event]], Iterator[_Finding]]]] = {
    "only what was finalized": _only_finalized,
    "never back to an older epoch": _never_back,
    "the newest levels win": _newest_wins,
    "nobody writes above its level": _capped,
    "held back until a level is finalized": _held_back,
    "no rejoin for a level": _no_rejoin,
    "the leader asks for new levels": _leader_asks,
    "every task has one owner": _all_tasks,
    "a minimum rises when all have it": _minimum,
    "the older program comes back": _goes_back,
    "all arrive at the last levels": _settles,
}
"""Name of a rule -> its check, which yields (step, sentence)."""
