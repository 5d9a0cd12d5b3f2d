"""What happens after the version question is settled: the follow-ups of KIP-441."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from probing.events import AssignmentReceived
from probing.versions import NO_REBALANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowupRule:
    """One row of the follow-ups: when it holds, the command it makes."""

    name: str
    holds: Callable[[AssignmentReceived], bool]
    at_ms: Callable[[AssignmentReceived], int]
    why: str


FOLLOWUP_RULES: Final = (
    FollowupRule(
        name="host is missing",
        holds=lambda e: e.host_missing,
        at_ms=lambda _: 0,
        why="the group's host map does not name this member's endpoint; rejoin to be in it",
    ),
    FollowupRule(
        name="tasks wait to be revoked",
        holds=lambda e: e.next_rebalance_ms <= 0,
        at_ms=lambda _: 0,
        why="the leader asks for the next rebalance at once: tasks wait for their owners",
    ),
    FollowupRule(
        name="follow-up was asked for",
        holds=lambda e: e.next_rebalance_ms < NO_REBALANCE,
        at_ms=lambda e: e.next_rebalance_ms,
        why="the leader asks for a rebalance at {at_ms} ms: warm-ups may have caught up by then",
    ),
    FollowupRule(
        name="nothing to follow",
        holds=lambda _: True,
        at_ms=lambda _: NO_REBALANCE,
        why="no follow-up rebalance was asked for",
    ),
)
"""First row that holds, wins. Kafka asks the same questions in the same order since 2.6."""
