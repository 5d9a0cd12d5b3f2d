"""What a topology consists of: subtopologies and their internal topics, as plain values."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

HIGHEST_VERSION = 2**31 - 1
"""Of a topology."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Return whether a text is a valid Kafka topic name or `group.instance.id` (same rules)."""
    return _TOPIC_NAME.fullmatch(text) is not None and text not in {".", ".."}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepartitionTopic:
    """A topic that the application writes and reads again to change the key of its records.

    Attributes:
        name: full name, `<application id>-<name>-repartition`.
        partitions: partition count as configured; None: the largest upstream partition count.
    """

    name: str
    partitions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """A connected component of the topology; it has one task per partition number.

    Attributes:
        id: number of the subtopology, from 0.
        nodes: names of its nodes, sorted.
        source_topics: topics that it reads, sorted, including repartition topics.
        sink_topics: topics that it writes, sorted, including repartition topics.
        repartition_topics: the source topics that are repartition topics.
        changelog_topics: changelogs of its state stores, sorted; if there are any, it is stateful.
        source_changelogs: changelogs that are also source topics (optimised tables).
        copartition_groups: groups of source topics that must have equal partition counts.
        changelog_retention_ms: (changelog, milliseconds) of windowed stores, sorted.
    """

    id: int
    nodes: tuple[str, ...]
    source_topics: tuple[str, ...]
    sink_topics: tuple[str, ...] = ()
    repartition_topics: tuple[RepartitionTopic, ...] = ()
    changelog_topics: tuple[str, ...] = ()
    source_changelogs: tuple[str, ...] = ()
    copartition_groups: tuple[tuple[str, ...], ...] = ()
    # Excluded from repr, and so from fingerprints: the retention does not affect assignments.
    changelog_retention_ms: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have a changelog; as in Kafka, unlogged stores do not count."""
        return bool(self.changelog_topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedTopologies:
    """The subtopologies that a program can run, of all versions of the topology that it carries.

    Attributes:
        subtopologies: numbered from 0: those of the highest version with its numbers, then what
            only lower versions contain.
        versions: of each subtopology, the versions that contain it, ascending.
    """

    subtopologies: tuple[Subtopology, ...]
    versions: tuple[tuple[int, ...], ...]

    @property
    def all_versions(self) -> tuple[int, ...]:
        """All versions of the topology that the program carries, ascending."""
        return tuple(sorted({version for versions in self.versions for version in versions}))

    @property
    def is_plain(self) -> bool:
        """Whether the program carries version 1 alone, like every program without versions."""
        return all(versions == (1,) for versions in self.versions)


def plain(subtopologies: Iterable[Subtopology], version: int = 1) -> CarriedTopologies:
    """Return what a program with one topology carries."""
    parts = tuple(subtopologies)
    return CarriedTopologies(subtopologies=parts, versions=((version,),) * len(parts))
