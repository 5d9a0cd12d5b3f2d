"""The assignor in a kafka-python (3.0 or newer) consumer, with polling, topics and changelogs."""

from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.changelogs import ChangelogReader
from assignor.adapters.kafka_python.polling import commit_next, polled

__all__ = [
    "ChangelogReader",
    "StreamsAssignor",
    "commit_next",
    "polled",
]
