"""Placement of one huge group by all workers together."""

from spark_assign.huge.group import STRATEGIES
from spark_assign.huge.job import HugeGroupPlan, plan_group
from spark_assign.huge.run import SUMMARY, GroupSummary, run_group
from spark_assign.huge.source import in_rows, nested_groups, read_one_group

__all__ = [
    "STRATEGIES",
    "SUMMARY",
    "GroupSummary",
    "HugeGroupPlan",
    "in_rows",
    "nested_groups",
    "plan_group",
    "read_one_group",
    "run_group",
]
