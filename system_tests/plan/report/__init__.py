"""The reports of plans: one page for a change board and for on-call engineers."""

from system_tests.plan.report.html import write_note_report
from system_tests.plan.report.move import move_decision, move_page, write_move_report
from system_tests.plan.report.page import (
    decision_of,
    pictures_of,
    plan_page,
    reasons_of,
    write_plan_report,
)
from system_tests.plan.report.signs import StepSigns, signs_of

__all__ = [
    "StepSigns",
    "decision_of",
    "move_decision",
    "move_page",
    "pictures_of",
    "plan_page",
    "reasons_of",
    "signs_of",
    "write_move_report",
    "write_note_report",
    "write_plan_report",
]
