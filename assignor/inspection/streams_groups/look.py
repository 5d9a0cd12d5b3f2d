"""Inspect a streams group: which tasks wait to move, why it is not ready, and how far it is behind.

Offsets and lags are computed as Kafka's `kafka-streams-groups.sh` does it: over the input
partitions of the active tasks that members have, from the committed offset, or from the first
offset if none is committed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from assignor.inspection.names import client_name
from assignor.inspection.routing import few
from assignor.inspection.streams_groups.findings import changelog_counts, streams_findings
from assignor.inspection.streams_groups.values import (
    ASSIGNING,
    NOT_READY,
    DescribedStreamsGroup,
    StreamsFacts,
    StreamsGroupLook,
    StreamsOffset,
    StreamsSubtopology,
    StreamsTask,
)
from assignor.inspection.values import DescribedGroup, GroupInspection
from encoding import TopicPartition, shown

_NO_LEADER_EPOCH: Final = -1


def look_at_streams_group(
    group: DescribedStreamsGroup, facts: StreamsFacts | None = None
) -> GroupInspection:
    """Return the inspection of a streams group; its details are in `streams_group`.

    Args:
        group: as described by its coordinator.
        facts: topics and offsets of the cluster.
    """
    facts = facts or StreamsFacts()
    offsets = tuple(
        _offset(partition, facts) for partition in sorted(read_partitions(group, facts))
    )
    topics = _topics_by_subtopology(group)
    lag_by_partition = {row.partition: row.lag for row in offsets}
    known = [row.lag for row in offsets if row.lag is not None]
    look = StreamsGroupLook(
        group=group,
        facts=facts,
        client_names={
            member.member_id: client_name(member.client_id, group.group_id)
            for member in group.members
        },
        to_start={
            member.member_id: _without(member.target.active, member.current.active)
            for member in group.members
        },
        to_stop={
            member.member_id: _without(member.current.active, member.target.active)
            for member in group.members
        },
        offsets=offsets,
        lags={
            member.member_id: _sum(
                lag_by_partition.get(partition)
                for partition in _inputs(topics, member.current.active)
                if partition in lag_by_partition
            )
            for member in group.members
        },
        waits_for=tuple(_waits_for(group, facts)),
    )
    return GroupInspection(
        described=DescribedGroup(
            group_id=group.group_id,
            state=group.state,
            protocol_type="streams",
            group_type="streams",
        ),
        summary=_summary(group),
        streams_group=look,
        lag=sum(known) if known else None,
        findings=streams_findings(look),
    )


def read_partitions(group: DescribedStreamsGroup, facts: StreamsFacts) -> set[TopicPartition]:
    """Return the input partitions of the active tasks that members have; without members, all.

    A partition that its topic does not have is left out: topics of one subtopology may differ in
    size.
    """
    active = (task for member in group.members for task in member.current.active)
    sizes = facts.partitions
    if not group.members:
        topics = {topic for part in group.subtopologies or () for topic in part.input_topics}
        return {
            TopicPartition(topic, number)
            for topic in topics
            for number in range((sizes or {}).get(topic, 0))
        }
    return {
        partition
        for partition in _inputs(_topics_by_subtopology(group), active)
        if sizes is None or partition.partition < sizes.get(partition.topic, 0)
    }


def group_topics_of(group: DescribedStreamsGroup) -> set[str]:
    """Return all topics of the group's topology: sources, sinks and internal topics."""
    return {
        topic
        for part in group.subtopologies or ()
        for topic in (
            *part.input_topics,
            *part.repartition_sink_topics,
            *(row.name for row in part.state_changelog_topics),
        )
    }


def _topics_by_subtopology(group: DescribedStreamsGroup) -> dict[str, tuple[str, ...]]:
    return {part.subtopology_id: part.input_topics for part in group.subtopologies or ()}


