"""What a member serves over HTTP (extra `http`): queries of its state, probes and metrics.

`assignor.embedding` does not export it, because most members do not need what it imports.
"""

from assignor.embedding.serving.health import Health, health_of
from assignor.embedding.serving.probe_server import ProbeServer
from assignor.embedding.serving.query_server import Answer, QueryLimits, QueryServer
from assignor.embedding.serving.served_member import ServedMember

__all__ = [
    "Answer",
    "Health",
    "ProbeServer",
    "QueryLimits",
    "QueryServer",
    "ServedMember",
    "health_of",
]
