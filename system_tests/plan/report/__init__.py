"""The report of a plan: one page for a change board and for on-call engineers."""

from system_tests.plan.report.page import pictures_of, plan_page, write_plan_report
from system_tests.plan.report.signs import StepSigns, signs_of

__all__ = ["StepSigns", "pictures_of", "plan_page", "signs_of", "write_plan_report"]
