"""Versions of a topology: content of subtopologies, comparison of two topologies, carried versions.

A number identifies a subtopology only within one topology. Across versions it is identified by its
*content*: source topics, repartition topics among them, and stores with their changelogs. Node
names and sinks do not count. Two subtopologies with different content are *forms* of each other if
they read a topic or write a changelog in common: only one of them may run for a partition.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from assignor.errors import TopologyError
from assignor.topology.changes.chained_forms import check_sinks
from assignor.topology.contents import content_fingerprint, exclusive_topics
from assignor.topology.subtopologies import Topology
from assignor.topology.values import CarriedTopologies, Subtopology
from probing.topologies import families


class Change(StrEnum):
    """What becomes of subtopologies from one topology to the next."""

    KEPT = "kept"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtopologyChange:
    """What becomes of a subtopology; of several where some are merged or split.

    Attributes:
        kind: kept: equal content, possibly with another number. Renamed: only names of stores or
            repartition topics differ. Changed: anything else that has a source or a changelog in
            common.
        old, new: the subtopologies in the old and in the new topology; one side is empty for added
            and removed ones.
    """

    kind: Change
    old: tuple[Subtopology, ...]
    new: tuple[Subtopology, ...]

    @property
    def kept_changelogs(self) -> tuple[str, ...]:
        """Changelogs on both sides: their state is restored from them."""
        return tuple(sorted(_changelogs(self.old) & _changelogs(self.new)))

    @property
    def new_changelogs(self) -> tuple[str, ...]:
        """Changelogs of the new side only: their state begins empty."""
        return tuple(sorted(_changelogs(self.new) - _changelogs(self.old)))

    @property
    def orphaned_changelogs(self) -> tuple[str, ...]:
        """Changelogs of the old side only: no task of the new topology reads their state."""
        return tuple(sorted(_changelogs(self.old) - _changelogs(self.new)))

    @property
    def left_repartition_topics(self) -> tuple[str, ...]:
        """Repartition topics that only the old side reads; records left in them are lost."""
        return tuple(sorted(_repartition_topics(self.old) - _repartition_topics(self.new)))

    @property
    def new_sources(self) -> tuple[str, ...]:
        """Topics from outside that only the new side reads."""
        return tuple(sorted(_external_sources(self.new) - _external_sources(self.old)))

    @property
    def former_sources(self) -> tuple[str, ...]:
        """Topics from outside that only the old side reads."""
        return tuple(sorted(_external_sources(self.old) - _external_sources(self.new)))


def compare_topologies(
    old: Sequence[Subtopology], new: Sequence[Subtopology]
) -> tuple[SubtopologyChange, ...]:
    """Return what becomes of each subtopology; by the numbers of the new one, removed ones last."""
    by_content = {content_fingerprint(part): part for part in old}
    changes = []
    open_old = list(old)
    open_new = []
    for part in new:
        same = by_content.get(content_fingerprint(part))
        if same is None or same not in open_old:
            open_new.append(part)
            continue
        open_old.remove(same)
        changes.append(SubtopologyChange(kind=Change.KEPT, old=(same,), new=(part,)))
    # Both sides are numbered from 0, so a key of the side tells them apart.
    sides = {(0, part.id): part for part in open_old} | {(1, part.id): part for part in open_new}
    topics = {key: exclusive_topics(part) for key, part in sides.items()}
    for family in families(topics):
        olds = tuple(sides[key] for key in sorted(family) if key[0] == 0)
        news = tuple(sides[key] for key in sorted(family) if key[0] == 1)
        changes.append(SubtopologyChange(kind=_kind(olds, news), old=olds, new=news))
    last = len(new)
    return tuple(
        sorted(changes, key=lambda c: (c.new[0].id if c.new else last, [p.id for p in c.old]))
    )


def _repartition_topics(parts: Iterable[Subtopology]) -> set[str]:
    return {topic.name for part in parts for topic in part.repartition_topics}


def _external_sources(parts: Sequence[Subtopology]) -> set[str]:
    return {topic for part in parts for topic in part.source_topics} - _repartition_topics(parts)


def _changelogs(parts: Iterable[Subtopology]) -> set[str]:
    return {topic for part in parts for topic in part.changelog_topics}


def _kind(old: Sequence[Subtopology], new: Sequence[Subtopology]) -> Change:
    if not old or not new:
        return Change.ADDED if new else Change.REMOVED
    if len(old) == len(new) == 1 and _shape(old[0]) == _shape(new[0]):
        return Change.RENAMED
    return Change.CHANGED


def _shape(part: Subtopology) -> tuple[object, ...]:
    """A subtopology without the names of its internal topics."""
    internal = {topic.name for topic in part.repartition_topics}
    external = tuple(topic for topic in part.source_topics if topic not in internal)
    widths = sorted(topic.partitions or 0 for topic in part.repartition_topics)
    return external, tuple(widths), part.source_changelogs, len(part.changelog_topics)


def carried_topologies(topologies: Iterable[Topology], application_id: str) -> CarriedTopologies:
    """Return what a program with these topologies can run.

    Args:
        topologies: versions of the application's topology, in any order.
        application_id: prefix of internal topics.

    Raises:
        TopologyError: there is no topology, two have the same version, one is invalid, or one task
            would have to write to other topics in one version than in another.
    """
    ordered = sorted(topologies, key=lambda topology: -topology.version)
    if not ordered:
        raise TopologyError("a program needs at least one topology; give one")
    numbers = [topology.version for topology in ordered]
    twice = sorted({n for n in numbers if numbers.count(n) > 1})
    if twice:
        raise TopologyError(
            f"two topologies have version {twice[0]}; give each its own, Topology(version=...)"
        )
    parts: dict[bytes, Subtopology] = {}
    versions: dict[bytes, list[int]] = {}
    by_version = {each.version: each.subtopologies(application_id) for each in ordered}
    check_sinks(by_version)
    for topology in ordered:
        for part in by_version[topology.version]:
            key = content_fingerprint(part)
            parts.setdefault(key, replace(part, id=len(parts)))
            versions.setdefault(key, []).append(topology.version)
    return CarriedTopologies(
        subtopologies=tuple(parts.values()),
        versions=tuple(tuple(sorted(found)) for found in versions.values()),
    )
