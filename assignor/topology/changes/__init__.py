"""Changes of a topology: comparison of two topologies, and the versions that a program carries."""

from assignor.topology.changes.chained_forms import chains, conflicting_topics
from assignor.topology.changes.versions import (
    Change,
    SubtopologyChange,
    carried_topologies,
    compare_topologies,
)

__all__ = [
    "Change",
    "SubtopologyChange",
    "carried_topologies",
    "chains",
    "compare_topologies",
    "conflicting_topics",
]
