"""Reads the changelog of the counts, in the format of Kafka Streams."""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping

from kafka import KafkaConsumer, TopicPartition

from assignor.adapters.connecting import network_client

COUNT = struct.Struct(">q")
"""The format of Kafka's LongSerializer."""

_POLL_MS = 1000


def read_counts(bootstrap_servers: str, topic: str, partitions: Iterable[int]) -> Counter[bytes]:
    """Return the last value of every key of a changelog, up to its current end."""
    wheres = [TopicPartition(topic, partition) for partition in partitions]
    with network_client() as kafka_client:
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            fetch_max_wait_ms=100,
            metrics_enabled=False,
            kafka_client=kafka_client,
        )
    store: Counter[bytes] = Counter()
    try:
        consumer.assign(wheres)
        consumer.seek_to_beginning(*wheres)
        ends: Mapping[TopicPartition, int] = consumer.end_offsets(wheres)
        while any(consumer.position(where) < ends[where] for where in wheres):
            for records in consumer.poll(timeout_ms=_POLL_MS).values():
                for record in records:
                    store[record.key] = COUNT.unpack(record.value)[0]
    finally:
        consumer.close()
    return store
