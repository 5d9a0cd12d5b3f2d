"""The soak: a group disturbed for an hour; nothing may be lost, nothing may grow."""

from system_tests.soak.journal import Journal
from system_tests.soak.options import SPARE_LANES, SoakOptions
from system_tests.soak.report import outcome_document, outcome_json, summary_lines
from system_tests.soak.run import Soak
from system_tests.soak.verdict import judge_soak

__all__ = [
    "SPARE_LANES",
    "Journal",
    "Soak",
    "SoakOptions",
    "judge_soak",
    "outcome_document",
    "outcome_json",
    "summary_lines",
]
