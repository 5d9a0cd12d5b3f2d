"""From subtopologies and partition counts to tasks.

A task is (subtopology, partition): it reads that partition of every source topic that has one, so a
subtopology has as many tasks as its widest source has partitions. Counts of repartition topics
follow from what is written to them, round by round, and end in an error instead of a loop when a
round makes no progress (KAFKA-10689, KAFKA-9335).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from assignor.errors import CopartitionMismatch, PartitionCountUnknown
from assignor.topology.subtopologies import Subtopology
from encoding import TaskId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """The tasks of an application, and what each of them reads.

    Attributes:
        partition_counts: topic -> partitions, repartition topics and changelogs included.
        partitions_by_task: task -> input partitions, sorted; tasks in (subtopology, partition)
            order.
        stateful_tasks: tasks that have a changelog partition.
        unknown_topics: external source topics whose count is not known, sorted. Their
            subtopologies, and those fed by them, have no tasks.
        task_by_partition: input partition -> the task that reads it.
    """

    partition_counts: Mapping[str, int]
    partitions_by_task: Mapping[TaskId, tuple[TopicPartition, ...]]
    stateful_tasks: frozenset[TaskId]
    unknown_topics: tuple[str, ...]
    task_by_partition: Mapping[TopicPartition, TaskId]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtopologyWaits:
    """Why the tasks of a subtopology are not handed out.

    Attributes:
        why: one sentence.
        refused: it cannot work as it is, so that tasks which ran do not go on either.
    """

    why: str
    refused: bool = False


def without_subtopologies(plan: TaskPlan, ids: Collection[int]) -> TaskPlan:
    """The plan without the tasks of some subtopologies; the partition counts stay."""
    if not ids:
        return plan
    kept = {t: inputs for t, inputs in plan.partitions_by_task.items() if t.subtopology not in ids}
    return replace(
        plan,
        partitions_by_task=kept,
        stateful_tasks=plan.stateful_tasks & kept.keys(),
        task_by_partition={p: task for task, inputs in kept.items() for p in inputs},
    )


def plan_tasks(
    subtopologies: Sequence[Subtopology], partition_counts: Mapping[str, int]
) -> TaskPlan:
    """Derive all partition counts, check copartitioning, list the tasks.

    Args:
        subtopologies: of one application.
        partition_counts: external topic -> partitions (>= 1); a missing topic is *unknown*, which
            is a normal state for a leader whose client has not seen the metadata yet.

    Raises:
        CopartitionMismatch: external topics of one copartition group differ.
        PartitionCountUnknown: repartition topics feed each other and none has a count.
    """
    return _plan_tasks(tuple(subtopologies), tuple(sorted(partition_counts.items())))


@lru_cache(maxsize=8)  # a process works for few applications, and topics rarely grow
def _plan_tasks(
    subtopologies: tuple[Subtopology, ...], counts_given: tuple[tuple[str, int], ...]
) -> TaskPlan:
    partition_counts = dict(counts_given)
    internal = {t.name for s in subtopologies for t in s.repartition_topics}
    external = {t for s in subtopologies for t in s.source_topics} - internal
    unknown = {t for t in external if partition_counts.get(t, 0) < 1}
    counts = {t: n for t, n in partition_counts.items() if t in external and n >= 1}
    counts.update(_repartition_counts(subtopologies, counts, unknown))
    ready = [s for s in subtopologies if all(t in counts for t in s.source_topics)]
    for subtopology in ready:
        _agree_on_copartitions(subtopology, counts, internal)
    tasks: dict[TaskId, tuple[TopicPartition, ...]] = {}
    stateful = set()
    for subtopology in sorted(ready, key=lambda s: s.id):
        width = max(counts[t] for t in subtopology.source_topics)
        for partition in range(width):
            task = TaskId(subtopology.id, partition)
            tasks[task] = tuple(
                TopicPartition(topic, partition)
                for topic in subtopology.source_topics
                if partition < counts[topic]
            )
            if subtopology.is_stateful:
                stateful.add(task)
        for changelog in subtopology.changelog_topics:
            counts.setdefault(changelog, width)
    return TaskPlan(
        partition_counts=counts,
        partitions_by_task=tasks,
        stateful_tasks=frozenset(stateful),
        unknown_topics=tuple(sorted(unknown)),
        task_by_partition={p: task for task, inputs in tasks.items() for p in inputs},
    )


def _repartition_counts(
    subtopologies: Sequence[Subtopology], external: Mapping[str, int], unknown: set[str]
) -> dict[str, int]:
    """Counts of the repartition topics that can be derived without an unknown external topic."""
    asked = {t.name: t.partitions for s in subtopologies for t in s.repartition_topics}
    counts = dict(external) | {name: n for name, n in asked.items() if n is not None}
    open_topics = {name for name, n in asked.items() if n is None}
    blocked: set[str] = set()
    while open_topics:
        settled = set()
        for topic in sorted(open_topics):
            feeders = [s for s in subtopologies if topic in s.sink_topics]
            sources = {t for s in feeders for t in s.source_topics}
            if sources & (unknown | blocked):
                blocked.add(topic)
                settled.add(topic)
            elif sources and all(t in counts for t in sources):
                counts[topic] = max(counts[t] for t in sources)
                settled.add(topic)
        if not settled:
            raise PartitionCountUnknown(sorted(open_topics))
        open_topics -= settled
    return {name: counts[name] for name in asked if name in counts and name not in blocked}


def _agree_on_copartitions(
    subtopology: Subtopology, counts: dict[str, int], internal: set[str]
) -> None:
    """Check external topics against each other; let repartition topics follow (KIP-221 rules)."""
    asked = {t.name: t.partitions for t in subtopology.repartition_topics}
    for group in subtopology.copartition_groups:
        fixed = [t for t in group if t not in internal or asked.get(t) is not None]
        free = [t for t in group if t not in fixed]
        wanted = {counts[t] for t in fixed}
        if len(wanted) > 1:
            raise CopartitionMismatch({t: counts[t] for t in group})
        width = wanted.pop() if wanted else max(counts[t] for t in group)
        for topic in free:
            counts[topic] = width
