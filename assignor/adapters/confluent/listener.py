"""A `TasksListener` whose callbacks run on the application's thread, before those of partitions."""

from collections.abc import Callable, Mapping

from assignor.adapters.confluent.events import Call, Mailbox
from assignor.rebalance import PartitionsByTask, TasksListener
from encoding import TaskId


class DeferredListener(TasksListener):
    """Passes calls to the application's listener through the mailbox.

    `task_offsets` is asked at once, on the client's I/O thread, since the subscription contains its
    answer; `on_error` is called at once, too.
    """

    def __init__(self, listener: TasksListener, mailbox: Mailbox) -> None:
        self._listener = listener
        self._mailbox = mailbox

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Have the listener called by the next `poll`."""
        self._post(lambda: self._listener.on_tasks_assigned(active, standby))

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Have the listener called by the next `poll`."""
        self._post(lambda: self._listener.on_tasks_revoked(active, standby))

    def on_tasks_lost(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Have the listener called by the next `poll`."""
        self._post(lambda: self._listener.on_tasks_lost(active, standby))

    def on_shutdown_requested(self) -> None:
        """Have the listener called by the next `poll`."""
        self._post(self._listener.on_shutdown_requested)

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Return what the listener returns."""
        return self._listener.task_offsets()

    def on_error(self, why: str) -> None:
        """Call the listener."""
        self._listener.on_error(why)

    def _post(self, call: Callable[[], object]) -> None:
        self._mailbox.post(Call(call=call))
