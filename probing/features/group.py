"""Propagation of finalized levels in a group: the leader polls, one rebalance informs all members.

KIP-584, T0 to T5. Brokers learn of a level at different times, so a polled view may be stale. Each
member remembers the levels that it adopted, with their epoch, and the highest epoch wins: a stale
broker lowers no level, an operator's downgrade has a higher epoch and does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from probing.features.levels import NO_EPOCH, FinalizedLevels, newest_levels


@dataclass(frozen=True, slots=True, kw_only=True)
class LookNumbers:
    """Inputs of a row: what the group leader knows after a poll.

    Attributes:
        polled: the levels of a broker's response; ``UNKNOWN_LEVELS`` if no broker answered.
        adopted: the levels of the group's last rebalance.
    """

    polled: FinalizedLevels
    adopted: FinalizedLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRule:
    """One row: its condition, what the leader does, and the sentence.

    Attributes:
        name, holds, why: as in every table.
        starts_rebalance: start one rebalance, which informs all members.
        takes_epoch: adopt the epoch without a rebalance; the next rebalance propagates it.
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
        why="no broker returned levels; stay at epoch {adopted.epoch}",
    ),
    LookRule(
        name="a stale broker",
        holds=lambda n: n.polled.epoch < n.adopted.epoch,
        starts_rebalance=False,
        why="the broker is at epoch {polled.epoch}, the group at {adopted.epoch}: the broker is"
        " stale, the group keeps its levels",
    ),
    LookRule(
        name="nothing new",
        holds=lambda n: n.polled == n.adopted,
        starts_rebalance=False,
        why="the group has these levels already",
    ),
    # Raised and lowered again since the last poll. If the leader did not take the epoch, a broker
    # that still has the level in between would look newer than the group.
    LookRule(
        name="only the epoch is new",
        holds=lambda n: n.polled.levels == n.adopted.levels,
        starts_rebalance=False,
        takes_epoch=True,
        why="the group has these levels already; only their epoch is new: {polled.epoch} after"
        " {adopted.epoch}",
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
        why="for epoch {polled.epoch} the broker has other levels than the group; the level log was"
        " recreated, finalize the levels again",
    ),
)
"""The first row that holds decides (KIP-584, T3 to T4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookDecision:
    """What the leader does (fields as in ``LookRule``), the row that decided, and its sentence."""

    starts_rebalance: bool
    takes_epoch: bool
    rule: str
    why: str


def decide_look(numbers: LookNumbers) -> LookDecision:
    """Return what the leader does after a poll."""
    rule = next(row for row in LOOK_RULES if row.holds(numbers))
    why = rule.why.format(polled=numbers.polled, adopted=numbers.adopted)
    return LookDecision(
        starts_rebalance=rule.starts_rebalance,
        takes_epoch=rule.takes_epoch,
        rule=rule.name,
        why=why,
    )


def group_levels(polled: FinalizedLevels, carried: Iterable[FinalizedLevels]) -> FinalizedLevels:
    """Return the levels that a leader answers with: the newest of its own and the members' views.

    A leader that polled stale brokers only is corrected by any member with newer levels.
    """
    return newest_levels((polled, *carried))


def adopt_levels(adopted: FinalizedLevels, answered: FinalizedLevels) -> FinalizedLevels:
    """Return a member's levels after an answer: the answered ones if their epoch is higher."""
    return answered if answered.epoch > adopted.epoch else adopted
