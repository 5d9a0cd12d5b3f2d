"""Upgrade plans: steps, costs, warnings and the rollback after each step."""

from system_tests.plan.changes import PathChange, ReleaseChange, Subject, changes_between
from system_tests.plan.cost import StepCost, step_costs
from system_tests.plan.notes import FATAL
from system_tests.plan.saved import read_saved, read_saved_topology
from system_tests.plan.steps import PlanStep, UpgradePlan, make_plan
from system_tests.plan.store_rows import CHANGES, NOT_CHECKED
from system_tests.plan.topologies import (
    PlannedTopology,
    TopologyPlan,
    topology_lines,
    topology_plan,
)
from system_tests.plan.uses import Use

__all__ = [
    "CHANGES",
    "FATAL",
    "NOT_CHECKED",
    "PathChange",
    "PlanStep",
    "PlannedTopology",
    "ReleaseChange",
    "StepCost",
    "Subject",
    "TopologyPlan",
    "UpgradePlan",
    "Use",
    "changes_between",
    "make_plan",
    "read_saved",
    "read_saved_topology",
    "step_costs",
    "topology_lines",
    "topology_plan",
]
