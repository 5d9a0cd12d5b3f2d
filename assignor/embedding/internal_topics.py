"""The internal topics that an application needs, and checks of existing topics.

Names, partition counts and settings are Kafka Streams', so that Python and JVM members of one
application share the topics. A topic with a wrong number of partitions is rejected, because its
keys are in other partitions; the message has both numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from assignor.config import refused
from assignor.errors import ConfigError
from assignor.topology import Subtopology, TaskPlan
from encoding import TopicPartition, shown

_CHANGELOG = MappingProxyType({"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"})
# Kafka Streams' windowstore.changelog.additional.retention.ms: one day.
_WINDOW_SLACK_MS = 24 * 3600 * 1000
DELETE_RETENTION_MS: Final = 24 * 3600 * 1000
"""Kafka's default of `delete.retention.ms`."""

_POLICY: Final = "cleanup.policy"
_DELETE_RETENTION: Final = "delete.retention.ms"
_MAX_BYTES: Final = "max.message.bytes"
CHECKED_SETTINGS: Final = (_POLICY, _DELETE_RETENTION, _MAX_BYTES)
"""Settings of internal topics that are compared with what state stores need."""

_LEAST_DELETE_RETENTION_MS: Final = 3600 * 1000
_MOST_REPLICAS: Final = 2**15 - 1  # an int16 in CreateTopics
_MOST_MS: Final = 2**63 - 1  # Java's long
# Records are kept until the application deletes them after processing.
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
        replication_factor: Kafka's `replication.factor`; -1: the broker's default.
        configs: settings of all internal topics; they override the defaults (Kafka's `topic.`).

    Raises:
        ConfigError: a value that no broker takes, a clean-up policy without `compact`, or a
            `delete.retention.ms` so low that deletions would be missed.
    """

    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the settings."""
        factor = self.replication_factor
        if type(factor) is not int or not (factor == -1 or 1 <= factor <= _MOST_REPLICAS):
            wanted = "the number of copies of each internal topic, or -1 for the brokers' default"
            raise refused("replication_factor", factor, wanted)
        if not isinstance(self.configs, Mapping) or not all(
            isinstance(each, str) for pair in self.configs.items() for each in pair
        ):
            example = '{"min.insync.replicas": "2"}'
            wanted = f"settings of topics and their values, all as strings, such as {example}"
            raise refused("configs", self.configs, wanted)
        policy = self.configs.get(_POLICY, "compact")
        if "compact" not in map(str.strip, policy.split(",")):
            raise ConfigError(
                f"{_POLICY}={shown(policy, limit=80)}: changelogs must be compacted; leave it out, "
                'or give "compact,delete"'
            )
        given = self.configs.get(_DELETE_RETENTION, str(_LEAST_DELETE_RETENTION_MS))
        is_number = given.isascii() and given.isdecimal() and len(given) <= len(str(_MOST_MS))
        if not is_number or not _LEAST_DELETE_RETENTION_MS <= int(given) <= _MOST_MS:
            raise ConfigError(
                f"{_DELETE_RETENTION}={shown(given, limit=80)}: brokers would remove deletions "
                "before every copy has read them, and the copies would keep deleted keys; give a "
                f"number of at least {_LEAST_DELETE_RETENTION_MS} (an hour)"
            )

    @property
    def expires(self) -> bool:
        """Whether all changelogs delete old records: their clean-up policy includes `delete`."""
        return "delete" in self.configs.get(_POLICY, "")

    @property
    def delete_retention_ms(self) -> int:
        """How long changelogs keep tombstones, as configured, else by Kafka's default: a day."""
        return int(self.configs.get(_DELETE_RETENTION, DELETE_RETENTION_MS))


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic that the application owns.

    Attributes:
        name: full name.
        partitions: required number of partitions.
        configs: settings to create it with.
        compacted: whether it is a changelog, whose cleanup policy must include `compact`.
    """

    name: str
    partitions: int
    configs: Mapping[str, str]
    compacted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTopic:
    """An existing topic.

    Attributes:
        partitions: number of partitions.
        configs: its `CHECKED_SETTINGS`, as far as they could be read.
    """

    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)


class ClusterAccess(Protocol):
    """Requests of `InternalTopicManager` to a Kafka cluster; every call has its own deadline.

    Every method may raise `ClusterUnavailable`. An error of a single topic is part of the result.
    """

    def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Return existing topic -> number of partitions; missing topics are left out."""
        ...

    def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return topic -> its `CHECKED_SETTINGS`, for topics whose configuration may be read."""
        ...

    def create_topics(
        self, topics: Sequence[InternalTopic], *, replication_factor: int
    ) -> Mapping[str, str]:
        """Create topics; return topic -> error message. An existing topic is not an error."""
        ...

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return end offsets (isolation level read_uncommitted), without leaderless partitions."""
        ...

    def committed(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the group's committed offsets; 0 for a partition without one."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


def internal_topics(
    subtopologies: Iterable[Subtopology],
    plan: TaskPlan,
    settings: InternalTopicSettings | None = None,
) -> tuple[InternalTopic, ...]:
    """Return the internal topics whose partition count is known, sorted by name.

    A source topic that serves as a changelog is not an internal topic and is left out.
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
    """Return settings for a windowed store's changelog: old windows are deleted by age."""
    if retention_ms is None:
        return {}
    kept_ms = retention_ms + _WINDOW_SLACK_MS
    return {"cleanup.policy": "compact,delete", "retention.ms": str(kept_ms)}


def topic_problem(wanted: InternalTopic, found: ExistingTopic) -> str | None:
    """Return why an existing topic cannot be used; None if it can.

    >>> topic = InternalTopic(name="app-s-changelog", partitions=4, configs={}, compacted=True)
    >>> topic_problem(topic, ExistingTopic(partitions=3))[:58]
    'internal topic app-s-changelog has 3 partitions instead of'
    """
    if found.partitions != wanted.partitions:
        more = f"add partitions to it, up to {wanted.partitions}, and"
        anew = f"delete this topic alone, create it with {wanted.partitions} partitions, and"
        return (
            f"internal topic {wanted.name} has {found.partitions} partitions instead of "
            f"{wanted.partitions}: its input topics were changed, or another application owns it, "
            "or it was deleted and made anew; if state directories have files that end in .kept, "
            f"they have the only copies: {more if found.partitions < wanted.partitions else anew} "
            "run assignor write-back; else "
            'reset the application (stop it, copy its input to new topics: "More partitions" in '
            "docs/change-topology.md, and run assignor reset), or choose another application id"
        )
    policy = found.configs.get(_POLICY, "")
    policies = {p.strip() for p in policy.split(",")} - {""}
    if policies and wanted.compacted and "compact" not in policies:
        needed = wanted.configs.get(_POLICY, "compact")
        return (
            f"changelog {wanted.name} has cleanup.policy={policy}, which deletes state that is "
            f"still needed; set cleanup.policy={needed}: {_alter(wanted.name, _POLICY, needed)}"
        )
    if policies and not wanted.compacted and "compact" in policies:
        return (
            f"repartition topic {wanted.name} has cleanup.policy={policy}, which drops records "
            "that are not processed yet; set cleanup.policy=delete: "
            f"{_alter(wanted.name, _POLICY, 'delete')}"
        )
    return None


def setting_warnings(
    subtopologies: Iterable[Subtopology],
    found: Mapping[str, ExistingTopic],
    settings: InternalTopicSettings,
) -> tuple[str, ...]:
    """Return what existing changelogs lack that does not keep tasks from running, sorted.

    A changelog must keep deletions for as long as copies rely on it (`delete_retention_ms`), and
    the changelogs of one task should take records of one size, because each gets every commit.

    Args:
        subtopologies: of the application.
        found: the existing internal topics, by name.
        settings: as members create topics, and rebuild copies.
    """
    warnings = set()
    for part in subtopologies:
        changelogs = sorted(set(part.changelog_topics) - set(part.source_changelogs))
        for name in changelogs:
            kept_ms = _number(found.get(name), _DELETE_RETENTION)
            if kept_ms is not None and kept_ms < settings.delete_retention_ms:
                warnings.add(_short_retention(name, kept_ms, settings.delete_retention_ms))
        limits = {name: _number(found.get(name), _MAX_BYTES) for name in changelogs}
        known = {name: limit for name, limit in limits.items() if limit is not None}
        if len(set(known.values())) > 1:
            lowest, highest = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
            warnings.add(
                f"changelog {lowest} has max.message.bytes={known[lowest]}, and {highest} of the "
                f"same tasks has {known[highest]}: every commit is written to both, so the lower "
                "one limits what an input record may write; set "
                f"max.message.bytes={known[highest]}: "
                f"{_alter(lowest, _MAX_BYTES, str(known[highest]))}"
            )
    return tuple(sorted(warnings))


def _short_retention(name: str, kept_ms: int, needed_ms: int) -> str:
    return (
        f"changelog {name} has delete.retention.ms={kept_ms}, and copies that are behind are "
        f"rebuilt only after half of {needed_ms} ms: until then a copy may keep keys that were "
        f"deleted; set delete.retention.ms={needed_ms}: "
        f"{_alter(name, _DELETE_RETENTION, str(needed_ms))}; or give the topic's value in "
        "internal_topics=InternalTopicSettings(configs=...), an hour at least"
    )


def _number(topic: ExistingTopic | None, setting: str) -> int | None:
    value = "" if topic is None else topic.configs.get(setting, "")
    return int(value) if value.isdecimal() else None


def _alter(topic: str, setting: str, value: str) -> str:
    """Return the command that gives a topic a setting."""
    listed = f"[{value}]" if "," in value else value
    return (
        "kafka-configs --bootstrap-server HOST:PORT --alter --entity-type topics "
        f"--entity-name {topic} --add-config {setting}={listed}"
    )
