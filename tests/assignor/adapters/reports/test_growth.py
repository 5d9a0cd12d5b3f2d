"""More partitions of a source with state: the way of docs/change-topology.md gives right counts."""

import threading
from collections import Counter

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from assignor import JSON, TEXT, DictStore, Topology
from assignor.adapters.kafka_python import StreamsApplication
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.reports.logs import SESSION

pytestmark = pytest.mark.usefixtures("clock")
KEYS = "abcdefgh"
COUNTS = DictStore("counts", key=TEXT, value=JSON)


def write(broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for key in KEYS * 3:
            producer.send("old", b"x", key=key.encode())


def copy(broker, partitions):
    """Write the records of the old topic to the new one, each to the partition of its key."""
    servers, copied = broker.bootstrap_servers, 0
    with KafkaProducer(bootstrap_servers=servers) as producer:
        consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        consumer.assign([TopicPartition("old", number) for number in range(partitions)])
        while copied < 6 * len(KEYS):
            for records in consumer.poll(timeout_ms=200).values():
                for record in records:
                    producer.send("new", record.value, key=record.key)
                    copied += 1
        consumer.close()


def counted(broker, topic, records):
    """Return key -> the count of each task that has it."""
    topology = (
        Topology()
        .add_source("read", topics=[topic])
        .add_processor("count", parents=["read"])
        .add_state_store("counts", processors=["count"])
    )
    stop, counts, handled = threading.Event(), {}, Counter()

    def count(record, state):
        key = record.key.decode()
        state[COUNTS].put(key, state[COUNTS].get(key, 0) + 1)
        counts.setdefault(key, {})[record.partition] = state[COUNTS].get(key)
        handled["records"] += 1
        if handled["records"] == records:
            stop.set()

    with StreamsApplication(
        topology,
        count,
        stores=[COUNTS],
        group_id=f"of-{topic}",
        bootstrap_servers=broker.bootstrap_servers,
        **SESSION,
    ) as application:
        application.run(stop)
    return counts


def test_records_that_are_copied_to_a_topic_with_more_partitions_count_once_each():
    with running_broker(BrokerConfig(topics={"old": 1, "new": 2})) as broker:
        write(broker)
        assert counted(broker, "old", 3 * len(KEYS)) == {key: {0: 3} for key in KEYS}
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_partitions({"old": 2})
        admin.close()
        write(broker)
        copy(broker, 2)
        counts = counted(broker, "new", 6 * len(KEYS))
    assert {key: list(by_task.values()) for key, by_task in counts.items()} == {
        key: [6] for key in KEYS
    }
    assert {partition for by_task in counts.values() for partition in by_task} == {0, 1}
