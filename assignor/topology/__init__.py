"""Processing topologies: derives subtopologies from nodes, and tasks from partition counts.

`Topology`, with which an application declares its nodes, is loaded when it is first used: leader
and members have its subtopologies.
"""

import importlib
from typing import TYPE_CHECKING

from assignor.topology.contents import content_fingerprint, exclusive_topics, with_sinks
from assignor.topology.tasks import (
    SubtopologyWaits,
    TaskPlan,
    only_tasks,
    plan_tasks,
    source_counts,
    task_sizes,
)
from assignor.topology.values import (
    HIGHEST_VERSION,
    CarriedTopologies,
    RepartitionTopic,
    Subtopology,
    is_topic_name,
    plain,
)

if TYPE_CHECKING:
    from assignor.topology.subtopologies import Topology

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
    "only_tasks",
    "plain",
    "plan_tasks",
    "source_counts",
    "task_sizes",
    "with_sinks",
]

if not TYPE_CHECKING:  # otherwise a type checker accepts every name

    def __getattr__(name: str) -> object:
        """Load `Topology`."""
        if name != "Topology":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module("assignor.topology.subtopologies").Topology