def _inputs(
    topics: Mapping[str, Sequence[str]], tasks: Iterable[StreamsTask]
) -> Iterator[TopicPartition]:
    """Yield the partitions that tasks read: their own of each input topic."""
    for task in tasks:
        for topic in topics.get(task.subtopology, ()):
            yield TopicPartition(topic, task.partition)


def _offset(partition: TopicPartition, facts: StreamsFacts) -> StreamsOffset:
    committed, leader_epoch = facts.committed.get(partition, (None, None))
    if committed is not None and committed < 0:
        committed = leader_epoch = None
    end = facts.ends.get(partition)
    start = committed if committed is not None else facts.starts.get(partition)
    return StreamsOffset(
        partition=partition,
        committed=committed,
        leader_epoch=None if leader_epoch == _NO_LEADER_EPOCH else leader_epoch,
        end=end,
        lag=None if end is None or start is None else max(0, end - start),
    )


def _without(
    tasks: Sequence[StreamsTask], others: Sequence[StreamsTask]
) -> tuple[StreamsTask, ...]:
    left_out = set(others)
    return tuple(task for task in tasks if task not in left_out)


def _sum(lags: Iterable[int | None]) -> int | None:
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def _summary(group: DescribedStreamsGroup) -> str:
    name, count = f"group {shown(group.group_id)}", len(group.members)
    if group.state == "Dead":
        return f"{name} is not known to the cluster, or was deleted"
    protocol = "streams protocol (KIP-1071), the broker assigns tasks"
    if not count:
        return f"{name} has no members now; its state is {shown(group.state)}; {protocol}"
    return (
        f"{name} with {count} member{'' if count == 1 else 's'}, {shown(group.state)}; {protocol}"
    )


def _waits_for(group: DescribedStreamsGroup, facts: StreamsFacts) -> Iterator[str]:
    """Yield why the coordinator assigns nothing.

    Members are told the reason in their heartbeats, and DescribeGroups has none: the sentences are
    derived from the topology and from the topics of the cluster.
    """
    if group.state == ASSIGNING:
        yield (
            f"the target assignment of epoch {group.group_epoch} is not computed yet: the"
            " coordinator waits streams.initial.rebalance.delay.ms after the first member and"
            " streams.assignment.interval.ms between assignments"
        )
    if group.state != NOT_READY:
        return
    if group.topology_epoch is None:
        yield "no member has sent the topology"
        return
    parts = group.subtopologies or ()
    reasons = [reason for part in parts for reason in _missing(part, facts.partitions)]
    yield from dict.fromkeys(reasons)
    if not reasons:
        unknown = "" if facts.partitions is not None else "; the cluster's topics could not be read"
        yield (
            "every topic of the topology exists: partition counts of topics that are read together"
            " differ, or the coordinator validates the topics with the next heartbeat"
            f"{unknown}; the members' logs name the reason"
        )


def _missing(part: StreamsSubtopology, sizes: Mapping[str, int] | None) -> Iterator[str]:
    """Yield which topics of a subtopology are missing, and which source topics differ in size."""
    if sizes is None:
        return
    number = shown(part.subtopology_id)
    sources = [topic for topic in part.source_topics if topic not in sizes]
    if sources:
        yield (
            f"source topic {few(sources)} of subtopology {number} does not exist:"
            " create it; the broker creates internal topics only"
        )
    internal = [
        row.name
        for row in (*part.repartition_source_topics, *part.state_changelog_topics)
        if row.name not in sizes
    ]
    if internal:
        yield (
            f"internal topic {few(internal)} of subtopology {number} does not exist: the broker"
            " creates it once the source topics exist, if the members' user may create topics"
        )
    counts = {topic: sizes[topic] for topic in part.source_topics if topic in sizes}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{shown(topic)} {count}" for topic, count in sorted(counts.items()))
        yield (
            f"source topics of subtopology {number} have different partition counts ({listed}):"
            " they must be equal if they are joined"
        )
    yield from changelog_counts(part, sizes)
