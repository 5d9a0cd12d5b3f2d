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
    another member takes it over. A new active task is `fresh` until its state is restored; the
    application has to skip its records until then, and they are fetched again.

    Args:
        tell: called with a sentence after each assignment and each error, on the thread that
            reports it.

    Attributes:
        active, standby: tasks of the last assignment.
        fresh: active tasks whose state is not restored yet.
    """

    def __init__(self, tell: Callable[[str], object] = lambda _: None) -> None:
        if not takes(tell, 1):
            raise refused("tell", tell, "a function of a sentence")
        self._tell = tell
        self._lock = threading.Lock()
        self._worker: int | None = None  # thread that is in `working`
        self.active = self.standby = self.fresh = _NONE

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Record the assignment; active tasks that did not run here before are fresh."""
        with self._locked():
            self.fresh = (self.fresh | (active.keys() - self.active)) & active.keys()
            self.active, self.standby = frozenset(active), frozenset(standby)
        self._tell(f"active tasks: {listed_tasks(active)}; standby tasks: {listed_tasks(standby)}")

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Remove the tasks, after the current batch."""
        with self._locked():
            self.active = self.active - active.keys()
            self.standby = self.standby - standby.keys()

    def restoring_tasks(self) -> AbstractSet[TaskId]:
        """Return the fresh tasks, also those that are given up before a join and come back."""
        with self._locked():
            return self.fresh

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

        Args:
            restored: tasks whose state is now restored.

        Raises:
            RuntimeError: this thread is in such a block already, and would wait for itself; so do
                the other methods.
        """
        with self._locked():
            self.fresh = self.fresh - restored
            self._worker = threading.get_ident()
            try:
                yield self.active - self.fresh
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
