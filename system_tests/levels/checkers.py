"""Checkers of a group with levels, and their evidence; the safety rules of groups hold as well."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from probing import HELD_BACK
from probing.features import ASSIGNMENT_PROTOCOL, NO_EPOCH, UNKNOWN_LEVELS, FinalizedLevels
from system_tests.engine import Checker, Finished
from system_tests.levels.operate import BACK, DONE
from system_tests.sim import (
    SAFETY,
    Adopted,
    Answered,
    Ended,
    Evidence,
    Finalized,
    Happened,
    Looked,
    Rejoined,
    Settled,
    Started,
    Took,
    Wrote,
    natives_do_not_rejoin,
    nothing_is_forgotten,
)

_HELD_VERSION: Final = HELD_BACK.level_of(ASSIGNMENT_PROTOCOL)


@dataclass(slots=True, kw_only=True)
class LevelEvidence(Evidence):
    """What a trace says of levels up to a point.

    Attributes:
        holds_back: members hold the group back until a level is finalized.
        last, minimum: the finalized levels; history: by epoch.
        up: threads that run; adopted: thread -> levels; found: -> epoch of the newest ones found.
        wrote, wrote_levels: thread -> what it wrote last, and the levels that it went by.
        joining: threads that wrote, and have no answer.
        leads: threads that led the generation that they know.
        brought: generation -> epoch of the newest levels that count in it.
        is_going_back: the operator goes back to the older release.
    """

    holds_back: bool
    last: FinalizedLevels = field(default_factory=FinalizedLevels)
    minimum: int = 0
    history: dict[int, FinalizedLevels] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    adopted: dict[str, FinalizedLevels] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    wrote: dict[str, int] = field(default_factory=dict)
    wrote_levels: dict[str, FinalizedLevels] = field(default_factory=dict)
    joining: set[str] = field(default_factory=set)
    leads: set[str] = field(default_factory=set)
    brought: dict[int, int] = field(default_factory=dict)
    is_going_back: bool = False

    def levels_of(self, thread: str) -> FinalizedLevels:
        """Return the levels that a thread goes by."""
        return self.adopted.get(thread, UNKNOWN_LEVELS)

    def lacks(self, thread: str, levels: FinalizedLevels) -> bool:
        """Whether a thread does not support the level of the protocol."""
        level = levels.level_of(ASSIGNMENT_PROTOCOL)
        versions = self.versions[thread]
        return level > 0 and not min(versions) <= level <= max(versions)

    def newest(self, event: Answered) -> int:
        """Return the epoch of the newest levels that the members of a generation bring.

        Levels that only one follower knows count only if all members support them.
        """
        threads = [answer.thread for answer in event.answers]
        known = {thread: self.wrote_levels.get(thread, UNKNOWN_LEVELS) for thread in threads}
        epochs = [levels.epoch for levels in known.values()]
        return max(
            (
                levels.epoch
                for thread, levels in known.items()
                if thread == event.thread
                or epochs.count(levels.epoch) > 1
                or not any(self.lacks(other, levels) for other in threads)
            ),
            default=NO_EPOCH,
        )

    def add(self, happening: Any) -> None:
        """Add the next event."""
        adder = _ADDERS.get(type(happening))
        if adder is not None:
            adder(self, happening)
        Evidence.add(self, happening)


def _add_started(evidence: LevelEvidence, event: Started) -> None:
    evidence.up.add(event.thread)
    for kept in (evidence.adopted, evidence.found, evidence.wrote, evidence.wrote_levels):
        kept.pop(event.thread, None)
    evidence.leads.discard(event.thread)


def _add_ended(evidence: LevelEvidence, event: Ended) -> None:
    evidence.up.discard(event.thread)
    evidence.joining.discard(event.thread)


def _add_finalized(evidence: LevelEvidence, event: Finalized) -> None:
    evidence.last, evidence.minimum = event.levels, event.minimum
    evidence.history[event.levels.epoch] = event.levels


def _add_wrote(evidence: LevelEvidence, event: Wrote) -> None:
    evidence.wrote[event.thread] = event.used_version
    evidence.wrote_levels[event.thread] = evidence.levels_of(event.thread)
    evidence.joining.add(event.thread)


def _add_answered(evidence: LevelEvidence, event: Answered) -> None:
    evidence.leads = {event.thread}
    evidence.brought[event.generation] = evidence.newest(event)


def _add_looked(evidence: LevelEvidence, event: Looked) -> None:
    before = evidence.found.get(event.thread, NO_EPOCH)
    evidence.found[event.thread] = max(before, event.levels.epoch)


def _add_adopted(evidence: LevelEvidence, event: Adopted) -> None:
    evidence.adopted[event.thread] = event.levels


def _add_happened(evidence: LevelEvidence, event: Happened) -> None:
    evidence.is_going_back |= event.text.endswith(BACK)
    evidence.is_going_back &= not event.text.endswith(DONE)


_ADDERS: Final[dict[type, Callable[[LevelEvidence, Any], None]]] = {
    Started: _add_started,
    Ended: _add_ended,
    Finalized: _add_finalized,
    Wrote: _add_wrote,
    Answered: _add_answered,
    Took: lambda evidence, event: evidence.joining.discard(event.thread),
    Looked: _add_looked,
    Adopted: _add_adopted,
    Happened: _add_happened,
}


def only_finalized(evidence: LevelEvidence, event: Adopted) -> str | None:
    """Only finalized levels are used."""
    levels = event.levels
    if levels.epoch <= 0 or evidence.history.get(levels.epoch) == levels:
        return None
    used = f"{dict(levels.levels)} at epoch {levels.epoch}"
    return f"{event.thread} uses {used}, which was not finalized"


def never_back(evidence: LevelEvidence, event: Adopted) -> str | None:
    """A member never returns to an older epoch before it is restarted."""
    before, after = evidence.levels_of(event.thread).epoch, event.levels.epoch
    return f"{event.thread} went from {before} to {after}" if after < before else None


def newest_wins(evidence: LevelEvidence, event: Took) -> str | None:
    """After a rebalance all members use the newest levels that a member knew."""
    epoch, known = evidence.levels_of(event.thread).epoch, evidence.brought.get(event.generation, 0)
    if event.failure or epoch >= known:
        return None
    return f"{event.thread} is at epoch {epoch}, {known} was known"


def capped(evidence: LevelEvidence, event: Wrote) -> str | None:
    """A member never writes a version above its level."""
    level = evidence.levels_of(event.thread).level_of(ASSIGNMENT_PROTOCOL)
    if not level or event.used_version <= level:
        return None
    return f"{event.thread} writes version {event.used_version} at level {level}"


def held_back(evidence: LevelEvidence, event: Wrote) -> str | None:
    """A group that holds back writes no native version before a level is finalized."""
    if not evidence.holds_back or evidence.history or event.used_version <= _HELD_VERSION:
        return None
    return f"{event.thread} writes version {event.used_version} in a group that holds back"


def leader_asks(evidence: LevelEvidence, event: Looked) -> str | None:
    """The leader, and no other member, asks for a rebalance when it finds new levels."""
    if event.thread in evidence.joining:
        return None  # it may not know yet who leads
    used, leads = evidence.levels_of(event.thread), event.thread in evidence.leads
    is_new = event.levels.epoch > max(evidence.found.get(event.thread, NO_EPOCH), used.epoch)
    is_new = is_new and event.levels.levels != used.levels
    if event.asks == (is_new and leads):
        return None
    place = "leader" if leads else "follower"
    news = "newer levels" if is_new else "nothing new"
    asked = "asks" if event.asks else "does not ask"
    return f"{place} {event.thread} finds {news} and {asked} for a rebalance"


def all_tasks(evidence: LevelEvidence, event: Answered | Settled) -> str | None:
    """Every task has one owner, and no member gets tasks that does not support the levels."""
    if isinstance(event, Settled):
        return nothing_is_forgotten(evidence, event)
    levels = evidence.history.get(evidence.newest(event), UNKNOWN_LEVELS)
    for answer in event.answers:
        if answer.partitions and evidence.lacks(answer.thread, levels):
            return f"{answer.thread} gets tasks and does not support {dict(levels.levels)}"
    return None


def minimum_rises(evidence: LevelEvidence, event: Finalized) -> str | None:
    """The minimum rises only if all members support it, never falls, and limits updates."""
    level, before = event.levels.level_of(ASSIGNMENT_PROTOCOL), evidence.minimum
    if event.levels.levels != evidence.last.levels:
        return f"an update was accepted below the minimum of {before}" if level < before else None
    members = [name for name in sorted(evidence.up) if evidence.in_group(name)]
    older = [name for name in members if min(evidence.versions[name]) < event.minimum]
    if not older and event.minimum > before:
        return None
    return f"the minimum changes from {before} to {event.minimum}; older: {older}"


def goes_back(evidence: LevelEvidence, event: Ended | Happened) -> str | None:
    """After the level was lowered, all members can be bounced to the older release."""
    if not evidence.is_going_back:
        return None
    if isinstance(event, Ended):
        text = f"{event.thread} was refused during the rollback: {event.how}"
        return text if event.failed else None
    idle = evidence.task_of.keys() - set().union(*evidence.owned.values())
    return f"nobody runs {sorted(idle)} after the rollback" if idle else None


def settles(evidence: LevelEvidence, _: Finished) -> str | None:
    """At the end all members use the last levels and write the highest allowed version."""
    end = evidence.last
    is_held = evidence.holds_back and not end.epoch
    cap = end.level_of(ASSIGNMENT_PROTOCOL) or (_HELD_VERSION if is_held else 0)
    lowest = min(max(evidence.versions[name]) for name in evidence.up)
    wanted = min(lowest, cap) if cap else lowest
    for name in sorted(evidence.up):
        if end.epoch and evidence.levels_of(name) != end:
            return f"{name} is at epoch {evidence.levels_of(name).epoch} at the end"
        if evidence.wrote[name] != wanted:
            return f"{name} writes version {evidence.wrote[name]}, expected {wanted}"
    return None


LEVEL_RULES: Final = (
    Checker("only what was finalized", only_finalized, (Adopted,)),
    Checker("never back to an older epoch", never_back, (Adopted,)),
    Checker("the newest levels win", newest_wins, (Took,)),
    Checker("nobody writes above its level", capped, (Wrote,)),
    Checker("held back until a level is finalized", held_back, (Wrote,)),
    Checker("no rejoin for a level", natives_do_not_rejoin, (Rejoined,)),
    Checker("the leader asks for new levels", leader_asks, (Looked,)),
    Checker("every task has one owner", all_tasks, (Answered, Settled)),
    Checker("a minimum rises when all have it", minimum_rises, (Finalized,)),
    Checker("the older program comes back", goes_back, (Ended, Happened)),
    Checker("all arrive at the last levels", settles, (Finished,)),
)
"""All checkers, in the order in which they are asked."""

_OWN: Final = {
    "answers are readable",
    "natives do not rejoin",
    "nobody dies",
    "nothing is forgotten",
}
OTHER_RULES: Final[Iterable[Checker]] = tuple(rule for rule in SAFETY if rule.name not in _OWN)
"""Rules of safety; members that do not support a level are refused, and end."""
