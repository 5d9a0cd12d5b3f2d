"""What a member holds after an answer: its tasks with their partitions, and the routing view."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from assignor.errors import TaskAssignmentError
from assignor.rebalance.routing_view import Routing, input_partitions, routing_of
from assignor.topology import Subtopology
from encoding import (
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    Assignment,
    DecodeError,
    NativeAssignment,
    TaskId,
    TopicPartition,
    View,
    apply_delta,
    decode_reference,
    decode_view,
    shown,
    task_order,
    view_reference,
)
from probing import EARLIEST_NATIVE_VERSION

PartitionsByTask = Mapping[TaskId, tuple[TopicPartition, ...]]

_NAMED = 3  # tasks in a sentence
_SAME = "do leader and member run the same topology?"
_LOOK_AT_LEADER = "the leader's answer is broken, look at the leader's log"


class UnfollowableAnswer(TaskAssignmentError):
    """An answer can be read but not followed; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksHeld:
    """Tasks of a member with their input partitions; `warmup` are some of the standby tasks."""

    active: PartitionsByTask = field(default_factory=dict)
    standby: PartitionsByTask = field(default_factory=dict)
    warmup: frozenset[TaskId] = frozenset()


NO_TASKS: Final = TasksHeld()


def moved_away(before: TasksHeld, held: TasksHeld) -> TasksHeld:
    """Return tasks that are held no more, and active ones whose partitions changed."""
    return TasksHeld(
        active={t: p for t, p in before.active.items() if held.active.get(t) != p},
        standby={t: p for t, p in before.standby.items() if t not in held.standby},
    )


def held_tasks(
    assignment: Assignment,
    partitions: Sequence[TopicPartition],
    subtopologies: Sequence[Subtopology],
) -> TasksHeld:
    """Pair tasks with partitions.

    In Kafka's layouts the n-th task id belongs to the n-th sorted partition; a native body names
    each task once, and the topology says which partitions are its own. Whatever the layout, tasks
    are those of the topology, as far as the member knows it: its subtopologies and their source
    topics, and the partition counts that a native leader sends. JVM leaders send none, and the
    member's own client may have older ones, so that a task beyond them passes. Without
    subtopologies nothing is checked.

    Raises:
        UnfollowableAnswer: tasks, partitions and topology do not fit together.
    """
    native = assignment.native
    counts = {} if native is None else native.partition_counts
    by_id = {subtopology.id: subtopology for subtopology in subtopologies}
    if assignment.version < EARLIEST_NATIVE_VERSION:
        active = _by_position(assignment.active_tasks, sorted(partitions))
    else:
        active = _by_topology(assignment.active_tasks, sorted(partitions), subtopologies)
    standby = {
        task: inputs
        or (
            input_partitions(by_id[task.subtopology], task.partition, counts)
            if task.subtopology in by_id
            else ()
        )
        for task, inputs in assignment.standby_tasks.items()
    }
    if by_id:
        _check_tasks(active, by_id, counts)
        _check_tasks(standby, by_id, counts)
    both = active.keys() & standby.keys()
    if by_id and both:
        raise UnfollowableAnswer(
            f"{_few(both)} would be active and standby on one member; {_LOOK_AT_LEADER}"
        )
    warmup = frozenset() if native is None else frozenset(native.warmup_tasks) & standby.keys()
    return TasksHeld(active=active, standby=standby, warmup=warmup)


def _by_position(tasks: Sequence[TaskId], partitions: Sequence[TopicPartition]) -> PartitionsByTask:
    if len(tasks) != len(partitions):
        raise UnfollowableAnswer(
            f"{len(partitions)} partitions were assigned but {len(tasks)} active task ids; "
            f"{_LOOK_AT_LEADER}"
        )
    active: dict[TaskId, list[TopicPartition]] = {}
    for task, partition in zip(tasks, partitions, strict=True):
        active.setdefault(task, []).append(partition)
    return {task: tuple(inputs) for task, inputs in active.items()}


