"""Every order in which a small group can be bounced, instead of one that was drawn."""

from system_tests.explore.bounds import Bounds
from system_tests.explore.issues import ISSUES, Finding, Issue, issue_of
from system_tests.explore.presence import Placed, Presence, explore_alone, place, placed_by
from system_tests.explore.report import document, lines_of, runbook, wanted
from system_tests.explore.search import Explored, Found, Progress, explore
from system_tests.explore.workers import WorkerLostError

__all__ = [
    "ISSUES",
    "Bounds",
    "Explored",
    "Finding",
    "Found",
    "Issue",
    "Placed",
    "Presence",
    "Progress",
    "WorkerLostError",
    "document",
    "explore",
    "explore_alone",
    "issue_of",
    "lines_of",
    "place",
    "placed_by",
    "runbook",
    "wanted",
]
