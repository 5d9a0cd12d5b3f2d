"""Placement of many groups; a worker places a batch of groups at a time."""

from spark_assign.batch.job import HUGE_TASKS, Summary, run_batch
from spark_assign.batch.publish import publish_plan

__all__ = [
    "HUGE_TASKS",
    "Summary",
    "publish_plan",
    "run_batch",
]