def _by_topology(
    tasks: Sequence[TaskId],
    partitions: Sequence[TopicPartition],
    subtopologies: Sequence[Subtopology],
) -> PartitionsByTask:
    readers: dict[str, list[int]] = {}
    for part in subtopologies:
        for topic in part.source_topics:
            readers.setdefault(topic, []).append(part.id)
    active: dict[TaskId, list[TopicPartition]] = {task: [] for task in tasks}
    for partition in partitions:
        # Forms of a subtopology read the same topics; at most one of them is assigned.
        reading = (TaskId(n, partition.partition) for n in readers.get(partition.topic, ()))
        found = next((active[task] for task in reading if task in active), None)
        if found is None:
            name = shown(f"{partition.topic}-{partition.partition}")
            raise UnfollowableAnswer(f"partition {name} was assigned without its task; {_SAME}")
        found.append(partition)
    bare = [task for task, inputs in active.items() if not inputs]
    if bare:
        raise UnfollowableAnswer(f"{_few(bare)} came without a partition; {_SAME}")
    return {task: tuple(inputs) for task, inputs in active.items()}


def _check_tasks(
    tasks: PartitionsByTask, by_id: Mapping[int, Subtopology], counts: Mapping[str, int]
) -> None:
    """Check tasks against the topology; where all counts are known, each has all its inputs."""
    known = {
        part.id for part in by_id.values() if all(topic in counts for topic in part.source_topics)
    }
    for task, inputs in tasks.items():
        part = by_id.get(task.subtopology)
        if part is None or task.topology_name is not None or task.partition < 0:
            raise UnfollowableAnswer(f"{_few([task])} is not of this member's topology; {_SAME}")
        distinct = set(inputs)
        strange = [
            p for p in inputs if p.partition != task.partition or p.topic not in part.source_topics
        ]
        if strange:
            name = shown(f"{strange[0].topic}-{strange[0].partition}")
            raise UnfollowableAnswer(
                f"{_few([task])} was assigned with partition {name}, which it does not read;"
                f" {_SAME}"
            )
        if len(distinct) != len(inputs):
            raise UnfollowableAnswer(
                f"{_few([task])} came with a partition twice; {_LOOK_AT_LEADER}"
            )
        wanted = input_partitions(part, task.partition, counts) if part.id in known else inputs
        if not wanted or distinct != set(wanted):
            raise UnfollowableAnswer(
                f"{_few([task])} came with {len(inputs)} partitions and reads {len(wanted)} by the"
                f" leader's own counts; {_SAME}"
            )


def _few(tasks: Collection[TaskId]) -> str:
    """Name the first 3 tasks and count the others, for a sentence."""
    listed = heapq.nsmallest(_NAMED, tasks, key=task_order)
    names = ", ".join(shown(str(task), limit=64) for task in listed)
    more = f" and {len(tasks) - len(listed)} more" if len(tasks) > len(listed) else ""
    return f"{'task' if len(tasks) == 1 else 'tasks'} {names}{more}"


def known_sizes(
    subtopologies: Sequence[Subtopology], partition_counts: Mapping[str, int]
) -> tuple[int, ...] | None:
    """Return the number of tasks of each subtopology, by its id; None without a topology."""
    if not subtopologies:
        return None
    sizes = [0] * (1 + max(part.id for part in subtopologies))
    for part in subtopologies:
        sizes[part.id] = max((partition_counts.get(t, 0) for t in part.source_topics), default=0)
    return tuple(sizes)


def view_after(
    held: View | None, native: NativeAssignment, sizes: tuple[int, ...] | None
) -> View | None:
    """Return the view after an answer; None: unknown, and the leader sends it in full next time.

    A delta against another view, or a reference to a view that is not held, is never applied. A
    view whose numbers of tasks are not `sizes` is dropped before it is read.
    """
    try:
        if native.view_full is not None:
            return decode_view(native.view_full, sizes)
        if native.view_delta is not None:
            return None if held is None else apply_delta(held, native.view_delta, sizes)
        if native.view_reference is not None and held is not None:
            named = decode_reference(native.view_reference)
            return held if view_reference(held) == named else None
    except DecodeError:
        # Routing is optional: what cannot be read is asked for again with the next subscription.
        return None
    return None


