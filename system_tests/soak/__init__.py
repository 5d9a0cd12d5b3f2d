"""The soak: a group is disturbed for an hour; no record may be lost, no process may grow."""

from system_tests.soak.journal import Journal
from system_tests.soak.options import EMBEDDED, SoakOptions
from system_tests.soak.report import outcome_document, outcome_json, summary_lines
from system_tests.soak.run import run_soak
from system_tests.soak.verdict import check_soak

__all__ = [
    "EMBEDDED",
    "Journal",
    "SoakOptions",
    "check_soak",
    "outcome_document",
    "outcome_json",
    "run_soak",
    "summary_lines",
]
