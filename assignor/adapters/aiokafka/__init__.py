"""The assignor in an aiokafka consumer, with polling, state and cluster access."""

# ruff: noqa: E402 the release is checked before anything is imported from the library
import assignor.clients

assignor.clients.require_client("aiokafka")

from assignor.adapters.aiokafka.application import StreamsApplication
from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.consumer import StreamsConsumer, streams_consumer
from assignor.adapters.aiokafka.polling import commit_next, polled
from assignor.adapters.aiokafka.processing import run_tasks

__all__ = [
    "StreamsApplication",
    "StreamsAssignor",
    "StreamsConsumer",
    "commit_next",
    "polled",
    "run_tasks",
    "streams_consumer",
]
