"""Explanations of an answer: why tasks run where they run, what would change it, what it moves."""

from assignor.explain.actives import Reason, active_reason
from assignor.explain.candidate_clients import Candidate, candidates
from assignor.explain.copies import copy_reason, dropped, dropped_reason
from assignor.explain.facts import Facts, facts_of, trace_of
from assignor.explain.moves import Diff, Move, diff_of, joined
from assignor.explain.read_back import answer_of, regrouped
from assignor.explain.what_if import Change, changes

__all__ = [
    "Candidate",
    "Change",
    "Diff",
    "Facts",
    "Move",
    "Reason",
    "active_reason",
    "answer_of",
    "candidates",
    "changes",
    "copy_reason",
    "diff_of",
    "dropped",
    "dropped_reason",
    "facts_of",
    "joined",
    "regrouped",
    "trace_of",
]
