"""What an application implements to run tasks.

All methods are called on the client's own thread while a rebalance runs: be quick, hand work over.
What they raise is logged, kept in `StreamsAssignor.failures`, and goes no further.
"""

from collections.abc import Mapping

from encoding import TaskId, TopicPartition

PartitionsByTask = Mapping[TaskId, tuple[TopicPartition, ...]]


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
