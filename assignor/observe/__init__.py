"""Observation of rebalances: events of the adapters, rebalance summaries, log lines, metrics."""

from assignor.observe.events import (
    AnswerHandled,
    AnswerRefused,
    AnswersDecided,
    AssignmentFailed,
    AssignmentTaken,
    MemberFailed,
    MembershipLost,
    Observation,
    Observer,
    RejoinRequested,
    SubscriptionWritten,
)
from assignor.observe.log_lines import LoggingHook
from assignor.observe.rebalances import (
    Outcome,
    RebalanceEnd,
    RebalanceHook,
    RebalanceStart,
    RebalanceWatch,
)

__all__ = [
    "AnswerHandled",
    "AnswerRefused",
    "AnswersDecided",
    "AssignmentFailed",
    "AssignmentTaken",
    "LoggingHook",
    "MemberFailed",
    "MembershipLost",
    "Observation",
    "Observer",
    "Outcome",
    "RebalanceEnd",
    "RebalanceHook",
    "RebalanceStart",
    "RebalanceWatch",
    "RejoinRequested",
    "SubscriptionWritten",
]
