"""Sentences about what waits: partitions that no member reads, and forms that cannot run."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from assignor.rebalance.forms.group import GroupTopologies
from assignor.topology import Subtopology, TaskPlan, content_fingerprint
from encoding import TaskId, TopicPartition
from probing.topologies import Carrier, FamilyDecision

_LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedFamily:
    """A family, or a chain of families, and what was decided about it.

    Attributes:
        decision: which forms run.
        parts: its forms, as subtopologies.
        tasks: of all its forms, as far as their topics exist.
        waits: partition numbers of which no form runs.
    """

    decision: FamilyDecision
    parts: tuple[Subtopology, ...]
    tasks: AbstractSet[TaskId]
    waits: AbstractSet[int]


def waiting_sentences(
    topologies: GroupTopologies,
    plan: TaskPlan,
    families: Sequence[DecidedFamily],
    carriers: Sequence[Carrier],
    running: AbstractSet[TaskId],
) -> tuple[list[str], int]:
    """Return a sentence about what waits in each family, and the number of partitions that wait.

    Args:
        topologies: who can run what.
        plan: the tasks of all forms.
        families: all of them.
        carriers: members that can run tasks.
        running: tasks that run in this generation.
    """
    read = {p for task in running for p in plan.partitions_by_task[task]}
    written = _written(families, carriers, {task.subtopology for task in running})
    sentences: list[str] = []
    count = 0
    for family in families:
        why = family.decision.why
        if family.waits:
            count += len(family.waits)
            sentences.append(
                f"{len(family.waits)} partitions of the subtopology that reads"
                f" {_sources(family)} wait: {why}"
            )
        unread = _unread(family, plan, read, written)
        if unread:
            count += len(unread)
            topics = _listed({p.topic for p in unread})
            sentences.append(
                f"{len(unread)} partitions of {topics} wait: one version of the topology reads"
                f" them, and another one runs in their place ({why})"
            )
        sentences += _contradictions(topologies, family)
    return sentences, count


def _unread(
    family: DecidedFamily,
    plan: TaskPlan,
    read: AbstractSet[TopicPartition],
    written: AbstractSet[str],
) -> set[TopicPartition]:
    """Inputs of live members that no task reads, without those that `DecidedFamily.waits` has.

    A repartition topic that no running task writes has nothing to read.
    """
    decision = family.decision
    if decision.able is None and decision.wanted == decision.forms:
        return set()
    idle = {topic.name for part in family.parts for topic in part.repartition_topics} - written
    return {
        p
        for task in family.tasks
        if task.partition not in family.waits
        for p in plan.partitions_by_task[task]
        if p not in read and p.topic not in idle
    }


def _written(
    families: Iterable[DecidedFamily], carriers: Sequence[Carrier], running: AbstractSet[int]
) -> set[str]:
    """Topics that members write in the subtopologies that run."""
    return {
        topic
        for family in families
        for part in family.parts
        if part.id in running
        for carrier in carriers
        if family.decision.able is None or carrier.member_id in family.decision.able
        for topic in carrier.writes.get(content_fingerprint(part), ())
    }


def _contradictions(topologies: GroupTopologies, family: DecidedFamily) -> list[str]:
    """A sentence about forms of one version that cannot run beside each other."""
    decision = family.decision
    if not decision.refused:
        return []
    members = sorted(
        carrier.member_id
        for carrier in topologies.carriers
        if carrier.forms.keys() & decision.refused
    )
    sentence = (
        f"two topologies have version {decision.version} and differ in the subtopology that"
        f" reads {_sources(family)}: {', '.join(members[:_LISTED])} get none of its"
        " tasks; give the changed topology a higher version, Topology(version=...)"
    )
    return [sentence]


def _sources(family: DecidedFamily) -> str:
    return _listed({topic for part in family.parts for topic in part.source_topics})


def _listed(names: AbstractSet[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(sorted(names)[:_LISTED]) + more


def retired_sentences(topologies: GroupTopologies) -> tuple[str, ...]:
    """Return sentences about subtopologies that no member can run any more; their topics stay."""
    return tuple(
        f"the subtopology that reads {', '.join(part.source_topics[:_LISTED])} is retired: no"
        " member can run it; its topics and committed offsets are left as they are"
        for part in topologies.table.retired
    )
