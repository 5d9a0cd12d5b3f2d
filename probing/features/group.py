"""Levels on their way through a group: the leader looks, one rebalance tells, all adopt.

KIP-584's story T0 to T5. Brokers learn of a level at different times, so a view may be stale; each
member carries the levels that it adopted, with their epoch, and the highest epoch wins. Nobody goes
back for a stale broker; an operator's step down has a higher epoch and is followed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from probing.features.levels import NO_EPOCH, FinalizedLevels, newest_levels


@dataclass(frozen=True, slots=True, kw_only=True)
class LookNumbers:
    """What the group leader has when it looks for new levels.

    Attributes:
        polled: what a broker just said; ``UNKNOWN_LEVELS`` when none answered.
        adopted: what the group went by in its last rebalance.
    """

    polled: FinalizedLevels
    adopted: FinalizedLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRule:
    """One row: when it holds, what the leader does, and the sentence.

    Attributes:
        name, holds, why: as in every table.
        starts_rebalance: tell all members, in one rebalance.
        takes_epoch: the leader takes the epoch alone; it travels with the next rebalance.
    """

    name: str
    holds: Callable[[LookNumbers], bool]
    starts_rebalance: bool
    why: str
    takes_epoch: bool = False


LOOK_RULES: Final = (
    LookRule(
        name="no broker answered",
        holds=lambda n: n.polled.epoch == NO_EPOCH,
        starts_rebalance=False,
        why="no broker said anything about levels; stay at epoch {adopted.epoch}",
    ),
    LookRule(
        name="a stale broker",
        holds=lambda n: n.polled.epoch < n.adopted.epoch,
        starts_rebalance=False,
        why="the broker is at epoch {polled.epoch}, the group at {adopted.epoch}: the broker has"
        " not heard yet, and nobody goes back for it",
    ),
    LookRule(
        name="nothing new",
        holds=lambda n: n.polled == n.adopted,
        starts_rebalance=False,
        why="the levels are those that the group goes by",
    ),
    # Raised and lowered again since the last look. Without its epoch, a broker that still has the
    # level in between would count as news.
    LookRule(
        name="only the epoch is new",
        holds=lambda n: n.polled.levels == n.adopted.levels,
        starts_rebalance=False,
        takes_epoch=True,
        why="the levels are those that the group goes by; only their epoch is new:"
        " {polled.epoch} after {adopted.epoch}",
    ),
    LookRule(
        name="new levels",
        holds=lambda n: n.polled.epoch > n.adopted.epoch,
        starts_rebalance=True,
        why="levels changed at epoch {polled.epoch}, the group is at {adopted.epoch}; one rebalance"
        " tells all members",
    ),
    LookRule(
        name="one epoch, two answers",
        holds=lambda n: True,  # noqa: ARG005 the last row always holds
        starts_rebalance=False,
        why="the broker says other levels for epoch {polled.epoch} than the group goes by; the log"
        " of levels was begun again, so an operator has to finalize them once more",
    ),
)
"""First row that holds, wins (KIP-584, T3 to T4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookDecision:
    """What the leader does, as in ``LookRule``, by which rule, and why."""

    starts_rebalance: bool
    takes_epoch: bool
    rule: str
    why: str


def decide_look(numbers: LookNumbers) -> LookDecision:
    """Return what the leader does about what a broker said."""
    rule = next(row for row in LOOK_RULES if row.holds(numbers))
    why = rule.why.format(polled=numbers.polled, adopted=numbers.adopted)
    return LookDecision(
        starts_rebalance=rule.starts_rebalance,
        takes_epoch=rule.takes_epoch,
        rule=rule.name,
        why=why,
    )


def group_levels(polled: FinalizedLevels, carried: Iterable[FinalizedLevels]) -> FinalizedLevels:
    """Return the levels that a leader answers with: the newest of its own view and the members'.

    A leader that only ever met stale brokers is corrected by any member that knows more.
    """
    return newest_levels((polled, *carried))


def adopt_levels(mine: FinalizedLevels, answered: FinalizedLevels) -> FinalizedLevels:
    """Return what a member goes by after an answer: an older leader's answer changes nothing."""
    return answered if answered.epoch > mine.epoch else mine
