"""Processing topologies: derives subtopologies from nodes, and tasks from partition counts."""

from assignor.topology.contents import content_fingerprint, exclusive_topics, with_sinks
from assignor.topology.subtopologies import HIGHEST_VERSION, Topology
from assignor.topology.tasks import (
    SubtopologyWaits,
    TaskPlan,
    plan_tasks,
    source_counts,
    task_sizes,
    without_subtopologies,
)
from assignor.topology.values import (
    CarriedTopologies,
    RepartitionTopic,
    Subtopology,
    is_topic_name,
    plain,
)

__all__ = [
    "HIGHEST_VERSION",
    "CarriedTopologies",
    "RepartitionTopic",
    "Subtopology",
    "SubtopologyWaits",
    "TaskPlan",
    "Topology",
    "content_fingerprint",
    "exclusive_topics",
    "is_topic_name",
    "plain",
    "plan_tasks",
    "source_counts",
    "task_sizes",
    "with_sinks",
    "without_subtopologies",
]
