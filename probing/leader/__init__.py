"""The leader's half of version probing: the version and content of every answer (KIP-268)."""

from probing.leader.decide import LeaderDecision, decide_answers
from probing.leader.native_answers import NATIVE_ANSWER_RULES
from probing.leader.next_version import (
    NEXT_VERSION_RULES,
    NextVersionNumbers,
    next_version_for,
    why_next_version,
)
from probing.leader.rules import LEADER_RULES, Answer, Content, MemberVersions

__all__ = [
    "LEADER_RULES",
    "NATIVE_ANSWER_RULES",
    "NEXT_VERSION_RULES",
    "Answer",
    "Content",
    "LeaderDecision",
    "MemberVersions",
    "NextVersionNumbers",
    "decide_answers",
    "next_version_for",
    "why_next_version",
]
