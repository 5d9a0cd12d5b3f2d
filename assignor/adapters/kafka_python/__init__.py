"""The assignor in a kafka-python (3.0 or newer) consumer, with polling, state and changelogs."""

# ruff: noqa: E402 the release is checked before anything is imported from the library
import assignor.clients

assignor.clients.require_client("kafka-python")

from assignor.adapters.kafka_python.application import StreamsApplication, open_changelogs
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.changelog_reader import ChangelogReader
from assignor.adapters.kafka_python.changelogs import KafkaChangelogs
from assignor.adapters.kafka_python.consumer import StreamsConsumer, streams_consumer
from assignor.adapters.kafka_python.polling import SilenceWatch, commit_next, polled
from assignor.adapters.kafka_python.processing import run_tasks
from assignor.adapters.kafka_python.ranges import refresh_metadata, topic_id

__all__ = [
    "ChangelogReader",
    "KafkaChangelogs",
    "SilenceWatch",
    "StreamsApplication",
    "StreamsAssignor",
    "StreamsConsumer",
    "commit_next",
    "open_changelogs",
    "polled",
    "refresh_metadata",
    "run_tasks",
    "streams_consumer",
    "topic_id",
]
