"""Committed offsets compared with the topics: lag of a group without members, and what is wrong.

Nothing here needs a member: after all members ended, offsets and topics are what is left of a
group. Its sources are then the topics that it committed, else those that members subscribe to; its
internal topics are known by their names.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from assignor.inspection.routing import few
from assignor.inspection.tasks import input_lag, is_changelog, is_internal
from assignor.inspection.values import NO_OFFSET, GroupInspection
from encoding import TopicPartition, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffsets:
    """A topic of a group.

    Attributes:
        topic: its name.
        partitions: how many it has; None: it does not exist, or may not be described.
        committed: partitions with a committed offset.
        lag: records between committed and end offsets; None: unknown.
    """

    topic: str
    partitions: int | None
    committed: tuple[TopicPartition, ...]
    lag: int | None


def committed_partitions(look: GroupInspection) -> list[TopicPartition]:
    """Return the partitions with a committed offset, sorted."""
    return sorted(row for row, offset in look.facts.committed.items() if offset > NO_OFFSET)


def offsets_by_topic(look: GroupInspection) -> tuple[TopicOffsets, ...]:
    """Return the topics that a group committed, and its internal topics, sorted by name."""
    committed = committed_partitions(look)
    names = {row.topic for row in committed} | look.facts.topics.keys()
    found = []
    for name in sorted(names):
        own = tuple(row for row in committed if row.topic == name)
        facts = look.facts.topics.get(name)
        found.append(
            TopicOffsets(
                topic=name,
                partitions=None if facts is None else facts.partitions,
                committed=own,
                lag=input_lag(own, look.facts),
            )
        )
    return tuple(found)


def missing_topics(look: GroupInspection) -> Iterator[str]:
    """Topics that a group without members committed, and that do not exist."""
    if look.members or not look.facts.has_topics:
        return
    names = [row.topic for row in offsets_by_topic(look) if row.partitions is None]
    if names:
        yield (
            f"topic {few(names)} does not exist, or you may not describe it, and the group has"
            " committed offsets of it: members that read it end or wait; create it, or grant"
            " DESCRIBE on it"
        )


def partition_counts(look: GroupInspection) -> Iterator[str]:
    """Internal topics of a group that no longer fit the topics that it reads.

    Kafka Streams gives a changelog as many partitions as its subtopology reads, and a repartition
    topic as many as its sources, and ends if they differ (`InternalTopicManager`). A program may
    set another number, so a difference counts only if a source has partitions that the group has
    neither committed nor given to a member.
    """
    if look.members and not look.is_streams:
        return
    rows = [row for row in offsets_by_topic(look) if row.partitions is not None]
    group_id = look.described.group_id
    internal = [row for row in rows if is_internal(row.topic, group_id)]
    subscribed = {topic for member in look.members for topic in member.topics}
    sources = [
        row for row in rows if row not in internal and (row.topic in subscribed or not look.members)
    ]
    read = [row for member in look.members for row in member.answer.partitions]
    then = "reset the application (assignor reset) before its members start"
    inputs = [row for row in rows if not is_changelog(row.topic)]
    for source in sources:
        size = source.partitions or 0
        own = (*source.committed, *(row for row in read if row.topic == source.topic))
        seen = max((row.partition + 1 for row in own), default=0)
        if seen > size:
            yield (
                f"{shown(source.topic)} has {size} partitions, and the group has read partition"
                f" {seen - 1}: it was created again with fewer;"
                f" {f'stop all members, and {then}' if look.members else then}"
            )
        odd = [
            row
            for row in internal
            if seen <= (row.partitions or 0) < size
            and not _fits(row, inputs if is_changelog(row.topic) else sources)
        ]
        if seen and odd:
            listed = few([f"{row.topic} ({row.partitions})" for row in odd])
            yield (
                f"{shown(source.topic)} has {size} partitions, and the group has read those below"
                f" {seen} only, as many as its internal topics allow: {listed}. Partitions were"
                " added: from the next rebalance on, members of Kafka Streams end with 'Existing"
                " internal topic has invalid partitions', and those of this project stop the"
                " subtopology; copy its records to a new topic, and reset the application"
                ' ("More partitions" in docs/change-topology.md)'
            )


def _fits(row: TopicOffsets, inputs: Sequence[TopicOffsets]) -> bool:
    return any(other.partitions == row.partitions for other in inputs if other is not row)


def beyond_end(look: GroupInspection) -> Iterator[str]:
    """Committed offsets of records that the partitions do not have."""
    yield from beyond_ends(
        (row, look.facts.committed[row], look.facts.end_offsets.get(row))
        for row in committed_partitions(look)
    )


def beyond_ends(rows: Iterable[tuple[TopicPartition, int | None, int | None]]) -> Iterator[str]:
    """Sentence about partitions whose committed offset is beyond their end.

    Args:
        rows: partitions with their committed and end offsets, None if unknown.
    """
    listed = [
        f"{partition.topic}-{partition.partition} ({committed}, end {end})"
        for partition, committed, end in rows
        if committed is not None and end is not None and committed > end
    ]
    if listed:
        yield (
            f"{few(listed)} has a committed offset beyond its end, and its lag counts as 0: the"
            " topic was created again or lost records; a member continues as auto.offset.reset says"
        )


def before_start(look: GroupInspection) -> Iterator[str]:
    """Records that were deleted before the group read them."""
    facts = look.facts
    lost = {
        row: facts.start_offsets[row] - facts.committed[row]
        for row in committed_partitions(look)
        if facts.committed[row] < facts.start_offsets.get(row, NO_OFFSET)
    }
    if lost:
        listed = [
            f"{row.topic}-{row.partition} (committed {facts.committed[row]}, first record"
            f" {facts.start_offsets[row]})"
            for row in lost
        ]
        yield (
            f"{few(listed)}: {sum(lost.values()):,} records were deleted before the group read"
            " them, and its lag counts them; a member continues as auto.offset.reset says"
        )


def read_by_no_member(look: GroupInspection) -> Iterator[str]:
    """Topics with committed offsets that no member subscribes to."""
    subscribed = {topic for member in look.members for topic in member.topics}
    rows = [
        row
        for row in offsets_by_topic(look)
        if row.committed and row.partitions is not None and row.topic not in subscribed
    ]
    if subscribed and rows:
        lag = sum(row.lag or 0 for row in rows)
        yield (
            f"no member reads {few([row.topic for row in rows])}, of which the group has committed"
            f" offsets: the lag of {lag:,} records there is not in the group's lag; if no program"
            " needs them, as after a move to a new topic, delete them with"
            " kafka-consumer-groups.sh --delete-offsets"
        )
