"""Placement of many groups: one task of the executor a batch of rows."""

from spark_assign.batch.job import HUGE_TASKS, Summary, run_batch
from spark_assign.batch.publish import publish_plan

__all__ = [
    "HUGE_TASKS",
    "Summary",
    "publish_plan",
    "run_batch",
]
