"""Processing topologies: nodes to subtopologies, subtopologies and partition counts to tasks."""

from assignor.topology.subtopologies import RepartitionTopic, Subtopology, Topology
from assignor.topology.tasks import SubtopologyWaits, TaskPlan, plan_tasks, without_subtopologies

__all__ = [
    "RepartitionTopic",
    "Subtopology",
    "SubtopologyWaits",
    "TaskPlan",
    "Topology",
    "plan_tasks",
    "without_subtopologies",
]
