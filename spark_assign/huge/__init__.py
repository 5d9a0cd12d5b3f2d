"""Placement of one huge group by all workers together."""

from spark_assign.huge.group import STRATEGIES
from spark_assign.huge.group_rows import OneGroup, group_in_rows, in_rows
from spark_assign.huge.job import HugeGroupPlan, cost, plan_group
from spark_assign.huge.long_groups import LINE_LIMIT, LongGroup, groups_of_long_lines
from spark_assign.huge.run import SUMMARY, GroupSummary, run_group
from spark_assign.huge.source import nested_groups, read_one_group, snapshot_groups
from spark_assign.huge.worker.answer import COSTS, OF_GAIN

__all__ = [
    "COSTS",
    "LINE_LIMIT",
    "OF_GAIN",
    "STRATEGIES",
    "SUMMARY",
    "GroupSummary",
    "HugeGroupPlan",
    "LongGroup",
    "OneGroup",
    "cost",
    "group_in_rows",
    "groups_of_long_lines",
    "in_rows",
    "nested_groups",
    "plan_group",
    "read_one_group",
    "run_group",
    "snapshot_groups",
]
