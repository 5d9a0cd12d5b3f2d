"""What a member can run, between its topology and the rows of its subscription."""

from functools import lru_cache
from hashlib import blake2b

from assignor.topology import (
    HIGHEST_VERSION,
    CarriedTopologies,
    RepartitionTopic,
    Subtopology,
    content_fingerprint,
    is_topic_name,
)
from encoding.native import SubtopologyRow

MOST_SUBTOPOLOGIES = 256
"""Subtopologies that a leader reads from one member."""

MOST_VERSIONS = 64
"""Versions of the topology that a leader reads from one member."""

_MOST_PARTITIONS = 2**20
_MOST_RETENTION_MS = 2**53


@lru_cache(maxsize=64)  # every member of a process has the same topology
def program_fingerprint(carried: CarriedTopologies) -> bytes:
    """Return 8 bytes that are equal for equal programs; empty without a topology.

    Of a program with one version of a topology they are the same in each version.
    """
    if not carried.subtopologies:
        return b""
    text = "\n".join(map(repr, carried.subtopologies)).encode()
    if len(carried.all_versions) > 1:
        text = blake2b(text, digest_size=8).digest() + repr(carried.versions).encode()
    return blake2b(text, digest_size=8).digest()


@lru_cache(maxsize=64)
def rows_of(carried: CarriedTopologies) -> tuple[SubtopologyRow, ...]:
    """Return the rows that describe a program's subtopologies, in its numbering."""
    return tuple(
        SubtopologyRow(
            versions=versions,
            source_topics=part.source_topics,
            sink_topics=part.sink_topics,
            repartition_topics=tuple((t.name, t.partitions or 0) for t in part.repartition_topics),
            changelog_topics=part.changelog_topics,
            copartition_groups=part.copartition_groups,
            changelog_retention_ms=part.changelog_retention_ms,
        )
        for part, versions in zip(carried.subtopologies, carried.versions, strict=True)
    )


@lru_cache(maxsize=256)  # members of a group send equal rows
def carried_from(rows: tuple[SubtopologyRow, ...]) -> CarriedTopologies | None:
    """Return what a peer describes; None if no program can have such subtopologies."""
    if not rows or len(rows) > MOST_SUBTOPOLOGIES or not all(map(_is_possible, rows)):
        return None
    if len({version for row in rows for version in row.versions}) > MOST_VERSIONS:
        return None
    parts = tuple(_subtopology(number, row) for number, row in enumerate(rows))
    if len({content_fingerprint(part) for part in parts}) != len(parts):
        return None
    return CarriedTopologies(
        subtopologies=parts, versions=tuple(tuple(sorted(set(row.versions))) for row in rows)
    )


def _subtopology(number: int, row: SubtopologyRow) -> Subtopology:
    return Subtopology(
        id=number,
        nodes=(),
        source_topics=row.source_topics,
        sink_topics=row.sink_topics,
        repartition_topics=tuple(
            RepartitionTopic(name=name, partitions=count or None)
            for name, count in row.repartition_topics
        ),
        changelog_topics=row.changelog_topics,
        source_changelogs=tuple(sorted({*row.changelog_topics} & {*row.source_topics})),
        copartition_groups=row.copartition_groups,
        changelog_retention_ms=row.changelog_retention_ms,
    )


def _is_possible(row: SubtopologyRow) -> bool:
    """Whether a program can have such a subtopology: valid names, sorted, of its own topics."""
    internal = tuple(name for name, _ in row.repartition_topics)
    retained = {name for name, _ in row.changelog_retention_ms}
    grouped = {name for group in row.copartition_groups for name in group}
    lists = (row.source_topics, row.sink_topics, internal, row.changelog_topics)
    return (
        len(row.versions) <= MOST_VERSIONS
        and bool(row.source_topics)
        and all(1 <= version <= HIGHEST_VERSION for version in row.versions)
        and all(map(is_topic_name, {name for names in lists for name in names}))
        and all(tuple(sorted(set(names))) == names for names in lists[::3])
        and {*internal, *grouped} <= {*row.source_topics}
        and retained <= {*row.changelog_topics}
        and all(count <= _MOST_PARTITIONS for _, count in row.repartition_topics)
        and all(1 <= ms <= _MOST_RETENTION_MS for _, ms in row.changelog_retention_ms)
    )
