"""The tasks that an application runs, shared by the client's thread and the working thread."""

import threading
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from assignor.config import refused, takes
from assignor.rebalance import PartitionsByTask, TasksListener
from encoding import TaskId, task_order

_NONE: AbstractSet[TaskId] = frozenset()


class RunningTasks(TasksListener):
    """A listener that records the member's tasks, for applications with one working thread.

    A task is revoked only between two uses of `working`, so that no batch is in progress when
    another member takes it over.

    An application that restores nothing only reads `active`: its tasks run as soon as they are
    assigned. One that restores state reads the `fresh` tasks, and names those that are restored in
    `working(restored=...)`. It has to skip the records of the others, which are fetched again. Once
    it has named the first, the leader gets the `task_offsets` of the tasks that it restores.

    Args:
        tell: called with a sentence after each assignment that differs from the last one, and
            each error, on the thread that reports it.

    Attributes:
        active, standby: tasks of the last assignment.
        suspended: tasks that were revoked and may come back: the next assignment says whether they
            stay. Keep their state until then, process nothing of them and write nothing.
    """

    # Whether the application has asked which tasks are fresh, whether it has restored any, and
    # whether it waits for the next assignment.
    _asks = _restores = _is_paused = False

    def __init__(self, tell: Callable[[str], object] = lambda _: None) -> None:
        if not takes(tell, 1):
            raise refused("tell", tell, "a function of a sentence")
        self._tell = tell
        self._lock = threading.Lock()
        self._worker: int | None = None  # thread that is in `working`
        self._assigned = ""  # the last sentence about an assignment
        self.active = self.standby = self.suspended = self._fresh = _NONE
        # Restored tasks that were revoked before a rebalance, and came back with its answer.
        self._kept: AbstractSet[TaskId] = _NONE

    @property
    def fresh(self) -> AbstractSet[TaskId]:
        """Active tasks that `working` was not told to be restored since they were assigned."""
        self._asks = True
        return self._fresh

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Record the assignment; active tasks that did not run here before are fresh."""
        with self._locked():
            self._fresh = (self._fresh | (active.keys() - self.active)) & active.keys()
            self._kept &= active.keys()
            self.active, self.standby = frozenset(active), frozenset(standby)
            self.suspended, self._is_paused = _NONE, False
        says = f"active tasks: {listed_tasks(active)}; standby tasks: {listed_tasks(standby)}"
        last, self._assigned = self._assigned, says
        if says != last:
            self._tell(says)

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Suspend the tasks, after the current batch."""
        with self._locked():
            self.suspended = self.suspended | active.keys() | standby.keys()
            self._kept |= (active.keys() & self.active) - self._fresh
            self.active = self.active - active.keys()
            self.standby = self.standby - standby.keys()

    def on_tasks_lost(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Remove the tasks, and all that are suspended: other members may change their state."""
        self.on_tasks_revoked(active, standby)
        with self._locked():
            self._kept = self.suspended = _NONE
            self._assigned = ""

    def pause_work(self) -> None:
        """Wait for the end of the block of `working`; the next ones have no tasks to process."""
        with self._locked():
            self._is_paused = True

    def restoring_tasks(self) -> AbstractSet[TaskId]:
        """Return the fresh tasks, also those that are given up before a join and come back.

        None of an application that has not named a restored task: it may restore nothing. A task
        that was restored when it was given up, and came back with the answer, is not among them.
        The client's thread does not wait for a batch here.
        """
        return self._fresh - self._kept if self._restores else _NONE

    def on_error(self, why: str) -> None:
        """Pass the error to `tell`."""
        self._tell(why)

    def tasks(self) -> tuple[AbstractSet[TaskId], AbstractSet[TaskId]]:
        """Return the fresh and the standby tasks, consistently."""
        with self._locked():
            return self.fresh & self.active, self.standby

    @property
    def is_working(self) -> bool:
        """Whether this thread is in a `working` block, as a function that processes records is."""
        return self._worker == threading.get_ident()

    @contextmanager
    def working(self, restored: AbstractSet[TaskId] = _NONE) -> Iterator[AbstractSet[TaskId]]:
        """Yield the active tasks to process; none is revoked until the block ends, so be brief.

        These are all active tasks, or without the fresh ones if the application restores tasks;
        none while the member joins.

        Args:
            restored: tasks whose state is now restored.

        Raises:
            RuntimeError: this thread is in such a block already, and would wait for itself; so do
                the other methods.
        """
        with self._locked():
            self._restores |= bool(restored)
            self._fresh -= restored
            self._worker = threading.get_ident()
            try:
                waits = self._fresh if self._asks or self._restores else _NONE
                yield _NONE if self._is_paused else self.active - waits
            finally:
                self._worker = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Take the lock, which this thread does not have yet."""
        if self.is_working:
            raise RuntimeError(
                "these tasks were used in a function that processes records of them, where the use "
                "would wait for itself; do it once the function has returned, where poll is called"
            )
        with self._lock:
            yield


def listed_tasks(tasks: Iterable[TaskId]) -> str:
    """Return tasks as text, sorted; `none` without any."""
    return " ".join(str(task) for task in sorted(tasks, key=task_order)) or "none"
