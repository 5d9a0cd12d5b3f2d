"""Metadata of members that the client of a leader cannot decode."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignor.adapters.aiokafka.coordinator import CoordinatorHooks
from assignor.adapters.aiokafka.port import AiokafkaPort
from assignor.adapters.kafka_python.port import make_readable
from assignor.adapters.membership import readable_metadata
from assignor.rebalance import read_consumer_subscription, safe_consumer_subscription
from tests.assignor.adapters.members import consumer_with

VALID = bytes(
    ConsumerProtocolSubscription(
        version=1, topics=["lines"], user_data=b"abc", owned_partitions=[]
    ).encode(version=1)
)
HOSTILE = [
    b"",
    b"\0",
    b"\0\1",
    b"\0\1\xff\xff\xff\xff",
    b"\0\0\0\0\0\1\0\2\xff\xfe\0\0\0\0",
    VALID[:-3],
]


@pytest.mark.parametrize("data", HOSTILE)
def test_bytes_that_cannot_be_decoded_are_a_subscription_without_user_data(data):
    for client in (ConsumerProtocolSubscription, ConsumerProtocolMemberMetadata):
        read = read_consumer_subscription(readable_metadata(data, client.decode))
        assert (read.topics, read.user_data) == ((), b"")


def test_a_topic_that_no_broker_takes_is_left_out_and_nothing_else():
    read = read_consumer_subscription(VALID)
    topic = b"bad/ a!"
    listed = (2).to_bytes(4) + len(topic).to_bytes(2) + topic
    data = VALID[:2] + listed + VALID[6:]
    assert safe_consumer_subscription(data) == VALID
    assert safe_consumer_subscription(VALID) is VALID
    assert read.topics == ("lines",)


@given(st.binary(max_size=60) | st.binary(max_size=20).map(lambda tail: VALID[:20] + tail))
def test_whatever_a_member_writes_both_clients_decode_it(data):
    for client in (ConsumerProtocolSubscription, ConsumerProtocolMemberMetadata):
        client.decode(readable_metadata(data, client.decode))


@pytest.mark.parametrize("data", HOSTILE)
def test_kafka_pythons_leader_sees_decodable_metadata_only(data):
    seen = []

    def perform(leader_id, protocol, members):
        seen.extend(ConsumerProtocolSubscription.decode(member.metadata) for member in members)
        return {}

    coordinator = SimpleNamespace(_perform_assignment=perform)
    make_readable(coordinator)
    members = [
        SimpleNamespace(member_id=name, metadata=blob)
        for name, blob in zip("ax", (VALID, data), strict=True)
    ]
    coordinator._perform_assignment("a", "stream", members)
    assert [list(metadata.topics) for metadata in seen] == [["lines"], []]


@pytest.mark.parametrize("data", HOSTILE)
def test_aiokafkas_leader_sees_decodable_metadata_only(data):
    seen = []

    async def perform(response):
        seen.extend(
            ConsumerProtocolMemberMetadata.decode(member[-1]) for member in response.members
        )

    coordinator = SimpleNamespace(_perform_assignment=perform, _on_join_complete=None)
    hooks = CoordinatorHooks(AiokafkaPort(consumer_with(coordinator)), print, print)
    hooks.install()
    response = SimpleNamespace(members=[("a", None, VALID), ("x", None, data)])
    asyncio.run(coordinator._perform_assignment(response))
    assert [list(metadata.subscription) for metadata in seen] == [["lines"], []]
    assert sorted(hooks._joined) == ["a", "x"]
