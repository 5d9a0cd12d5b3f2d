"""aiokafka's admin client as `ClusterAccess`, and an embedded member on it."""

import asyncio
import threading

import pytest
from aiokafka import AIOKafkaConsumer

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.cluster_access import AIOKafkaAccess, access_settings
from assignor.embedding import CHECKED_SETTINGS, ClusterUnavailable, InternalTopic, RunningTasks
from encoding import TaskId, TopicPartition
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.rebalance.groups import TOPOLOGY

CHANGELOG = InternalTopic(
    name="changelog", partitions=2, configs={"cleanup.policy": "compact"}, compacted=True
)
LIMIT_S = 120
TASKS = {TaskId(0, number) for number in range(3)}


@pytest.fixture(scope="module")
def broker(clock):
    # A broker that creates topics on metadata requests, as Kafka does by default.
    config = BrokerConfig(topics={"words": 3, "lines": 3}, auto_create_topics=True)
    with running_broker(config) as running:
        yield running


@pytest.fixture
def access(broker):
    made = AIOKafkaAccess({"bootstrap_servers": broker.bootstrap_servers}, group_id="app")
    yield made
    made.close()


def test_looking_for_a_topic_does_not_create_it(access):
    for _ in range(2):
        assert access.partition_counts(["words", "nowhere"]) == {"words": 3}
    assert access.partition_counts([]) == {}


def test_a_topic_is_created_once_with_its_settings_however_often_it_is_asked_for(access):
    for _ in range(2):
        assert access.create_topics([CHANGELOG], replication_factor=-1) == {}
    assert access.partition_counts(["changelog"]) == {"changelog": 2}
    configs = access.topic_configs(["changelog", "words"])
    assert {topic: found["cleanup.policy"] for topic, found in configs.items()} == {
        "changelog": "compact",
        "words": "delete",
    }
    assert configs["words"]["delete.retention.ms"] == "86400000"
    assert configs["words"].keys() == set(CHECKED_SETTINGS)


def test_a_topic_that_cannot_be_created_is_a_sentence(access):
    invalid = InternalTopic(name="bad", partitions=-5, configs={}, compacted=False)
    failed = access.create_topics([invalid], replication_factor=-1)
    assert "cannot be created" in failed["bad"]


def test_ends_and_committed_offsets(access):
    partitions = [TopicPartition("words", number) for number in range(3)]
    assert dict(access.end_offsets(partitions)) == dict.fromkeys(partitions, 0)
    assert access.committed(partitions) == dict.fromkeys(partitions, 0)


@pytest.mark.usefixtures("clock")
def test_no_broker_is_one_sentence():
    with pytest.raises(ClusterUnavailable, match="answered: KafkaConnectionError"):
        AIOKafkaAccess({"bootstrap_servers": "127.0.0.1:1"}, group_id="app")


def test_connections_are_made_as_the_consumer_makes_them():
    async def settings():
        consumer = AIOKafkaConsumer(
            bootstrap_servers="kafka:9093",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username="ada",
            client_id="words",
        )
        found = access_settings(consumer)
        await consumer.stop()
        return found

    found = asyncio.run(settings())
    assert found["bootstrap_servers"] == "kafka:9093"
    assert (found["security_protocol"], found["sasl_plain_username"]) == ("SASL_PLAINTEXT", "ada")
    assert found["client_id"] == "words-admin"


def test_a_member_waits_for_its_changelog_and_then_runs_everything(broker):
    listener = RunningTasks()

    async def live():
        assignor = StreamsAssignor(TOPOLOGY, application_id="app", listener=listener)
        consumer = AIOKafkaConsumer(
            "lines",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="app",
            partition_assignment_strategy=[assignor],
        )
        assignor.attach(consumer)
        await consumer.start()
        async with asyncio.timeout(LIMIT_S):
            while listener.active != TASKS:
                await consumer.getmany(timeout_ms=100)
        await consumer.stop()
        assignor.close()

    asyncio.run(live())
    assert broker.requests("CreateTopics")
    assert not [thread for thread in threading.enumerate() if thread.name == "cluster-facts"]
