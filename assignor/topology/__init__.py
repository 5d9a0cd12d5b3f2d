"""Processing topologies: derives subtopologies from nodes, and tasks from partition counts."""

from assignor.topology.subtopologies import (
    RepartitionTopic,
    Subtopology,
    Topology,
    is_topic_name,
)
from assignor.topology.tasks import SubtopologyWaits, TaskPlan, plan_tasks, without_subtopologies

__all__ = [
    "RepartitionTopic",
    "Subtopology",
    "SubtopologyWaits",
    "TaskPlan",
    "Topology",
    "is_topic_name",
    "plan_tasks",
    "without_subtopologies",
]
