"""Processing topologies: derives subtopologies from nodes, and tasks from partition counts."""

from assignor.topology.subtopologies import Topology
from assignor.topology.tasks import SubtopologyWaits, TaskPlan, plan_tasks, without_subtopologies
from assignor.topology.values import RepartitionTopic, Subtopology, is_topic_name

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
