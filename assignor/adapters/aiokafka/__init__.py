"""The assignor in an aiokafka consumer, with polling and cluster access."""

# ruff: noqa: E402 the release is checked before anything is imported from the library
import assignor.clients

assignor.clients.require_client("aiokafka")

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.consumer import StreamsConsumer, streams_consumer
from assignor.adapters.aiokafka.polling import commit_next, polled

__all__ = [
    "StreamsAssignor",
    "StreamsConsumer",
    "commit_next",
    "polled",
    "streams_consumer",
]
