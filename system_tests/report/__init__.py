"""HTML reports of a bounce, live or simulated."""

from system_tests.report.figure import ReportError
from system_tests.report.live import story_of_live
from system_tests.report.page import check_report, write_report
from system_tests.report.sim import story_of_simulation

__all__ = [
    "ReportError",
    "check_report",
    "story_of_live",
    "story_of_simulation",
    "write_report",
]
