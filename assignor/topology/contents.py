"""The content of subtopologies: what identifies one across versions of a topology."""

import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

from assignor.topology.values import Subtopology

FINGERPRINT_BYTES = 8


@lru_cache(maxsize=4096)  # a leader reads the same few subtopologies in every rebalance
def content_fingerprint(part: Subtopology) -> bytes:
    """Return 8 bytes that are equal for subtopologies of equal content, whatever their numbers."""
    content = [
        part.source_topics,
        [(topic.name, topic.partitions) for topic in part.repartition_topics],
        part.changelog_topics,
    ]
    text = json.dumps(content, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=FINGERPRINT_BYTES).digest()


def with_sinks(
    parts: Iterable[Subtopology], sinks: Mapping[bytes, AbstractSet[str]]
) -> tuple[Subtopology, ...]:
    """Return subtopologies with more sink topics.

    Topics that a subtopology writes are no part of its content, so programs can differ in them.

    Args:
        parts: the subtopologies.
        sinks: content -> topics that are written as well.
    """
    return tuple(
        part
        if found <= {*part.sink_topics}
        else replace(part, sink_topics=tuple(sorted({*part.sink_topics, *found})))
        for part in parts
        for found in [sinks.get(content_fingerprint(part), frozenset())]
    )


def exclusive_topics(part: Subtopology) -> frozenset[str]:
    """Return the topics of which one task at a time may use a partition: sources and changelogs."""
    return frozenset((*part.source_topics, *part.changelog_topics))
