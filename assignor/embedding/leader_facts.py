"""What the background thread found out, as a value, and what the leader makes of it.

A subtopology whose internal topics are not there as they should be gets no tasks: a member would
run into a topic that is not there, and a JVM member spins on it. Where its tasks ran already the
topics were there, so tasks go on although a new leader has not looked yet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assignor.embedding.internal_topics import InternalTopic, internal_topics
from assignor.topology import Subtopology, SubtopologyWaits, TaskPlan
from encoding import TaskId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """An internal topic as last looked at.

    Attributes:
        partitions: how many it has.
        problem: why it cannot be used, or "".
    """

    partitions: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderFacts:
    """What a leader knows of the cluster at one moment.

    Attributes:
        partition_counts: of the external source topics that exist.
        topics: internal topics that exist, or that could not be created.
        end_offsets: where each changelog ends; None: not known, or too old to go by.
    """

    partition_counts: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    end_offsets: Mapping[TopicPartition, int] | None = None


NOTHING_FOUND = LeaderFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicKnowledge:
    """What the leader takes from the facts.

    Attributes:
        waits: subtopology id -> why its tasks are not handed out.
        end_offset_sums: stateful task -> sum of the ends of its changelogs, None: not known.
    """

    waits: Mapping[int, SubtopologyWaits]
    end_offset_sums: Mapping[TaskId, int] | None


def knowledge_of(
    facts: LeaderFacts, subtopologies: Iterable[Subtopology], plan: TaskPlan
) -> TopicKnowledge:
    """What holds for these tasks.

    Args:
        facts: the newest there are.
        subtopologies: of the application.
        plan: its tasks, with the partition counts that internal topics must have.
    """
    parts = tuple(subtopologies)
    wanted = {topic.name: topic for topic in internal_topics(parts, plan)}
    waits = {}
    for part in parts:
        names = {*part.changelog_topics, *part.source_topics, *part.sink_topics} & wanted.keys()
        verdicts = [_verdict(wanted[name], facts.topics.get(name)) for name in sorted(names)]
        told = [one for one in verdicts if one is not None]
        if told:
            # What is wrong for certain goes before what is merely not known.
            waits[part.id] = min(told, key=lambda one: not one.refused)
    return TopicKnowledge(waits=waits, end_offset_sums=_sums(facts, parts, plan))


def _verdict(wanted: InternalTopic, found: TopicState | None) -> SubtopologyWaits | None:
    """Why a subtopology with this topic waits, or None."""
    if found is None:
        return SubtopologyWaits(why=f"internal topic {wanted.name} is not known to exist yet")
    if found.problem:
        return SubtopologyWaits(why=found.problem, refused=True)
    if found.partitions != wanted.partitions:
        # The input topics grew since: the thread looks again and says so in both numbers.
        return SubtopologyWaits(
            why=f"internal topic {wanted.name} had {found.partitions} partitions when last looked "
            f"at, {wanted.partitions} are needed now"
        )
    return None


def _sums(
    facts: LeaderFacts, subtopologies: tuple[Subtopology, ...], plan: TaskPlan
) -> dict[TaskId, int] | None:
    """End offset sums of the tasks of which all changelog ends are known."""
    if facts.end_offsets is None:
        return None
    changelogs = {part.id: part.changelog_topics for part in subtopologies}
    sums = {}
    for task in plan.stateful_tasks:
        ends = [
            facts.end_offsets.get(TopicPartition(topic, task.partition))
            for topic in changelogs[task.subtopology]
            if task.partition < plan.partition_counts.get(topic, 0)
        ]
        known = [end for end in ends if end is not None]
        if len(known) == len(ends):
            sums[task] = sum(known)
    return sums
