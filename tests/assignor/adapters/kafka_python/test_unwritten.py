"""A record that no broker acknowledges costs a bounded wait, and the producer that has sent it."""

import threading
from contextlib import closing, contextmanager

import pytest

from assignor.adapters.kafka_python import KafkaChangelogs, producing
from assignor.embedding import ClusterUnavailable
from assignor.embedding.state_stores import WAIT_S
from assignor.embedding.state_stores.records import COMMIT_KEY, Owner, owned_record
from encoding import TopicPartition
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.embedding.clusters import until

CHANGELOG = TopicPartition("app-counts-changelog", 0)
NOT_ENOUGH_REPLICAS = 19
RETRY = {"retry_backoff_ms": 10, "request_timeout_ms": 600, "metadata_max_age_ms": 100}


@pytest.fixture
def broker(clock):
    with running_broker(BrokerConfig(topics={CHANGELOG.topic: 1})) as running:
        yield running


@contextmanager
def opened(broker, **settings):
    with closing(KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers, **settings)) as made:
        yield made


@contextmanager
def waits(seconds):
    token = WAIT_S.set(seconds)
    try:
        yield
    finally:
        WAIT_S.reset(token)


def append(changelogs):
    return changelogs.append([owned_record(CHANGELOG, COMMIT_KEY, b"1", Owner(1, b"12345678"))])


def threads():
    return {each for each in threading.enumerate() if "network-thread" in each.name}


def test_a_producer_that_has_lost_its_id_is_replaced(broker):
    """kafka-python 3.0.12: after a retried batch has expired its producer sends nothing more."""
    with opened(broker, delivery_timeout_ms=700, **RETRY) as changelogs, waits(20.0):
        append(changelogs)
        broker.inject(Fault(api="Produce", error=NOT_ENOUGH_REPLICAS, times=10_000))
        with pytest.raises(ClusterUnavailable, match=r"Expiring 1 record|NotEnough"):
            append(changelogs)
        broker.clear_faults()
        assert append(changelogs) == [1]


@pytest.mark.parametrize("error", [45, 47, 59], ids=["sequence", "epoch", "unknown id"])
def test_a_broker_that_forgets_a_producer_costs_one_call(broker, error):
    with opened(broker) as changelogs, waits(20.0):
        append(changelogs)
        broker.inject(Fault(api="Produce", error=error))
        with pytest.raises(ClusterUnavailable, match=f"changelog {CHANGELOG.topic} cannot be"):
            append(changelogs)
        assert append(changelogs) == [1]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(api="Produce", error=NOT_ENOUGH_REPLICAS, times=10_000),
        Fault(api="Produce", delay_ms=600_000, times=10_000),
    ],
    ids=["refuses", "hangs"],
)
def test_a_write_waits_no_longer_than_the_member_may_and_leaves_nothing_behind(broker, fault):
    with opened(broker, **RETRY) as changelogs:
        append(changelogs)
        [before] = threads()
        broker.inject(fault)
        remedy = r"no broker has acknowledged a record for 1 s; look for .* min.insync.replicas"
        with waits(0.6), pytest.raises(ClusterUnavailable, match=f"{CHANGELOG.topic} .*{remedy}"):
            append(changelogs)
        until(lambda: before not in threads())
        broker.clear_faults()
        with waits(20.0):  # what hung is written when the broker goes on
            assert append(changelogs) in ([1], [2])


def test_waits_in_vain_are_longer_each_time_until_a_record_is_written(broker):
    with opened(broker, **RETRY) as changelogs:
        producer = changelogs._producer
        producer._wait_s = 0.2
        broker.inject(Fault(api="Produce", error=NOT_ENOUGH_REPLICAS, times=10_000))
        found = []
        with waits(0.6):
            for _ in range(3):
                found.append(producer._patience_s())
                with pytest.raises(ClusterUnavailable, match="no broker has acknowledged"):
                    append(changelogs)
        assert found == [0.2, 0.4, 0.6]
        broker.clear_faults()
        with waits(20.0):
            append(changelogs)
            assert producer._patience_s() == 10.0


def test_a_changelog_that_is_deleted_is_named_within_seconds(broker, monkeypatch):
    monkeypatch.setattr(producing, "_MISSING_S", 0.5)
    with opened(broker, max_block_ms=1000, **RETRY) as changelogs, waits(60.0):
        append(changelogs)
        broker.call(lambda cluster: cluster.cluster.delete_topic(CHANGELOG.topic))
        for _ in range(2):
            with pytest.raises(
                ClusterUnavailable,
                match=rf"changelog {CHANGELOG.topic} does not exist, .*CopiesKept",
            ):
                append(changelogs)
        broker.create_topic(CHANGELOG.topic)
        assert append(changelogs) == [0]


def test_a_read_waits_no_longer_than_the_member_may(broker):
    with opened(broker) as changelogs:
        append(changelogs)
        broker.inject(Fault(api="ListOffsets", delay_ms=600_000, times=10_000))
        why = "the ends of changelogs cannot be read: .*no broker has answered within 0.6 s"
        with waits(0.6), pytest.raises(ClusterUnavailable, match=why):
            changelogs.end_offsets([CHANGELOG])
        broker.clear_faults()
        with waits(20.0):
            assert changelogs.end_offsets([CHANGELOG]) == {CHANGELOG: 1}
