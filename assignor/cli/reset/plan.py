"""What a reset changes: names of topics, and the committed offsets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from assignor.embedding import LocalTask
from assignor.inspection import groups_below, is_internal
from assignor.topology import Topology
from encoding import TopicPartition


class Where(Enum):
    """What the new offset of a partition is taken from."""

    EARLIEST = "the first record"
    LATEST = "the end"
    OFFSET = "an offset"
    TIME = "a time"
    SHIFT = "a number of records from the committed offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetTo:
    """Where the input is read from after the reset.

    Attributes:
        where: what the offset is taken from.
        value: the offset, the time in milliseconds since 1970, or the number of records.
    """

    where: Where = Where.EARLIEST
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetTopics:
    """Topics of an application, sorted.

    Attributes:
        inputs: topics that it reads and does not own; they stay.
        internal: changelogs and repartition topics, which are deleted.
    """

    inputs: tuple[str, ...]
    internal: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for.

    Attributes:
        group: group id.
        prefix: of internal topics: the application id.
        topics: of the application.
        named: those of them that --internal-topic names.
        to: where the input is read from afterwards.
        state: state directory -> its tasks.
    """

    group: str
    prefix: str
    topics: ResetTopics
    named: Sequence[str]
    to: ResetTo
    state: Mapping[Path, Sequence[LocalTask]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMove:
    """The committed offset of a partition of an input.

    Attributes:
        partition: of the input.
        committed: the offset now; None: none.
        to: the new one.
        start: offset of the first record.
        end: offset behind the last one.
        wanted: what was asked for; outside of start and end if it is limited to them.
    """

    partition: TopicPartition
    committed: int | None
    to: int
    start: int
    end: int
    wanted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """What is reset.

    Attributes:
        moves: committed offsets.
        removed: committed offsets of internal topics.
        partitions: internal topic that exists -> number of its partitions.
        missing: internal topics that do not exist.
        unnamed: topics with names of internal topics that are not among the named ones.
        state: state directory -> its tasks.
    """

    moves: tuple[OffsetMove, ...]
    removed: frozenset[TopicPartition]
    partitions: Mapping[str, int]
    missing: tuple[str, ...]
    unnamed: tuple[str, ...]
    state: Mapping[Path, Sequence[LocalTask]]


def topics_of(topology: Topology, application_id: str) -> ResetTopics:
    """Return the topics of a topology; a changelog that is a source topic is an input.

    Raises:
        ConfigError, TopologyError: as `Topology.subtopologies`.
    """
    inputs, internal = set[str](), set[str]()
    for part in topology.subtopologies(application_id):
        repartition = {topic.name for topic in part.repartition_topics}
        inputs |= {*part.source_topics} - repartition
        internal |= repartition | ({*part.changelog_topics} - {*part.source_changelogs})
    return ResetTopics(inputs=tuple(sorted(inputs)), internal=tuple(sorted(internal)))


def unnamed_topics(
    names: Iterable[str], topics: ResetTopics, application_id: str, groups: Iterable[str]
) -> tuple[str, ...]:
    """Return topics with names of internal topics of the application that are not among its topics.

    >>> topics = ResetTopics(inputs=(), internal=("app-a-changelog",))
    >>> names = ["app-a-changelog", "app-b-changelog", "app-2-c-changelog"]
    >>> unnamed_topics(names, topics, "app", ["app", "app-2"])
    ('app-b-changelog',)

    Args:
        names: of all topics.
        topics: of the application.
        application_id: of the application.
        groups: all groups of the cluster; `app-2-x-changelog` is not of `app` if there is `app-2`.
    """
    longer = tuple(f"{group}-" for group in groups_below(groups, application_id))
    known = {*topics.inputs, *topics.internal}
    found = (name for name in names if is_internal(name, application_id) and name not in known)
    return tuple(sorted(name for name in found if not name.startswith(longer)))


def offset_moves(
    to: ResetTo,
    *,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    at_time: Mapping[TopicPartition, int],
) -> tuple[OffsetMove, ...]:
    """Return the new offsets; each is limited to the records that the partition has.

    Args:
        to: where to read from.
        starts: first offsets of all partitions of the inputs.
        ends: end offsets of the same partitions.
        committed: offsets that the group has committed; with `Where.SHIFT`, of all partitions.
        at_time: with `Where.TIME`, the first offset at that time or later; -1: there is none.
    """
    moves = []
    for each in sorted(starts):
        start, end = starts[each], ends[each]
        if to.where is Where.TIME:
            wanted = end if at_time[each] < 0 else at_time[each]
        else:
            bases = {Where.EARLIEST: start, Where.LATEST: end, Where.SHIFT: committed.get(each, 0)}
            wanted = bases.get(to.where, 0) + to.value
        moves.append(
            OffsetMove(
                partition=each,
                committed=committed.get(each),
                to=min(max(wanted, start), end),
                start=start,
                end=end,
                wanted=wanted,
            )
        )
    return tuple(moves)
