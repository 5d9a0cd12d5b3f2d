"""The decoder of the consumer protocol, compared with kafka-python's classes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor.rebalance.consumer_protocol import (
    read_consumer_assignment,
    read_consumer_subscription,
)
from encoding import DecodeError, TopicPartition
from tests.assignor.inspection.described_groups import assignment_bytes, captured, metadata_bytes

TOPICS = st.text(min_size=1, max_size=8)
NUMBERS = st.integers(0, 2**31 - 1)
PARTITIONS = st.dictionaries(TOPICS, st.lists(NUMBERS, max_size=4), max_size=3)


def flat(by_topic):
    return tuple(sorted(TopicPartition(t, n) for t, numbers in by_topic.items() for n in numbers))


FIELDS = st.fixed_dictionaries(
    {
        "topics": st.lists(TOPICS, max_size=4),
        "user_data": st.none() | st.binary(max_size=40),
        "generation_id": st.integers(-1, 2**31 - 1),
        "rack_id": st.none() | st.text(max_size=5),
    }
)


@given(version=st.integers(0, 3), subscription_fields=FIELDS, owned=PARTITIONS)
def test_what_kafka_python_writes_is_read(version, subscription_fields, owned):
    row = ConsumerProtocolSubscription.TopicPartition
    data = ConsumerProtocolSubscription(
        version=version,
        owned_partitions=[row(topic=t, partitions=n) for t, n in owned.items()],
        **subscription_fields,
    ).encode()
    read = read_consumer_subscription(data)
    assert (read.version, read.topics) == (version, tuple(subscription_fields["topics"]))
    assert read.user_data == (subscription_fields["user_data"] or b"")
    assert tuple(sorted(read.owned_partitions)) == (flat(owned) if version >= 1 else ())
    assert read.generation == (subscription_fields["generation_id"] if version >= 2 else -1)
    assert read.rack == ((subscription_fields["rack_id"] or None) if version >= 3 else None)


@given(version=st.integers(0, 3), given=PARTITIONS, user_data=st.binary(max_size=40))
def test_answers_that_kafka_python_writes_are_read(version, given, user_data):
    row = ConsumerProtocolAssignment.TopicPartition
    data = ConsumerProtocolAssignment(
        version=version,
        assigned_partitions=[row(topic=t, partitions=n) for t, n in given.items()],
        user_data=user_data,
    ).encode()
    read = read_consumer_assignment(data)
    assert (read.version, read.partitions, read.user_data) == (version, flat(given), user_data)


def test_real_members_are_read_to_their_last_byte_and_a_later_version_as_3():
    group, _ = captured("pinned-2.3.1")
    versions = [read_consumer_subscription(member.metadata).version for member in group.members]
    assert sorted(versions) == [0, 1, 3, 3]
    later = metadata_bytes(b"x", version=4, rack="r") + b"whatever comes then"
    assert read_consumer_subscription(later).rack == "r"


def test_bytes_that_end_early_are_a_decode_error_at_every_length():
    owned = [TopicPartition("in", 1)]
    subscription = metadata_bytes(b"user", owned=owned, generation=7, rack="rack")
    answer = assignment_bytes(b"user", owned)
    for data, read in (
        (subscription, read_consumer_subscription),
        (answer, read_consumer_assignment),
    ):
        read(data)
        for length in range(len(data)):
            with pytest.raises(DecodeError):
                read(data[:length])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("0000 7fffffff", "claims 2147483647 topics"),
        ("0000 ffffffff", "claims -1 topics"),
        ("0000 00000003 0000 0000", "claims 3 topics"),
        ("0000 00000001 fffe", "topic has length -2"),
        ("0000 00000001 0001 ff", "topic is no UTF-8"),
        ("0000 00000000 fffffffe", "user data has length -2"),
    ],
)
def test_impossible_counts_are_refused_before_memory_is_reserved(data, sentence):
    with pytest.raises(DecodeError, match=sentence):
        read_consumer_subscription(bytes.fromhex(data))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_decode_error(data):
    for read in (read_consumer_subscription, read_consumer_assignment):
        try:
            read(data)
        except DecodeError as error:
            assert str(len(data)) in str(error)  # noqa: PT017 either outcome is fine
