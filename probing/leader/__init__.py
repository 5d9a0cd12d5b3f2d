"""Version probing of the leader (KIP-268): the version and content of every answer."""

from probing.leader.answers import LEADER_RULES, AnswerDecision, Content, MemberVersions
from probing.leader.decide import LeaderDecision, decide_answers
from probing.leader.native_answers import NATIVE_ANSWER_RULES
from probing.leader.next_version import NEXT_VERSION_RULES

__all__ = [
    "LEADER_RULES",
    "NATIVE_ANSWER_RULES",
    "NEXT_VERSION_RULES",
    "AnswerDecision",
    "Content",
    "LeaderDecision",
    "MemberVersions",
    "decide_answers",
]
