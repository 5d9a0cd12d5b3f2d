"""The plan of a rolling change of the topology: what becomes of each subtopology and its state."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from assignor.topology import Subtopology, content_fingerprint
from assignor.topology.changes import (
    Change,
    SubtopologyChange,
    chains,
    compare_topologies,
    conflicting_topics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtopologyPlan:
    """What becomes of a subtopology.

    Attributes:
        kind: kept, added, removed, changed or renamed.
        reads: its source topics, of the new topology if it is there.
        old_numbers, new_numbers: its numbers in the two topologies.
        kept: changelogs whose state the new form restores.
        empty: changelogs whose state begins empty.
        orphaned: changelogs that nothing reads any more.
        left: repartition topics in which records may be left that nothing reads.
        begins: topics from outside that only the new form reads; ends: that only the old one reads.
        together: source topics of the chain that it is a part of; empty if each partition changes
            by itself.
        differs_in_sinks: the written topics differ; both versions run it until the bounce is over.
            False where a side is a saved group, whose written topics are not known.
        rollback: how to go back, and until when.
    """

    kind: str
    reads: tuple[str, ...]
    old_numbers: tuple[int, ...]
    new_numbers: tuple[int, ...]
    kept: tuple[str, ...]
    empty: tuple[str, ...]
    orphaned: tuple[str, ...]
    left: tuple[str, ...]
    begins: tuple[str, ...]
    ends: tuple[str, ...]
    together: tuple[str, ...]
    differs_in_sinks: bool
    rollback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyPlan:
    """The plan of a change.

    Attributes:
        old_version, new_version: of the two topologies.
        subtopologies: in the order of the new topology, removed ones last.
        steps: what to do, in order.
        obstacles: why the change cannot be rolled out as it is; empty if it can.
        warnings: state that the change loses.
    """

    old_version: int
    new_version: int
    subtopologies: tuple[SubtopologyPlan, ...]
    steps: tuple[str, ...]
    obstacles: tuple[str, ...]
    warnings: tuple[str, ...]


_ROLLBACKS = {
    Change.KEPT: "nothing to do: all members run it",
    Change.ADDED: "bounce back; its tasks end with the last member that has it",
    Change.REMOVED: "bounce back; it continues at its committed offsets while they are retained",
    Change.CHANGED: (
        "lower the reached version (assignor features downgrade-topology), then bounce back;"
        " without that its partitions wait once they are orphaned"
    ),
    Change.RENAMED: (
        "as for a changed one, and only until its first partition has run under the new names:"
        " from then on the old state is stale"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTopology:
    """A side of a change.

    Attributes:
        subtopologies: with the names of their internal topics.
        version: of the topology.
        placeholders: topics that stand for unknown ones (saved groups only).
        is_saved: it is known from a saved group, so without partitions of repartition topics.
    """

    subtopologies: tuple[Subtopology, ...]
    version: int
    placeholders: tuple[str, ...] = ()
    is_saved: bool = False


def topology_plan(old: PlannedTopology, new: PlannedTopology) -> TopologyPlan:
    """Return the plan of a rolling change from one topology to another."""
    is_saved = old.is_saved or new.is_saved
    sides = [_without_counts(side) if is_saved else side.subtopologies for side in (old, new)]
    changes = compare_topologies(*sides)
    placeholders = {*old.placeholders, *new.placeholders}
    known = tuple(c for c in changes if c.kind is Change.KEPT or not _has(c, placeholders))
    joined = () if is_saved else tuple(_chains(*sides))
    parts = tuple(
        _subtopology(c, joined, knows_sinks=not is_saved, knows_state=c in known) for c in changes
    )
    changed = any(c.kind is not Change.KEPT for c in changes)
    is_same_version = changed and new.version <= old.version
    obstacles = list(conflicting_topics(*sides))
    if is_same_version:
        obstacles.insert(
            0,
            f"the new topology has version {new.version}, the old one {old.version}: give the new"
            f" one a higher version, Topology(version={old.version + 1})",
        )
    return TopologyPlan(
        old_version=old.version,
        new_version=new.version,
        subtopologies=parts,
        steps=tuple(_steps(old, new)) if changed and not obstacles else (),
        obstacles=tuple(obstacles),
        warnings=tuple(
            dict.fromkeys(
                (
                    *_unknown_topics(old),
                    *_unknown_topics(new),
                    *_warnings(known),
                    *_unread_warnings(parts, old.version, new.version),
                    *_chain_warnings(joined, old.version, new.version),
                    *(_unknown_writers(*sides) if is_saved else ()),
                )
            )
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """Subtopologies that change together: their contents, their sources, and why.

    Attributes:
        forms: contents of the subtopologies.
        sources: topics that they read.
        joining: the repartition topics that change.
        reused: those of them that both versions read.
    """

    forms: frozenset[bytes]
    sources: tuple[str, ...]
    joining: tuple[str, ...]
    reused: tuple[str, ...]


def _chains(old: Sequence[Subtopology], new: Sequence[Subtopology]) -> Iterator[_Chain]:
    """The subtopologies of both sides that change together."""
    read = [{topic for part in side for topic in part.source_topics} for side in (old, new)]
    for forms, changed in chains({0: old, 1: new}):
        parts = [part for part in (*old, *new) if content_fingerprint(part) in forms]
        yield _Chain(
            forms=forms,
            sources=tuple(sorted({topic for part in parts for topic in part.source_topics})),
            joining=tuple(sorted(changed)),
            reused=tuple(sorted(changed & read[0] & read[1])),
        )


def _has(change: SubtopologyChange, topics: AbstractSet[str]) -> bool:
    """Whether a subtopology of either side has one of these topics."""
    parts = (*change.old, *change.new)
    return any(
        not topics.isdisjoint((*part.source_topics, *part.changelog_topics)) for part in parts
    )


def _without_counts(side: PlannedTopology) -> tuple[Subtopology, ...]:
    return tuple(
        replace(
            part,
            repartition_topics=tuple(replace(t, partitions=None) for t in part.repartition_topics),
        )
        for part in side.subtopologies
    )


def _unknown_topics(side: PlannedTopology) -> Iterator[str]:
    if side.placeholders:
        yield (
            f"the saved group does not have the real names of {', '.join(side.placeholders)}:"
            " their subtopologies count as changed, and what becomes of their state is not known;"
            " compare two topologies by MODULE:NAME instead"
        )


def _subtopology(
    change: SubtopologyChange,
    joined: Sequence[_Chain],
    *,
    knows_sinks: bool,
    knows_state: bool,
) -> SubtopologyPlan:
    of = change.new or change.old
    own = {content_fingerprint(part) for part in (*change.old, *change.new)}
    chain = next((chain for chain in joined if own & chain.forms), None)
    sinks = [{t for part in side for t in part.sink_topics} for side in (change.old, change.new)]
    kind = change.kind if knows_state else Change.CHANGED
    return SubtopologyPlan(
        kind=kind.value,
        reads=tuple(sorted({topic for part in of for topic in part.source_topics})),
        old_numbers=tuple(part.id for part in change.old),
        new_numbers=tuple(part.id for part in change.new),
        kept=change.kept_changelogs if knows_state else (),
        empty=change.new_changelogs if change.old and knows_state else (),
        orphaned=change.orphaned_changelogs if knows_state else (),
        left=change.left_repartition_topics,
        begins=change.new_sources if change.old or chain else (),
        ends=change.former_sources if change.new or chain else (),
        together=chain.sources if chain else (),
        differs_in_sinks=bool(knows_sinks and change.old and change.new) and sinks[0] != sinks[1],
        rollback=_ROLLBACKS[Change.CHANGED if chain and kind is not Change.RENAMED else kind],
    )


def _steps(old: PlannedTopology, new: PlannedTopology) -> Iterator[str]:
    if old.version == 1:
        yield "bounce all members to this release, with the topology as it is"
    yield (
        f"bounce all members, one by one, to the program with version {new.version}; each costs two"
        " rebalances, and a partition that changes its form is restored on its new member"
    )
    yield "check with assignor inspect that all members have the new version and no partition waits"


def _warnings(changes: tuple[SubtopologyChange, ...]) -> Iterator[str]:
    for change in changes:
        if change.kind is Change.RENAMED and change.orphaned_changelogs:
            yield (
                f"state is lost: {', '.join(change.orphaned_changelogs)} is renamed to"
                f" {', '.join(change.new_changelogs)}, which begins empty; keep the name of the"
                " store to keep its state"
            )
        elif change.kind is Change.CHANGED and change.orphaned_changelogs:
            topics = ", ".join(change.orphaned_changelogs)
            yield f"state is dropped: nothing reads {topics} any more"
        for topic in change.kept_changelogs:
            old, new = (_readers(side, topic) for side in (change.old, change.new))
            if old.isdisjoint(new):
                yield (
                    f"state is of other input: {topic} was written by what reads"
                    f" {', '.join(sorted(old))}, and continues with what reads"
                    f" {', '.join(sorted(new))}; give the store of the new one another name"
                )
        if change.left_repartition_topics:
            yield (
                f"records left in {', '.join(change.left_repartition_topics)} are not read any"
                " more: stop what writes to it and let it drain first"
            )


def _chain_warnings(joined: Sequence[_Chain], old_version: int, new_version: int) -> Iterator[str]:
    """What a change of repartition topics means for the time of the bounce."""
    for chain in joined:
        yield (
            f"what reads {', '.join(chain.sources)} changes together, in one rebalance, because of"
            f" {', '.join(chain.joining)}: members with version {old_version} run all of it until"
            f" more members have version {new_version}, then these do; half of the members must be"
            " able to carry it"
        )
        for topic in chain.reused:
            yield (
                f"{topic} has other readers and writers than before, and records left in it may be"
                " taken for others: let it drain first, or give the new one another name"
            )


def _unread_warnings(
    parts: Sequence[SubtopologyPlan], old_version: int, new_version: int
) -> Iterator[str]:
    """What a change of source topics means for the time of the bounce."""
    for part in parts:
        for topics, version in ((part.begins, new_version), (part.ends, old_version)):
            if topics:
                yield (
                    f"only version {version} reads {', '.join(topics)}: partitions that run in the"
                    " other version are not read meanwhile, and the leader reports that they wait"
                )


def _unknown_writers(old: Sequence[Subtopology], new: Sequence[Subtopology]) -> Iterator[str]:
    """As a saved group does not have what is written: whether anything may change together."""
    sides = [
        [replace(part, sink_topics=tuple(sorted(topics))) for part in side]
        for side in (old, new)
        for topics in [{topic.name for part in side for topic in part.repartition_topics}]
    ]
    if chains({0: sides[0], 1: sides[1]}):
        yield (
            "subtopologies that write and read a repartition topic may change together, in one"
            " rebalance: a saved group does not say what is written; compare two topologies by"
            " MODULE:NAME"
        )


def _readers(side: tuple[Subtopology, ...], changelog: str) -> set[str]:
    """Source topics of the subtopologies that have a changelog."""
    return {t for part in side if changelog in part.changelog_topics for t in part.source_topics}


def topology_lines(plan: TopologyPlan) -> Iterator[str]:
    """Yield a plan as lines of text."""
    yield f"topology version {plan.old_version} -> {plan.new_version}"
    for obstacle in plan.obstacles:
        yield f"  cannot be rolled out: {obstacle}"
    for warning in plan.warnings:
        yield f"  warning: {warning}"
    for part in plan.subtopologies:
        numbers = " and ".join(map(str, part.new_numbers or part.old_numbers))
        yield ""
        yield f"{part.kind}: subtopology {numbers}, reads {', '.join(part.reads)}"
        if part.kind == Change.KEPT and part.old_numbers != part.new_numbers:
            yield f"  number:    {part.old_numbers[0]} becomes {part.new_numbers[0]}"
        for name, topics in (
            ("kept", part.kept),
            ("empty", part.empty),
            ("orphaned", part.orphaned),
            ("left", part.left),
            ("begins", part.begins),
            ("ends", part.ends),
            ("together", part.together),
        ):
            if topics:
                yield f"  {name + ':':10} {', '.join(topics)}"
        if part.differs_in_sinks:
            during = "" if part.together else "; both versions run it during the bounce"
            yield f"  writes:    other topics than before{during}"
        yield f"  rollback:  {part.rollback}"
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield f"step {number}: {step}"
