"""From kafka-python's values of the consumer protocol to this package's, and back."""

from collections.abc import Iterable
from typing import Any

from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor.rebalance import GroupMember, MemberAnswer, by_topic
from encoding import TopicPartition


def group_member(member: Any) -> GroupMember:
    """Return a member as kafka-python passes it to the leader."""
    metadata = member.metadata
    owned = getattr(metadata, "owned_partitions", None) or []
    return GroupMember(
        member_id=member.member_id,
        user_data=bytes(metadata.user_data or b""),
        owned_partitions=tuple(
            TopicPartition(entry.topic, partition)
            for entry in owned
            for partition in entry.partitions
        ),
    )


def owned_entries(partitions: Iterable[TopicPartition]) -> list[Any]:
    """Return what a member owns, as its subscription lists it."""
    return [
        ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in by_topic(partitions)
    ]


def to_wire(answer: MemberAnswer) -> ConsumerProtocolAssignment:
    """Return an answer as kafka-python sends it with its SyncGroup."""
    return ConsumerProtocolAssignment(
        version=1,
        assigned_partitions=by_topic(answer.partitions),
        user_data=answer.user_data,
    )
