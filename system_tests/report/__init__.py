"""HTML reports of a bounce, live or simulated."""

from system_tests.report.figure import ReportError
from system_tests.report.page import check_report, write_report
from system_tests.report.sim import story_of_simulation
from system_tests.report.story import (
    GROUP,
    Bar,
    Mark,
    MarkKind,
    OpenBars,
    Rebalance,
    Story,
    causes_of,
    rebalance_of,
    rejoin_kind,
)

__all__ = [
    "GROUP",
    "Bar",
    "Mark",
    "MarkKind",
    "OpenBars",
    "Rebalance",
    "ReportError",
    "Story",
    "causes_of",
    "check_report",
    "rebalance_of",
    "rejoin_kind",
    "story_of_simulation",
    "write_report",
]
