"""Which internal topics an application needs, and whether a topic that is there will do.

Names, counts and settings are Kafka Streams', so that Python and JVM members of one application
share them. A topic with another number of partitions is refused with both numbers: its keys lie
elsewhere, and no assignment can mend that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from assignor.topology import Subtopology, TaskPlan
from encoding import TopicPartition

_CHANGELOG = MappingProxyType({"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"})
# As Kafka Streams keeps windows: clocks of brokers and records may differ by a day.
_WINDOW_SLACK_MS = 24 * 3600 * 1000
# Records are kept until they are processed, however late that is.
_REPARTITION = MappingProxyType(
    {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": "52428800",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopicSettings:
    """How internal topics are created.

    Attributes:
        replication_factor: Kafka's `replication.factor`; -1 takes the broker's default.
        configs: settings of all internal topics, over the ones chosen here (Kafka's `topic.`).
    """

    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic that the application owns.

    Attributes:
        name: full name.
        partitions: how many it must have.
        configs: settings to create it with.
        compacted: whether it is a changelog; one that deletes by age alone would lose state.
    """

    name: str
    partitions: int
    configs: Mapping[str, str]
    compacted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFound:
    """A topic as the cluster has it; `cleanup_policy` is None where it could not be asked."""

    partitions: int
    cleanup_policy: str | None = None


class ClusterAccess(Protocol):
    """What the provider asks of a Kafka cluster; every call ends within a deadline of its own.

    Every method may raise `ClusterUnavailable`; what the cluster says of a single topic is a value.
    """

    def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Partitions of the topics that exist; the others are missing."""
        ...

    def cleanup_policies(self, topics: Sequence[str]) -> Mapping[str, str]:
        """`cleanup.policy` of existing topics, as far as it may be read."""
        ...

    def create_topics(
        self, topics: Sequence[InternalTopic], *, replication_factor: int
    ) -> Mapping[str, str]:
        """Create topics; the sentence for each that could not be. One that exists is no error."""
        ...

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """End offsets (uncommitted records too); partitions without a leader are missing."""
        ...

    def committed(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The group's committed offsets, 0 where there is none."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


def internal_topics(
    subtopologies: Iterable[Subtopology],
    plan: TaskPlan,
    settings: InternalTopicSettings | None = None,
) -> tuple[InternalTopic, ...]:
    """Every internal topic whose partition count is known by now, sorted by name.

    A source topic that serves as changelog belongs to whoever fills it, and is left out.
    """
    own = (settings or InternalTopicSettings()).configs
    found = {}
    for part in subtopologies:
        changelogs = set(part.changelog_topics) - set(part.source_changelogs)
        windows = dict(part.changelog_retention_ms)
        names = dict.fromkeys(changelogs, True) | {
            topic.name: False for topic in part.repartition_topics
        }
        for name, compacted in names.items():
            if name in plan.partition_counts:
                found[name] = InternalTopic(
                    name=name,
                    partitions=plan.partition_counts[name],
                    configs={
                        **(_CHANGELOG if compacted else _REPARTITION),
                        **_windowed(windows.get(name)),
                        **own,
                    },
                    compacted=compacted,
                )
    return tuple(found[name] for name in sorted(found))


def _windowed(retention_ms: int | None) -> dict[str, str]:
    """Settings of the changelog of a windowed store: old windows go by age."""
    if retention_ms is None:
        return {}
    kept_ms = retention_ms + _WINDOW_SLACK_MS
    return {"cleanup.policy": "compact,delete", "retention.ms": str(kept_ms)}


def topic_problem(wanted: InternalTopic, found: TopicFound) -> str | None:
    """Why a topic that exists cannot be used, or None.

    >>> topic = InternalTopic(name="app-s-changelog", partitions=4, configs={}, compacted=True)
    >>> topic_problem(topic, TopicFound(partitions=3))[:58]
    'internal topic app-s-changelog has 3 partitions, 4 are nee'
    """
    if found.partitions != wanted.partitions:
        return (
            f"internal topic {wanted.name} has {found.partitions} partitions, {wanted.partitions} "
            "are needed: its input topics were changed, or another application owns it; stop the "
            "application and delete the topic (its state is rebuilt), or choose another "
            "application id"
        )
    policies = {p.strip() for p in (found.cleanup_policy or "").split(",")} - {""}
    if policies and wanted.compacted and "compact" not in policies:
        return (
            f"changelog {wanted.name} has cleanup.policy={found.cleanup_policy}, which loses state "
            "with time; set cleanup.policy=compact on it"
        )
    if policies and not wanted.compacted and "compact" in policies:
        return (
            f"repartition topic {wanted.name} has cleanup.policy={found.cleanup_policy}, which "
            "drops records that are not processed yet; set cleanup.policy=delete on it"
        )
    return None
