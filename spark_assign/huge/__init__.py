"""Placement of one huge group by all workers together."""

from spark_assign.huge.group import STRATEGIES
from spark_assign.huge.job import HugeGroupPlan, cost, plan_group
from spark_assign.huge.lines.pieces import LongLine, long_line_rows, set_piece_batches
from spark_assign.huge.run import SUMMARY, GroupSummary, run_group
from spark_assign.huge.source import (
    OneGroup,
    group_in_rows,
    in_rows,
    nested_groups,
    read_one_group,
    snapshot_groups,
    sorted_tasks,
)
from spark_assign.huge.worker.answer import COSTS, OF_GAIN

__all__ = [
    "COSTS",
    "OF_GAIN",
    "STRATEGIES",
    "SUMMARY",
    "GroupSummary",
    "HugeGroupPlan",
    "LongLine",
    "OneGroup",
    "cost",
    "group_in_rows",
    "in_rows",
    "long_line_rows",
    "nested_groups",
    "plan_group",
    "read_one_group",
    "run_group",
    "set_piece_batches",
    "snapshot_groups",
    "sorted_tasks",
]
