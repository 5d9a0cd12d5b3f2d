"""What a member holds after an answer: its tasks with their partitions, and the routing view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assignor.errors import TaskAssignmentError
from assignor.rebalance.routing_view import Routing, input_partitions, routing_of
from assignor.topology import Subtopology
from encoding import (
    Assignment,
    DecodeError,
    NativeAssignment,
    TaskId,
    TopicPartition,
    View,
    apply_delta,
    decode_reference,
    decode_view,
    view_reference,
)
from probing import EARLIEST_NATIVE_VERSION

PartitionsByTask = Mapping[TaskId, tuple[TopicPartition, ...]]


class UnfollowableAnswer(TaskAssignmentError):
    """An answer could be read but not followed; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksHeld:
    """Tasks of a member with their input partitions; `warmup` are some of the standby tasks."""

    active: PartitionsByTask = field(default_factory=dict)
    standby: PartitionsByTask = field(default_factory=dict)
    warmup: frozenset[TaskId] = frozenset()


def held_tasks(
    assignment: Assignment,
    partitions: Sequence[TopicPartition],
    subtopologies: Sequence[Subtopology],
) -> TasksHeld:
    """Pair tasks with partitions.

    In Kafka's layouts the n-th task id belongs to the n-th sorted partition; a native body names
    each task once, and the topology says which partitions are its own.

    Raises:
        UnfollowableAnswer: tasks and partitions do not fit together.
    """
    if assignment.version < EARLIEST_NATIVE_VERSION:
        active = _by_position(assignment.active_tasks, sorted(partitions))
    else:
        active = _by_topology(assignment.active_tasks, sorted(partitions), subtopologies)
    native = assignment.native
    by_id = {subtopology.id: subtopology for subtopology in subtopologies}
    counts = {} if native is None else native.partition_counts
    standby = {
        task: inputs
        or (
            input_partitions(by_id[task.subtopology], task.partition, counts)
            if task.subtopology in by_id
            else ()
        )
        for task, inputs in assignment.standby_tasks.items()
    }
    warmup = frozenset() if native is None else frozenset(native.warmup_tasks)
    return TasksHeld(active=active, standby=standby, warmup=warmup)


def _by_position(
    tasks: Sequence[TaskId], partitions: Sequence[TopicPartition]
) -> dict[TaskId, tuple[TopicPartition, ...]]:
    if len(tasks) != len(partitions):
        raise UnfollowableAnswer(
            f"{len(partitions)} partitions were assigned but {len(tasks)} active task ids; "
            "the leader's answer is broken, look at the leader's log"
        )
    active: dict[TaskId, tuple[TopicPartition, ...]] = {}
    for task, partition in zip(tasks, partitions, strict=True):
        active[task] = (*active.get(task, ()), partition)
    return active


def _by_topology(
    tasks: Sequence[TaskId],
    partitions: Sequence[TopicPartition],
    subtopologies: Sequence[Subtopology],
) -> dict[TaskId, tuple[TopicPartition, ...]]:
    reader = {topic: part.id for part in subtopologies for topic in part.source_topics}
    active: dict[TaskId, tuple[TopicPartition, ...]] = dict.fromkeys(sorted(tasks), ())
    for partition in partitions:
        task = TaskId(reader.get(partition.topic, -1), partition.partition)
        if task not in active:
            raise UnfollowableAnswer(
                f"partition {partition.topic}-{partition.partition} was assigned without its task; "
                "do leader and member run the same topology?"
            )
        active[task] = (*active[task], partition)
    bare = [str(task) for task, inputs in active.items() if not inputs]
    if bare:
        raise UnfollowableAnswer(
            f"tasks {', '.join(bare)} were assigned without a partition; "
            "do leader and member run the same topology?"
        )
    return active


def held_view(held: View | None, native: NativeAssignment) -> View | None:
    """The view after an answer; None when it is not known, so that the leader sends it in full.

    A delta against another view, or a reference to one that is not held, is never applied.
    """
    try:
        if native.view_full is not None:
            return decode_view(native.view_full)
        if native.view_delta is not None:
            return None if held is None else apply_delta(held, native.view_delta)
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
    """Who hosts what, or nothing when the view is about another topology."""
    sizes = [0] * len(view.sizes)
    for part in subtopologies:
        if part.id < len(sizes):
            sizes[part.id] = max(
                (partition_counts.get(t, 0) for t in part.source_topics), default=0
            )
    if tuple(sizes) != view.sizes:
        return Routing()
    return routing_of(view, subtopologies, partition_counts)


class TasksListener:
    """Does nothing; subclass it and override what the application needs."""

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Run `active` and keep `standby` warm from now on; both map tasks to input partitions.

        Both are whole: a cooperative member names what it keeps here again.
        """

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Stop these, and commit.

        Eager: everything, before each rebalance. Cooperative: only what moves to another member,
        after the rebalance that moves it.
        """

    def on_tasks_lost(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Stop these; others run them already, so what is not committed must not be any more."""
        self.on_tasks_revoked(active, standby)

    def on_shutdown_requested(self) -> None:
        """A member asked the whole group to stop (KIP-671): close this one, from another thread."""

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Sum of the changelog offsets of each copy of state held here, running tasks left out."""
        return {}

    def on_error(self, why: str) -> None:
        """The member could not follow the leader, or cannot go on; `why` says what to do.

        Of the cluster it is told by a thread of the assignor's own.
        """
