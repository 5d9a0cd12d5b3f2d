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
        self.active = self.standby = self.fresh = _NONE

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Record the assignment; active tasks that did not run here before are fresh."""
        with self._lock:
            self.fresh = (self.fresh | (active.keys() - self.active)) & active.keys()
            self.active, self.standby = frozenset(active), frozenset(standby)
        self._tell(f"active tasks: {listed_tasks(active)}; standby tasks: {listed_tasks(standby)}")

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Remove the tasks, after the current batch."""
        with self._lock:
            self.active = self.active - active.keys()
            self.standby = self.standby - standby.keys()

    def restoring_tasks(self) -> AbstractSet[TaskId]:
        """Return the fresh tasks, also those that are given up before a join and come back."""
        with self._lock:
            return self.fresh

    def on_error(self, why: str) -> None:
        """Pass the error to `tell`."""
        self._tell(why)

    def tasks(self) -> tuple[AbstractSet[TaskId], AbstractSet[TaskId]]:
        """Return the fresh and the standby tasks, consistently."""
        with self._lock:
            return self.fresh & self.active, self.standby

    @contextmanager
    def working(self, restored: AbstractSet[TaskId] = _NONE) -> Iterator[AbstractSet[TaskId]]:
        """Yield the active tasks to process; none is revoked until the block ends, so be brief.

        Args:
            restored: tasks whose state is now restored.
        """
        with self._lock:
            self.fresh = self.fresh - restored
            yield self.active - self.fresh


def listed_tasks(tasks: Iterable[TaskId]) -> str:
    """Return tasks as text, sorted; `none` without any."""
    return " ".join(str(task) for task in sorted(tasks, key=task_order)) or "none"
