"""Processing topologies: derives subtopologies from nodes, and tasks from partition counts."""

from assignor.topology.contents import (
    chains,
    conflicting_topics,
    content_fingerprint,
    exclusive_topics,
    with_sinks,
)
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
from assignor.topology.versions import (
    Change,
    SubtopologyChange,
    carried_topologies,
    compare_topologies,
)

__all__ = [
    "HIGHEST_VERSION",
    "CarriedTopologies",
    "Change",
    "RepartitionTopic",
    "Subtopology",
    "SubtopologyChange",
    "SubtopologyWaits",
    "TaskPlan",
    "Topology",
    "carried_topologies",
    "chains",
    "compare_topologies",
    "conflicting_topics",
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
