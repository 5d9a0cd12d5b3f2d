"""Placement of one huge group by all workers together."""

from spark_assign.huge.group import STRATEGIES
from spark_assign.huge.job import HugeGroupPlan, cost, plan_group
from spark_assign.huge.run import SUMMARY, GroupSummary, run_group
from spark_assign.huge.source import (
    OneGroup,
    in_rows,
    nested_groups,
    read_one_group,
    snapshot_groups,
)
from spark_assign.huge.worker.answer import COSTS

__all__ = [
    "COSTS",
    "STRATEGIES",
    "SUMMARY",
    "GroupSummary",
    "HugeGroupPlan",
    "OneGroup",
    "cost",
    "in_rows",
    "nested_groups",
    "plan_group",
    "read_one_group",
    "run_group",
    "snapshot_groups",
]
