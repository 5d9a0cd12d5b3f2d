"""The assignor in an aiokafka consumer, with polling and cluster access."""

from assignor.adapters.aiokafka.assignor import StreamsAssignor

__all__ = [
    "StreamsAssignor",
]
