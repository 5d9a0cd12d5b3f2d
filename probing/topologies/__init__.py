"""Rolling change of the topology: decision tables for forms of subtopologies and their memory."""

from probing.topologies.chains import CHAIN_RULES, joined_families
from probing.topologies.forms import (
    FORM_RULES,
    FamilyDecision,
    decide_forms,
)
from probing.topologies.members import (
    TOPOLOGY_ANSWER_RULES,
    TOPOLOGY_MEMBER_RULES,
    AnswerNumbers,
    MemberNumbers,
    Treatment,
)
from probing.topologies.memory import (
    CLAIM_RULES,
    HIGHEST_EPOCH,
    MOST_AHEAD,
    MOST_ENTRIES,
    NEVER,
    Carrier,
    Reached,
    answered_memory,
    believed_memory,
    credible,
    greatest,
    lacks,
    lowered,
    newest_memory,
)
from probing.topologies.overlap import families
from probing.topologies.units import (
    UNIT_RULES,
    decide_unit,
    shares_released,
)

__all__ = [
    "CHAIN_RULES",
    "CLAIM_RULES",
    "FORM_RULES",
    "HIGHEST_EPOCH",
    "MOST_AHEAD",
    "MOST_ENTRIES",
    "NEVER",
    "TOPOLOGY_ANSWER_RULES",
    "TOPOLOGY_MEMBER_RULES",
    "UNIT_RULES",
    "AnswerNumbers",
    "Carrier",
    "FamilyDecision",
    "MemberNumbers",
    "Reached",
    "Treatment",
    "answered_memory",
    "believed_memory",
    "credible",
    "decide_forms",
    "decide_unit",
    "families",
    "greatest",
    "joined_families",
    "lacks",
    "lowered",
    "newest_memory",
    "shares_released",
]
