"""kafka-python's admin client and consumer as `ClusterAccess`, on an embedded broker."""

import pytest
from kafka import KafkaConsumer, KafkaProducer

from assignor.adapters.kafka_python.changelog_reader import ChangelogReader
from assignor.adapters.kafka_python.cluster_access import KafkaAdminAccess, admin_settings
from assignor.embedding import CHECKED_SETTINGS, ClusterUnavailable, InternalTopic
from encoding import TopicPartition
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.embedding.clusters import LIMIT_S, until

CHANGELOG = InternalTopic(
    name="changelog", partitions=2, configs={"cleanup.policy": "compact"}, compacted=True
)


@pytest.fixture(scope="module")
def broker(clock):
    with running_broker(BrokerConfig(topics={"words": 3, "state": 2})) as running:
        yield running


@pytest.fixture
def access(broker):
    settings = admin_settings({"bootstrap_servers": broker.bootstrap_servers})
    made = KafkaAdminAccess(settings, group_id="app")
    yield made
    made.close()


def test_settings_are_the_consumers_with_a_deadline_and_a_name_of_their_own():
    config = KafkaConsumer.DEFAULT_CONFIG | {
        "bootstrap_servers": "kafka:9093",
        "security_protocol": "SASL_SSL",
        "sasl_plain_password": "secret",
        "client_id": "words",
        "request_timeout_ms": 305_000,
    }
    settings = admin_settings(config)
    assert settings["security_protocol"] == "SASL_SSL"
    assert settings["sasl_plain_password"] == config["sasl_plain_password"]
    assert settings["client_id"] == "words-admin"
    assert settings["request_timeout_ms"] == 10_000
    assert "group_id" not in settings


def test_topics_that_exist_are_counted_and_others_are_missing(access):
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


def test_a_topic_that_cannot_be_created_is_a_sentence_and_hinders_no_other(access):
    invalid = InternalTopic(name="bad", partitions=-5, configs={}, compacted=False)
    valid = InternalTopic(name="good", partitions=1, configs={}, compacted=False)
    failed = access.create_topics([invalid, valid], replication_factor=-1)
    assert list(failed) == ["bad"]
    assert "cannot be created" in failed["bad"]
    assert access.partition_counts(["good"]) == {"good": 1}


def test_ends_and_committed_offsets(broker, access):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("words", b"x", partition=1).get(LIMIT_S)
    partitions = [TopicPartition("words", number) for number in range(3)]
    assert list(access.end_offsets(partitions).values()) == [0, 1, 0]
    assert set(access.committed(partitions).values()) == {0}


def test_policies_that_may_not_be_read_are_left_out(broker, access):
    broker.inject(Fault(api="DescribeConfigs", drop=True, times=100))
    assert access.topic_configs(["words"]) == {}
    broker.clear_faults()


@pytest.mark.usefixtures("clock")
def test_no_broker_is_one_sentence():
    settings = admin_settings({"bootstrap_servers": "127.0.0.1:1"}) | {"bootstrap_timeout_ms": 200}
    with pytest.raises(ClusterUnavailable, match=r"no broker of 127\.0\.0\.1:1 answered"):
        KafkaAdminAccess(settings, group_id="app")


class Store:
    def __init__(self, partition, position=0):
        self.changelog = TopicPartition("state", partition)
        self.position, self.values = position, []

    needs_check = False

    def check_range(self, start, end, topic_id, asked_ms):
        assert start <= self.position <= end

    def restore(self, records):
        self.values += [record.value for record in records]
        self.position = records[-1].offset + 1


def test_state_is_read_to_its_end_from_where_it_is_and_followed_from_there(broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("state", str(number).encode(), partition=number % 2)
        producer.flush()
        reader = ChangelogReader({"bootstrap_servers": broker.bootstrap_servers, "group_id": "x"})
        new, behind = Store(0), Store(1, position=3)
        assert reader.read([new, behind], to_the_end=True) == 5 + 2
        assert new.values == [b"0", b"2", b"4", b"6", b"8"]
        assert behind.values == [b"7", b"9"]
        assert reader.read([new, behind], to_the_end=True) == 0
        assert reader.read([]) == 0
        producer.send("state", b"10", partition=0).get(LIMIT_S)
        until(lambda: reader.read([new]))
        assert new.values[-1] == b"10"
        reader.close()