def view_routing(
    view: View, subtopologies: Sequence[Subtopology], partition_counts: Mapping[str, int]
) -> Routing:
    """Return which host serves what; nothing when the view is about another topology."""
    sizes = known_sizes(subtopologies, partition_counts)
    if sizes is None or sizes[: len(view.sizes)] != view.sizes:
        return Routing()
    return routing_of(view, subtopologies, partition_counts)


def offset_sums(
    held: TasksHeld,
    known: Mapping[TaskId, int],
    restoring: AbstractSet[TaskId],
    *,
    gave_up: bool,
) -> dict[TaskId, int]:
    """Return task -> offset sum to report, with Kafka Streams' values for running and unknown.

    Args:
        held: tasks of the member.
        known: sums of the state on this member.
        restoring: active tasks that count by their sums; one without a sum runs.
        gave_up: no task runs any more.
    """
    copies = dict.fromkeys(held.standby, UNKNOWN_OFFSET_SUM) | dict(known)
    running = frozenset() if gave_up else held.active.keys() - (restoring & known.keys())
    return copies | dict.fromkeys(running, RUNNING)


def stateful_tasks(
    tasks: Collection[TaskId], subtopologies: Sequence[Subtopology]
) -> AbstractSet[TaskId]:
    """Return the tasks whose subtopology has state; all of them, if no subtopology is known."""
    stateless = {part.id for part in subtopologies if not part.is_stateful}
    return {task for task in tasks if task.subtopology not in stateless}


def waiting_subtopologies(
    native: NativeAssignment | None, subtopologies: Sequence[Subtopology]
) -> tuple[int, ...]:
    """Return the ids of subtopologies of which no member has a task by an answer.

    Only native leaders tell. In a group with several topologies the ids are other ones; there
    nothing is returned.
    """
    if native is None or native.numbered_by:
        return ()
    return tuple(part.id for part in subtopologies if not any(native.sizes[part.id : part.id + 1]))


class TasksListener:
    """Callbacks of an application, which do nothing; subclass it and override some."""

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Run `active` and keep `standby` warm from now on; both map tasks to input partitions.

        Both are complete: they contain what a cooperative member keeps, too.
        """

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Stop these. What is processed is committed already, or another member processes it again.

        Eager: everything, before each rebalance. Cooperative: only what moves to another member,
        after the rebalance that moves it. A commit can be made here with confluent-kafka only,
        which calls this in `poll`; the threads of the other clients would wait for themselves.
        """

    def on_tasks_lost(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Stop these, and commit nothing more of them: other members may run them already.

        Both are empty if the tasks were revoked before, and no answer has come since: nothing that
        is kept for it is of use any more.

        By default `on_tasks_revoked` is called, whose commit the broker refuses then.
        """
        self.on_tasks_revoked(active, standby)

    def pause_work(self) -> None:
        """Return once no batch is in progress, and begin none until the next assignment.

        Called before a join by aiokafka consumers, on a thread of its own: their event loop, which
        calls `on_tasks_revoked`, must not wait for a batch.
        """

    def on_shutdown_requested(self) -> None:
        """Close this member, from another thread: the whole group was asked to stop (KIP-671)."""

    @property
    def reports_offsets(self) -> bool:
        """Whether `task_offsets` is overridden: without it, no copy here counts as caught up."""
        return type(self).task_offsets is not TasksListener.task_offsets

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Return task -> sum of changelog offsets of its state here.

        For standby tasks, tasks that only have state here, and tasks of `restoring_tasks`. Other
        active tasks are reported as running, whatever is returned for them.
        """
        return {}

    def restoring_tasks(self) -> Collection[TaskId]:
        """Return the active tasks whose state is not restored yet.

        The leader gets their `task_offsets`, as of Kafka Streams' tasks in state RESTORING, and may
        move such a task to a member that has more of its state. A task with state that is not
        named here, or that has no entry in `task_offsets`, is reported as running, with the latest
        state.
        """
        return ()

    def on_error(self, why: str) -> None:
        """Report that the member cannot follow the leader, or cannot go on; `why` says what to do.

        Failures to read the cluster are reported on a thread of the assignor's own.
        """
