"""What a member serves over HTTP (extra `http`): queries of its state, and probes.

`assignor.embedding` does not export it, because most members do not need what it imports.
"""

from assignor.embedding.serving.health import Health, health_of
from assignor.embedding.serving.probe_server import ProbeServer
from assignor.embedding.serving.query_server import Answer, QueryLimits, QueryServer

__all__ = ["Answer", "Health", "ProbeServer", "QueryLimits", "QueryServer", "health_of"]
