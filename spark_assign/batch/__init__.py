"""Placement of many groups; a worker places a batch of groups at a time."""

from spark_assign.batch.job import HUGE_TASKS, Summary, run_batch
from spark_assign.batch.plans import Output
from spark_assign.batch.publish import publish_plan, publish_plans
from spark_assign.batch.worth import GroupWorth

__all__ = [
    "HUGE_TASKS",
    "GroupWorth",
    "Output",
    "Summary",
    "publish_plan",
    "publish_plans",
    "run_batch",
]
