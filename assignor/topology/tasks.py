"""The derivation of tasks from subtopologies and partition counts.

A task is (subtopology, partition). It reads this partition of every source topic that has it, so a
subtopology has as many tasks as its largest source topic has partitions. Partition counts of
repartition topics are derived from their upstream topics, repeatedly; if a pass derives no count,
the result is an error, not an endless loop (KAFKA-10689, KAFKA-9335).
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache

from assignor.errors import CopartitionMismatch, PartitionCountUnknown
from assignor.topology.values import Subtopology
from encoding import TaskId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """The tasks of an application and their input partitions.

    Attributes:
        partition_counts: topic -> number of partitions, including repartition topics and
            changelogs.
        partitions_by_task: task -> input partitions, sorted; tasks in (subtopology, partition)
            order.
        stateful_tasks: tasks that have a changelog partition.
        unknown_topics: external source topics whose partition count is not known, sorted. Their
            subtopologies, and those downstream of them, have no tasks.
        task_by_partition: input partition -> the task that reads it.
        siblings: task -> all tasks of its partition that replace one task of another form; none may
            start before the other form has ended.
    """

    partition_counts: Mapping[str, int]
    partitions_by_task: Mapping[TaskId, tuple[TopicPartition, ...]]
    stateful_tasks: frozenset[TaskId]
    unknown_topics: tuple[str, ...]
    task_by_partition: Mapping[TopicPartition, TaskId]
    siblings: Mapping[TaskId, tuple[TaskId, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtopologyWaits:
    """Why the tasks of a subtopology are not assigned.

    Attributes:
        why: the reason, as a sentence.
        refused: whether the problem is permanent, so that even tasks that ran are not assigned.
    """

    why: str
    refused: bool = False


def only_tasks(plan: TaskPlan, tasks: AbstractSet[TaskId]) -> TaskPlan:
    """Return the plan with these tasks only; partition counts are kept."""
    if plan.partitions_by_task.keys() <= tasks:
        return plan
    kept = {task: inputs for task, inputs in plan.partitions_by_task.items() if task in tasks}
    return replace(
        plan,
        partitions_by_task=kept,
        stateful_tasks=plan.stateful_tasks & kept.keys(),
        task_by_partition={p: task for task, inputs in kept.items() for p in inputs},
    )


def plan_tasks(
    subtopologies: Sequence[Subtopology], partition_counts: Mapping[str, int]
) -> TaskPlan:
    """Return the tasks, after deriving all partition counts and checking copartitioning.

    Args:
        subtopologies: all subtopologies of one application.
        partition_counts: external topic -> number of partitions (>= 1). A missing topic is
            *unknown*, which is normal for a leader whose client has not fetched the metadata yet.

    Raises:
        CopartitionMismatch: topics of one copartition group differ in their partition counts.
        PartitionCountUnknown: repartition topics depend on each other and none has a count.
    """
    return _plan_tasks(tuple(subtopologies), tuple(sorted(partition_counts.items())))


@lru_cache(maxsize=8)  # a process has few applications, and partition counts rarely change
def _plan_tasks(
    subtopologies: tuple[Subtopology, ...], counts_given: tuple[tuple[str, int], ...]
) -> TaskPlan:
    counts, unknown = source_counts(subtopologies, dict(counts_given))
    ready = [s for s in subtopologies if all(t in counts for t in s.source_topics)]
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


def source_counts(
    subtopologies: Sequence[Subtopology], partition_counts: Mapping[str, int]
) -> tuple[dict[str, int], frozenset[str]]:
    """Return the partition counts of source topics, and the external topics without a count.

    Makes no tasks: the cost does not depend on the number of partitions.

    Raises:
        CopartitionMismatch: topics of one copartition group differ in their partition counts.
        PartitionCountUnknown: repartition topics depend on each other and none has a count.
    """
    internal = {t.name for s in subtopologies for t in s.repartition_topics}
    external = {t for s in subtopologies for t in s.source_topics} - internal
    unknown = {t for t in external if partition_counts.get(t, 0) < 1}
    counts = {t: n for t, n in partition_counts.items() if t in external and n >= 1}
    counts.update(_repartition_counts(subtopologies, counts, unknown))
    for subtopology in subtopologies:
        if all(t in counts for t in subtopology.source_topics):
            _agree_on_copartitions(subtopology, counts, internal)
    return counts, frozenset(unknown)


def _repartition_counts(
    subtopologies: Sequence[Subtopology], external: Mapping[str, int], unknown: set[str]
) -> dict[str, int]:
    """Return the partition counts of repartition topics that do not depend on unknown topics."""
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
    """Check partition counts of copartition groups; adjust repartition topics (KIP-221 rules)."""
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


def task_sizes(tasks: Iterable[TaskId]) -> tuple[int, ...]:
    """Return the number of tasks of each subtopology, by its id; native bodies number tasks so."""
    sizes: dict[int, int] = {}
    for task in tasks:
        sizes[task.subtopology] = max(sizes.get(task.subtopology, 0), task.partition + 1)
    return tuple(sizes.get(number, 0) for number in range(max(sizes, default=-1) + 1))
