"""The result of the background thread's query, and which subtopologies have to wait.

A subtopology whose internal topics are missing or unusable gets no tasks: a member would fail on a
missing topic, and a JVM member would retry in a busy loop. Tasks that already run had their topics,
so they continue even if a new leader has not queried the cluster yet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assignor.embedding.internal_topics import InternalTopic, internal_topics
from assignor.topology import Subtopology, SubtopologyWaits, TaskPlan
from encoding import TaskId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopicStatus:
    """An internal topic at the last query.

    Attributes:
        partitions: number of partitions.
        problem: why it cannot be used; "" if it can.
    """

    partitions: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderFacts:
    """What a leader knows about the cluster at one moment.

    Attributes:
        partition_counts: existing external source topic -> number of partitions.
        topics: internal topics that exist or could not be created, by name.
        end_offsets: changelog partition -> end offset; None: not known, or too old.
    """

    partition_counts: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, InternalTopicStatus] = field(default_factory=dict)
    end_offsets: Mapping[TopicPartition, int] | None = None


NOTHING_FOUND = LeaderFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicKnowledge:
    """What the facts mean for the tasks of an application.

    Attributes:
        waits: subtopology id -> why its tasks are not assigned.
        end_offset_sums: stateful task -> sum of its changelogs' end offsets; None: not known.
    """

    waits: Mapping[int, SubtopologyWaits]
    end_offset_sums: Mapping[TaskId, int] | None


def knowledge_of(
    facts: LeaderFacts, subtopologies: Iterable[Subtopology], plan: TaskPlan
) -> TopicKnowledge:
    """Return which subtopologies have to wait, and the end offset sums of the tasks.

    Args:
        facts: the newest facts.
        subtopologies: subtopologies of the application.
        plan: its tasks, with the required partition counts of internal topics.
    """
    parts = tuple(subtopologies)
    wanted = {topic.name: topic for topic in internal_topics(parts, plan)}
    waits = {}
    for part in parts:
        names = {*part.changelog_topics, *part.source_topics, *part.sink_topics} & wanted.keys()
        verdicts = [_verdict(wanted[name], facts.topics.get(name)) for name in sorted(names)]
        reasons = [verdict for verdict in verdicts if verdict is not None]
        if reasons:
            # A definite problem takes precedence over a topic that is not known yet.
            waits[part.id] = min(reasons, key=lambda reason: not reason.refused)
    return TopicKnowledge(waits=waits, end_offset_sums=_sums(facts, parts, plan))


def _verdict(wanted: InternalTopic, found: InternalTopicStatus | None) -> SubtopologyWaits | None:
    """Return why a subtopology with this topic has to wait; None if the topic is usable."""
    if found is None:
        return SubtopologyWaits(why=f"internal topic {wanted.name} is not known to exist yet")
    if found.problem:
        return SubtopologyWaits(why=found.problem, refused=True)
    if found.partitions != wanted.partitions:
        # The input topics have grown since the last query; the next one reports it.
        return SubtopologyWaits(
            why=f"internal topic {wanted.name} had {found.partitions} partitions at the last query "
            f"instead of the {wanted.partitions} needed now"
        )
    return None


def _sums(
    facts: LeaderFacts, subtopologies: tuple[Subtopology, ...], plan: TaskPlan
) -> dict[TaskId, int] | None:
    """Return the end offset sums of tasks whose changelog end offsets are all known."""
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
