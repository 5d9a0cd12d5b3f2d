"""Which tasks an application runs: between the client's thread, which hears, and its own."""

import threading
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from assignor.rebalance import PartitionsByTask, TasksListener
from encoding import TaskId, task_order

_NONE: AbstractSet[TaskId] = frozenset()


class RunningTasks(TasksListener):
    """A listener that keeps book, for applications with one working thread.

    A task is revoked only between two uses of `working`, so no batch of it is under way when the
    group goes on. A task that is new here is `fresh` until its state is restored; records of it
    that come before are to be skipped, and are fetched again.

    Args:
        tell: called with a sentence for people after each assignment and each error, on whatever
            thread has it.

    Attributes:
        active, standby: tasks as of the last assignment.
        fresh: active tasks that the working thread has not restored yet.
    """

    def __init__(self, tell: Callable[[str], object] = lambda _: None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self.active = self.standby = self.fresh = _NONE

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Keep what runs already; the rest is fresh."""
        with self._lock:
            self.fresh = (self.fresh | (active.keys() - self.active)) & active.keys()
            self.active, self.standby = frozenset(active), frozenset(standby)
        self._tell(f"runs {_listed(active)}, keeps {_listed(standby)} warm")

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Wait for the batch under way; the tasks run here no more."""
        with self._lock:
            self.active = self.active - active.keys()
            self.standby = self.standby - standby.keys()

    def on_error(self, why: str) -> None:
        """Tell it."""
        self._tell(why)

    def tasks(self) -> tuple[AbstractSet[TaskId], AbstractSet[TaskId]]:
        """Fresh and standby tasks, at one moment."""
        with self._lock:
            return self.fresh & self.active, self.standby

    @contextmanager
    def working(self, restored: AbstractSet[TaskId] = _NONE) -> Iterator[AbstractSet[TaskId]]:
        """The tasks to work on, which stay this member's until the block ends; be brief.

        Args:
            restored: tasks whose state is complete from now on.
        """
        with self._lock:
            self.fresh = self.fresh - restored
            yield self.active - self.fresh


def _listed(tasks: Iterable[TaskId]) -> str:
    return " ".join(str(task) for task in sorted(tasks, key=task_order)) or "nothing"
