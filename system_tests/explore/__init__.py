"""Every order in which a small group can be bounced, instead of one that was drawn."""

from system_tests.explore.bounds import Bounds
from system_tests.explore.issues import ISSUES, Finding, Issue, issue_of
from system_tests.explore.presence import Placed, Presence, place
from system_tests.explore.report import document, lines_of, runbook, wanted
from system_tests.explore.search import Explored, Found, explore

__all__ = [
    "ISSUES",
    "Bounds",
    "Explored",
    "Finding",
    "Found",
    "Issue",
    "Placed",
    "Presence",
    "document",
    "explore",
    "issue_of",
    "lines_of",
    "place",
    "runbook",
    "wanted",
]
