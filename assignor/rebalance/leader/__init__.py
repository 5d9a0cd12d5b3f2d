"""The group leader's half of a rebalance: subscriptions in, one answer per member out."""

from assignor.rebalance.leader.answer_bytes import MemberAnswer
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory
from assignor.rebalance.leader.knowledge import LeaderSettings
from assignor.rebalance.leader.members import UNKNOWN_GENERATION, GroupMember
from assignor.rebalance.leader.parts.knowledge import LeaderKnowledge
from assignor.rebalance.leader.record_budget import (
    GROUP_RECORD_LIMIT,
    RECORD_BYTES,
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.whole import GroupAnswer, assign_group

__all__ = [
    "GROUP_RECORD_LIMIT",
    "NONE_STALLED",
    "NO_CLAIMS",
    "RECORD_BYTES",
    "UNKNOWN_GENERATION",
    "ClaimMemory",
    "GroupAnswer",
    "GroupMember",
    "LeaderKnowledge",
    "LeaderSettings",
    "MemberAnswer",
    "MemberBytes",
    "StalledCopies",
    "assign_group",
    "fit_group",
    "protocol_bytes",
]
