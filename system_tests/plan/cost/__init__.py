"""What the steps of a plan and their ways back cost, by simulated bounces."""

from system_tests.plan.cost.legs import (
    Leg,
    bounces_to_run,
    check_group,
    is_costly,
    legs_of,
    options_of,
)
from system_tests.plan.cost.runs import FEWEST_FOR_PERCENTILES, StepCost, StepRun, summed
from system_tests.plan.cost.simulated import estimated_s, step_costs

__all__ = [
    "FEWEST_FOR_PERCENTILES",
    "Leg",
    "StepCost",
    "StepRun",
    "bounces_to_run",
    "check_group",
    "estimated_s",
    "is_costly",
    "legs_of",
    "options_of",
    "step_costs",
    "summed",
]
