"""Inspect a live group (sans-IO): what every member wrote and was assigned.

The input is the bytes of a DescribeGroups response; `assignor inspect` gets them from a cluster.
Groups of JVM members, native members, or both are read alike. Groups with another assignor are
read as far as the consumer protocol tells.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from assignor.inspection.findings import findings_of
from assignor.inspection.members import look_at_member, look_at_stock_member
from assignor.inspection.names import with_distinct_names
from assignor.inspection.routing import host_map_holes
from assignor.inspection.tasks import (
    input_lag,
    look_at_clients,
    look_at_shape,
    look_at_tasks,
    topics_of_group,
)
from assignor.inspection.topologies import look_at_topologies
from assignor.inspection.values import (
    STREAMS_PROTOCOL,
    ClusterFacts,
    DescribedGroup,
    GroupInspection,
    MemberLook,
)
from assignor.inspection.versions import look_at_leader, look_at_versions
from assignor.rebalance import GROUP_RECORD_LIMIT, RECORD_BYTES
from encoding import NO_REBALANCE, shown

_CONSUMER: Final = "consumer"
_BROKER_SIDE: Final = {
    "consumer": ("KIP-848", "kafka-consumer-groups.sh"),
    "streams": ("KIP-1071", "kafka-streams-groups.sh"),
    "share": ("KIP-932", "kafka-share-groups.sh"),
}


def group_topics(
    group: DescribedGroup, names: Iterable[str], *, others: Iterable[str] = ()
) -> set[str]:
    """Return those of `names` that belong to a group: its members' topics, its internal topics.

    Args:
        group: as described.
        names: of all topics.
        others: ids of other groups, whose internal topics are left out.
    """
    read = {
        topic
        for member in group.members
        for topic in look_at_stock_member(member, group.group_id).topics
    }
    return topics_of_group(names, group.group_id, read, others)


def is_broker_side(group: DescribedGroup) -> bool:
    """Whether the broker assigns: members of such a group have no assignor data to read."""
    return group.group_type in _BROKER_SIDE and not group.members


def is_present(group: DescribedGroup) -> bool:
    """Whether the group exists; it may be empty."""
    return group.state != "Dead" or is_broker_side(group)


def inspect_group(group: DescribedGroup, facts: ClusterFacts | None = None) -> GroupInspection:
    """Inspect a group; never raises, for any bytes.

    Args:
        group: as described by its coordinator.
        facts: topics, offsets and limits of the cluster.
    """
    facts = facts or ClusterFacts()
    is_consumer = group.protocol_type == _CONSUMER and bool(group.protocol_name)
    is_streams = is_consumer and group.protocol_name == STREAMS_PROTOCOL and bool(group.members)
    look_at = look_at_member if is_streams else look_at_stock_member
    members: tuple[MemberLook, ...] = ()
    if is_consumer:
        ordered = sorted(group.members, key=lambda member: (member.client_id, member.member_id))
        members = tuple(look_at(member, group.group_id) for member in ordered)
    if is_streams:
        members = with_distinct_names(members)
    partitions = {partition for member in members for partition in member.answer.partitions}
    look = GroupInspection(
        described=group,
        summary=_summary(group),
        is_streams=is_streams,
        members=members,
        lag=input_lag(partitions or facts.committed, facts),
        record_bytes=RECORD_BYTES + sum(member.record_bytes for member in members),
        record_limit=facts.record_limit or GROUP_RECORD_LIMIT,
        limit_known=facts.record_limit is not None,
        facts=facts,
    )
    if is_streams:
        look = _with_tasks(look)
    return replace(look, findings=findings_of(look))


def _with_tasks(look: GroupInspection) -> GroupInspection:
    """Add tasks, clients, versions and leader of a Streams group."""
    members, facts = look.members, look.facts
    shape = look_at_shape(members, facts)
    tasks = look_at_tasks(members, shape, facts)
    return replace(
        look,
        shape=shape,
        tasks=tasks,
        clients=look_at_clients(members, tasks),
        topologies=look_at_topologies(members, shape, facts),
        versions=look_at_versions(members),
        leader=look_at_leader(members),
        next_rebalance_ms=min(
            (member.answer.next_rebalance_ms for member in members), default=NO_REBALANCE
        ),
        host_map_holes=host_map_holes(members, tasks),
    )


def _summary(group: DescribedGroup) -> str:
    """One sentence about the group."""
    name = f"group {shown(group.group_id)}"
    kind, assigned_by = shown(group.protocol_type), shown(group.protocol_name)
    count = len(group.members)
    members = f"{count} member{'' if count == 1 else 's'}"
    if is_broker_side(group):
        kip, tool = _BROKER_SIDE[group.group_type]
        return (
            f"{name} is of the broker-side {group.group_type} protocol ({kip}): its members send "
            f"no assignor data; use {tool} --describe"
        )
    if group.state == "Dead":
        return f"{name} is not known to the cluster, or was deleted"
    if group.state == "Empty" or not count:
        return f"{name} has no members now; its state is {shown(group.state)}"
    if group.protocol_type != _CONSUMER:
        return f"{name} is not a consumer group; its type is {kind!r}, with {members}"
    if not group.protocol_name:
        return (
            f"{name} with {members} rebalances ({group.state}): nothing is shown until it settles"
        )
    if group.protocol_name != STREAMS_PROTOCOL:
        return (
            f"{name} with {members} is not a Streams group: its assignor is {assigned_by}, "
            "whose members report only topics and partitions"
        )
    return f"{name} with {members}, {shown(group.state)}"


def is_settling(group: DescribedGroup) -> bool:
    """Whether it is in the middle of a rebalance, so that a later look shows more."""
    return group.state in ("PreparingRebalance", "CompletingRebalance")
