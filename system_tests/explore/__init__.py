"""Exhaustive search: every order of events in which a small group can be bounced."""

from system_tests.explore.bounds import Bounds
from system_tests.explore.issues import ISSUES, Finding
from system_tests.explore.presence import Placed, Presence, explore_alone, place, placed_by
from system_tests.explore.report import document, findings_of_issue, lines_of, runbook
from system_tests.explore.search import Explored, Found, Progress, explore

__all__ = [
    "ISSUES",
    "Bounds",
    "Explored",
    "Finding",
    "Found",
    "Placed",
    "Presence",
    "Progress",
    "document",
    "explore",
    "explore_alone",
    "findings_of_issue",
    "lines_of",
    "place",
    "placed_by",
    "runbook",
]
