"""Integration tests of confluent-kafka-python (Apache License 2.0), with this package's consumer.

From `tests/integration/consumer/` of its version 2.15. Names are kept. What is changed: a topology
is given, the broker is embedded, topics are those of the topology, waits are shorter, and the poll
interval is over when the test says so.
"""

from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition

from assignor import Topology
from tests.assignor.adapters.confluent.harness import LIMIT_S, fill, is_idle, next_error, poll_until
from tests.assignor.embedding.clusters import until

TWO = Topology().add_source("s1", topics=["words"]).add_source("s2", topics=["other"])


def test_consume_error(broker, consumer):
    fill(broker, 1)
    member = consumer({"enable.partition.eof": True})
    member.assign([TopicPartition("words", 0, OFFSET_END)])
    assert next_error(member).code() == KafkaError._PARTITION_EOF


def test_consume_error_commit(broker, consumer):
    member = consumer(
        {"session.timeout.ms": 50, "heartbeat.interval.ms": 10, "enable.auto.commit": False}
    )
    member.subscribe(["words"])
    # The broker accepts sessions from 100 ms on.
    message = member.poll(LIMIT_S)
    assert message.error() is not None
    for method in (member.commit, member.store_offsets):
        with pytest.raises(KafkaException) as ex:
            method(message)
        assert ex.value.args[0].code() == KafkaError._INVALID_ARG


def test_consumer_memberid(broker, consumer):
    member = consumer()
    assert member.memberid() is None
    fill(broker, 1)
    member.subscribe(["words"])
    message = member.poll(LIMIT_S)
    assert message.value() == b"0"
    assert isinstance(member.memberid(), str)
    assert len(member.memberid()) > 0


def test_consumer_topicpartition_metadata(broker, consumer):
    member = consumer()
    for metadata in (None, "hello world", "नमस्ते दुनिया", ""):
        given = [] if metadata is None else [metadata]
        member.commit(offsets=[TopicPartition("words", 0, 1, *given)], asynchronous=False)
        [offset] = member.committed([TopicPartition("words", 0)], timeout=100)
        assert offset.metadata == metadata
    with pytest.raises(ValueError, match="embedded null character"):
        TopicPartition("words", 0, 1, "xyz\x00abc")


def test_poll_and_consume_message_delivery_with_wakeable_pattern(broker, consumer):
    fill(broker, 3, partitions=1)
    member = consumer()
    member.subscribe(["words"])
    assert member.poll(timeout=LIMIT_S).value() == b"0"
    messages = []
    while len(messages) < 2:
        messages += member.consume(num_messages=5, timeout=2.0)
    assert [message.value() for message in messages] == [b"1", b"2"]


def test_cooperative_rebalance_1(broker, consumer):
    """A second member takes one of two partitions and gives it back; then the interval is over."""
    calls = []
    config = {"enable.auto.commit": "false"}
    member = consumer(config, topology=TWO)
    member.subscribe(
        ["words", "other"],
        on_assign=lambda _, ps: calls.append(("assign", len(ps))),
        on_revoke=lambda _, ps: calls.append(("revoke", len(ps))),
        on_lost=lambda _, ps: calls.append(("lost", len(ps))),
    )
    poll_until(lambda: calls == [("assign", 6)], member)
    second = consumer(config, topology=TWO)
    second.subscribe(["words", "other"])
    poll_until(lambda: calls == [("assign", 6), ("revoke", 3)], member, second)
    second.close()
    poll_until(lambda: calls[2:] == [("assign", 3)], member)
    until(lambda: is_idle(member) and broker.groups()["words-group"].members == ())
    assert member.poll(LIMIT_S).error().code() == KafkaError._MAX_POLL_EXCEEDED
    poll_until(lambda: calls[3:] == [("lost", 6), ("assign", 6)], member)


def test_cooperative_rebalance_2(broker, consumer):
    """Lost partitions go to on_revoke where there is no on_lost."""
    calls = SimpleNamespace(assigned=0, revoked=0)

    def on_assign(_, partitions):
        calls.assigned += 1

    def on_revoke(_, partitions):
        calls.revoked += 1

    member = consumer()
    member.subscribe(["words"], on_assign=on_assign, on_revoke=on_revoke)
    poll_until(lambda: calls.assigned, member)
    until(lambda: is_idle(member) and broker.groups()["words-group"].members == ())
    assert member.poll(LIMIT_S).error().code() == KafkaError._MAX_POLL_EXCEEDED
    assert calls.revoked == 0
    member.poll(1)
    assert calls.revoked == 1


def test_incremental_assign(broker, consumer):
    member = consumer({"enable.auto.commit": "false", "auto.offset.reset": "error"})
    fill(broker, 1)
    fill(broker, 1, topic="other")

    def next_record():
        message = member.poll(LIMIT_S)
        return message.topic(), message.partition(), message.offset()

    member.incremental_assign([TopicPartition("words", 0, OFFSET_BEGINNING)])
    first = member.poll(LIMIT_S)
    assert (first.topic(), first.offset()) == ("words", 0)
    member.commit(first, asynchronous=False)
    with pytest.raises(KafkaException) as ex:
        member.incremental_assign([TopicPartition("words", 0, OFFSET_BEGINNING)])
    assert ex.value.args[0].code() == KafkaError._CONFLICT
    member.incremental_assign([TopicPartition("other", 0, OFFSET_BEGINNING)])
    assert next_record() == ("other", 0, 0)
    member.incremental_unassign([TopicPartition("words", 0)])
    fill(broker, 1)
    assert member.poll(0.5) is None
    fill(broker, 1, topic="other")
    assert next_record() == ("other", 0, 1)
    member.incremental_assign([TopicPartition("words", 0)])
    assert next_record() == ("words", 0, 1)
    member.incremental_unassign([TopicPartition("words", 0)])
    with pytest.raises(KafkaException) as ex:
        member.incremental_unassign([TopicPartition("words", 0)])
    assert ex.value.args[0].code() == KafkaError._INVALID_ARG
    member.unassign()
