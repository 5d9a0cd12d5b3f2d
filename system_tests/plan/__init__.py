"""Upgrade plans: steps, costs, warnings and the rollback after each step."""

from system_tests.plan.cost import StepCost, step_costs
from system_tests.plan.notes import FATAL
from system_tests.plan.saved import read_saved, read_saved_topology
from system_tests.plan.steps import PlanStep, UpgradePlan, Use, make_plan
from system_tests.plan.topologies import (
    PlannedTopology,
    TopologyPlan,
    topology_lines,
    topology_plan,
)

__all__ = [
    "FATAL",
    "PlanStep",
    "PlannedTopology",
    "StepCost",
    "TopologyPlan",
    "UpgradePlan",
    "Use",
    "make_plan",
    "read_saved",
    "read_saved_topology",
    "step_costs",
    "topology_lines",
    "topology_plan",
]
