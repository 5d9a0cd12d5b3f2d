"""Source topics that get more partitions while a group runs."""

import time

import pytest
from kafka.admin import KafkaAdminClient

from assignor import Topology
from assignor.adapters.kafka_python import streams_consumer
from assignor.embedding import RunningTasks
from encoding import TaskId
from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

LIMIT_S = 180
TOPOLOGY = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("upper", parents=["lines"])
    .add_source("orders", topics=["orders"])
    .add_processor("count", parents=["orders"])
    .add_state_store("counts", processors=["count"])
)
STATELESS, STATEFUL = 0, 1


def tasks(subtopology, count):
    return [TaskId(subtopology, partition) for partition in range(count)]


def polled_until(consumer, holds, what):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, f"not {what} in {LIMIT_S} s"
        consumer.poll(timeout_ms=50)


def test_stateless_tasks_appear_and_stateful_ones_wait_for_their_changelog():
    sentences = []
    with running_broker(BrokerConfig(topics={"lines": 2, "orders": 2})) as broker:
        consumer = streams_consumer(
            TOPOLOGY,
            group_id="app",
            bootstrap_servers=broker.bootstrap_servers,
            listener=RunningTasks(tell=sentences.append),
            metadata_max_age_ms=200,
        )
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        try:
            running = consumer.assignor
            both = tasks(STATELESS, 2) + tasks(STATEFUL, 2)
            polled_until(consumer, lambda: sorted(running.tasks.active) == both, "assigned")
            admin.create_partitions({"lines": 3, "orders": 3})
            grown = tasks(STATELESS, 3)
            polled_until(consumer, lambda: sorted(running.tasks.active) == grown, "assigned anew")
            [sentence] = {s for s in sentences if "app-counts-changelog" in s}
            assert "has 2 partitions instead of 3" in sentence
            assert "reset the application" in sentence
            # The reset: the changelog goes, and is created again with the new number of partitions.
            admin.delete_topics(["app-counts-changelog"])
            everything = grown + tasks(STATEFUL, 3)
            polled_until(consumer, lambda: sorted(running.tasks.active) == everything, "reset")
        finally:
            admin.close()
            consumer.close(autocommit=False)
