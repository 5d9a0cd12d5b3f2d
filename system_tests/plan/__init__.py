"""Upgrade plans: steps, costs, notes, the way back."""

from system_tests.plan.cost import StepCost, step_costs
from system_tests.plan.notes import DEADLY
from system_tests.plan.saved import read_saved
from system_tests.plan.steps import PlanStep, UpgradePlan, Use, make_plan

__all__ = [
    "DEADLY",
    "PlanStep",
    "StepCost",
    "UpgradePlan",
    "Use",
    "make_plan",
    "read_saved",
    "step_costs",
]
