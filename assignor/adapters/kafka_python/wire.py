"""From kafka-python's values of the consumer protocol to this package's, and back."""

from collections.abc import Iterable
from typing import Any

from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor.rebalance import GroupMember, MemberAnswer, by_topic
from encoding import TopicPartition
from probing import Release

_WITH_OWNED, _WITH_RACK = 1, 3
_RACKS_SINCE = (3, 4, 0)


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


def consumer_version(release: Release) -> int:
    """Return the version of the consumer protocol that a member writes.

    A member that emulates 3.4 or later writes version 3 (KIP-881), as those releases do, so that it
    differs from older ones. All others write version 1, which has the owned partitions.
    """
    writes_racks = not release.is_native and release.order >= _RACKS_SINCE
    return _WITH_RACK if writes_racks else _WITH_OWNED


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
