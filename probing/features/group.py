"""Propagation of finalized levels in a group: the leader polls, one rebalance informs all members.

KIP-584, T0 to T5. Brokers learn of a level at different times, so a polled view may be stale. Each
member remembers the levels that it adopted, with their epoch, and the highest epoch wins: a stale
broker lowers no level, an operator's downgrade has a higher epoch and does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from probing.features.levels import NO_EPOCH, FinalizedLevels, newest_levels
from probing.rules import Rule, Rules, always, first


@dataclass(frozen=True, slots=True, kw_only=True)
class LookNumbers:
    """Inputs of a row: what the group leader knows after a poll.

    Attributes:
        polled: the levels of a broker's response; ``UNKNOWN_LEVELS`` if no broker answered.
        adopted: the levels of the group's last rebalance.
    """

    polled: FinalizedLevels
    adopted: FinalizedLevels


class LookOutcome(NamedTuple):
    """What the leader does.

    Attributes:
        starts_rebalance: start one rebalance, which informs all members.
        takes_epoch: adopt the epoch without a rebalance; the next rebalance propagates it.
    """

    starts_rebalance: bool = False
    takes_epoch: bool = False


_NOTHING: Final = LookOutcome()

LOOK_RULES: Final[Rules[LookNumbers, LookOutcome]] = (
    Rule(
        name="no broker answered",
        holds=lambda n: n.polled.epoch == NO_EPOCH,
        says=_NOTHING,
        why="no broker returned levels; stay at epoch {adopted.epoch}",
    ),
    Rule(
        name="a stale broker",
        holds=lambda n: n.polled.epoch < n.adopted.epoch,
        says=_NOTHING,
        why="the broker is at epoch {polled.epoch}, the group at {adopted.epoch}: the broker is"
        " stale, the group keeps its levels",
    ),
    Rule(
        name="nothing new",
        holds=lambda n: n.polled == n.adopted,
        says=_NOTHING,
        why="the group has these levels already",
    ),
    # Raised and lowered again since the last poll. If the leader did not take the epoch, a broker
    # that still has the level in between would look newer than the group.
    Rule(
        name="only the epoch is new",
        holds=lambda n: n.polled.levels == n.adopted.levels,
        says=LookOutcome(takes_epoch=True),
        why="the group has these levels already; only their epoch is new: {polled.epoch} after"
        " {adopted.epoch}",
    ),
    Rule(
        name="new levels",
        holds=lambda n: n.polled.epoch > n.adopted.epoch,
        says=LookOutcome(starts_rebalance=True),
        why="levels changed at epoch {polled.epoch}, the group is at {adopted.epoch}; one rebalance"
        " tells all members",
    ),
    Rule(
        name="one epoch, two answers",
        holds=always,
        says=_NOTHING,
        why="for epoch {polled.epoch} the broker has other levels than the group; the level log was"
        " recreated, finalize the levels again",
    ),
)
"""What a group leader does after a poll (KIP-584, T3 to T4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookDecision:
    """What the leader does (see ``LookOutcome``), the row that decided, and its sentence."""

    starts_rebalance: bool
    takes_epoch: bool
    rule: str
    why: str


def decide_look(numbers: LookNumbers) -> LookDecision:
    """Return what the leader does after a poll."""
    rule = first(LOOK_RULES, numbers)
    return LookDecision(
        starts_rebalance=rule.says.starts_rebalance,
        takes_epoch=rule.says.takes_epoch,
        rule=rule.name,
        why=rule.sentence(numbers),
    )


def group_levels(polled: FinalizedLevels, carried: Iterable[FinalizedLevels]) -> FinalizedLevels:
    """Return the levels that a leader answers with: the newest of its own and the members' views.

    A leader that polled stale brokers only is corrected by any member with newer levels.
    """
    return newest_levels((polled, *carried))


def adopt_levels(adopted: FinalizedLevels, answered: FinalizedLevels) -> FinalizedLevels:
    """Return a member's levels after an answer: the answered ones if their epoch is higher."""
    return answered if answered.epoch > adopted.epoch else adopted
