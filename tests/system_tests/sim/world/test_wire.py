"""The bytes of the consumer protocol, compared with kafka-python's decoder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from encoding import TopicPartition
from system_tests.sim.world.wire import (
    ConsumerSubscription,
    WireError,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)

PARTITIONS = st.lists(
    st.builds(TopicPartition, st.sampled_from(["a", "böse", "t" * 40]), st.integers(0, 50)),
    unique=True,
).map(lambda found: tuple(sorted(found)))
TOPICS = st.lists(st.text(min_size=1, max_size=9), max_size=3).map(tuple)


@given(TOPICS, st.binary(max_size=99), PARTITIONS)
def test_subscriptions_come_back_as_they_were(topics, user_data, owned):
    value = ConsumerSubscription(topics, user_data, owned)
    assert read_subscription(write_subscription(value, version=1)) == value
    assert read_subscription(write_subscription(value, version=0)) == value._replace(
        owned_partitions=()
    )


@given(PARTITIONS, st.binary(max_size=99))
def test_assignments_come_back_as_they_were(partitions, user_data):
    assert read_assignment(write_assignment(partitions, user_data)) == (partitions, user_data)


@given(TOPICS, st.binary(max_size=99), PARTITIONS)
def test_a_kafka_client_reads_the_same(topics, user_data, owned):
    data = write_subscription(ConsumerSubscription(topics, user_data, owned), version=1)
    read = ConsumerProtocolSubscription.decode(data)
    assert (tuple(read.topics), bytes(read.user_data)) == (topics, user_data)
    partitions = [(e.topic, p) for e in read.owned_partitions for p in e.partitions]
    assert partitions == [tuple(p) for p in owned]
    answer = ConsumerProtocolAssignment.decode(write_assignment(owned, user_data))
    assert bytes(answer.user_data) == user_data
    assert {(p.topic, p.partition) for p in answer.partitions()} == {tuple(p) for p in owned}


@given(st.data())
def test_bytes_that_end_early_are_an_error_and_nothing_else(data):
    value = ConsumerSubscription(("t",), b"abc", (TopicPartition("t", 1),))
    whole = write_subscription(value, version=1)
    answer = write_assignment(value.owned_partitions, b"abc")
    with pytest.raises(WireError, match="bytes"):
        read_subscription(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(WireError, match="bytes"):
        read_assignment(answer[: data.draw(st.integers(0, len(answer) - 1))])
