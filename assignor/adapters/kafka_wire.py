"""Between kafka-python's values of the consumer protocol and ours."""

from typing import Any

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from assignor.answers import MemberAnswer
from assignor.leader import GroupAnswer
from assignor.observer import AnswersDecided
from assignor.subscriptions import GroupMember
from encoding import TopicPartition
from probing import Content


def group_member(member: Any) -> GroupMember:
    """Read a member as kafka-python shows it to the leader."""
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


def to_wire(answer: MemberAnswer) -> ConsumerProtocolAssignment:
    """Turn an answer into what kafka-python sends with its SyncGroup."""
    partitions: dict[str, list[int]] = {}
    for topic, partition in answer.partitions:
        partitions.setdefault(topic, []).append(partition)
    return ConsumerProtocolAssignment(
        version=1,
        assigned_partitions=sorted(partitions.items()),
        user_data=answer.user_data,
    )


def decided(answer: GroupAnswer) -> AnswersDecided:
    """Say what the leader decided, for the observer."""
    decision = answer.decision
    return AnswersDecided(
        version=decision.version,
        commonly_supported_version=decision.commonly_supported_version,
        members=len(answer.answers),
        rule=decision.rule,
        why=decision.why,
        version_probing=decision.version_probing,
        future_members=decision.future_members,
        quarantined_members=tuple(sorted(answer.quarantined)),
        warnings=answer.warnings,
        joined=answer.joined,
        next_version=decision.next_version,
        empty_members=tuple(
            one.member_id for one in decision.answers if one.content is Content.EMPTY
        ),
    )
