"""Subtopologies that change together, and what repartition topics mean for a change.

Members with two versions of a topology share a group during a rolling bounce. `chains` finds the
subtopologies that can run in one of the two versions only (docs/topologies.md).
"""

from collections.abc import Iterator, Mapping, Sequence

from assignor.errors import TopologyError
from assignor.topology.contents import content_fingerprint, exclusive_topics
from assignor.topology.values import Subtopology
from probing.topologies import Carrier, joined_families


def chains(
    versions: Mapping[int, Sequence[Subtopology]],
) -> tuple[tuple[frozenset[bytes], frozenset[str]], ...]:
    """Return the contents of subtopologies that change together, and the topics that join them.

    Args:
        versions: version of the topology -> its subtopologies.
    """
    members = [
        Carrier(
            member_id=str(version),
            process=str(version),
            forms={content_fingerprint(part): (version,) for part in parts},
            writes={content_fingerprint(part): frozenset(part.sink_topics) for part in parts},
        )
        for version, parts in sorted(versions.items())
    ]
    topics = {content_fingerprint(p): exclusive_topics(p) for ps in versions.values() for p in ps}
    return tuple(chain for chain in joined_families(members, topics) if chain[1])


def conflicting_topics(old: Sequence[Subtopology], new: Sequence[Subtopology]) -> Iterator[str]:
    """Yield why members with two versions of a topology refuse each other: a kind or a size."""
    before, after = ({t.name: t for p in side for t in p.repartition_topics} for side in (old, new))
    for name in sorted(before.keys() & after.keys()):
        counts = before[name].partitions, after[name].partitions
        if None not in counts and counts[0] != counts[1]:
            yield (
                f"{name} has {counts[0]} partitions in the old topology and {counts[1]} in the new"
                " one, and members with either one refuse the others: give it another name"
            )
    for topics, side in ((before, new), (after, old)):
        outside = {topic for part in side for topic in part.source_topics}
        internal = {topic.name for part in side for topic in part.repartition_topics}
        for name in sorted(topics.keys() & (outside - internal)):
            yield (
                f"{name} is a repartition topic in one of the topologies, and a topic from outside"
                " in the other one: give one of them another name"
            )


def check_sinks(versions: Mapping[int, Sequence[Subtopology]]) -> None:
    """Refuse a subtopology that two versions have, and that is of a chain with other sinks."""
    for chain, _ in chains(versions) if len(versions) > 1 else ():
        writes: dict[bytes, tuple[int, Subtopology]] = {}
        for version, parts in sorted(versions.items()):
            for part in parts:
                form = content_fingerprint(part)
                first, other = writes.setdefault(form, (version, part))
                if form in chain and other.sink_topics != part.sink_topics:
                    raise TopologyError(
                        f"versions {first} and {version} both have the subtopology that reads"
                        f" {', '.join(part.source_topics)}, and it writes"
                        f" {', '.join(other.sink_topics) or 'nothing'} in the first one and"
                        f" {', '.join(part.sink_topics) or 'nothing'} in the second one: a member"
                        " that carries both could not tell which; give each program one of them"
                    )
