"""The stores of one task, as the function that processes records and as queries get them."""

from typing import TypeVar

from assignor.embedding.errors import StoreReadOnly
from assignor.embedding.state_stores.access import ChangelogAccess
from assignor.embedding.state_stores.copies import TaskCopy
from assignor.embedding.state_stores.layout import StoreLayout
from assignor.embedding.state_stores.stores import Batch, StateStore, Store
from assignor.errors import TopologyError
from encoding import TaskId

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class TaskState:
    """The stores of one task, and its way to other topics.

    Args:
        copy: the task.
        layout: of the application's stores.
        access: for outputs.
        batch: where writes go; None: everything is read-only.
    """

    def __init__(
        self,
        copy: TaskCopy,
        layout: StoreLayout,
        access: ChangelogAccess,
        batch: Batch | None = None,
    ) -> None:
        self._copy = copy
        self._layout = layout
        self._access = access
        self._batch = batch

    @property
    def task(self) -> TaskId:
        """The task."""
        return self._copy.task

    def __getitem__(self, store: StateStore[_Key, _Value]) -> Store[_Key, _Value]:
        """Return a store of the task.

        Raises:
            TopologyError: the task has no such store.
        """
        replica = self._copy.replicas.get(self._layout.checked(store))
        if replica is None:
            listed = ", ".join(self._copy.replicas) or "none"
            raise TopologyError(
                f"task {self.task} has no store {store.name!r}; its stores: {listed}. Connect the "
                "store to a processor of this subtopology, or use it in its own tasks"
            )
        return Store(store, replica.table, self.task, self._batch)

    def send(
        self,
        topic: str,
        *,
        key: bytes | None = None,
        value: bytes | None = None,
        partition: int | None = None,
    ) -> None:
        """Write a record to another topic, before the state of this batch counts: at least once.

        Args:
            topic: full name of the topic.
            key: its key.
            value: its value.
            partition: None: as Kafka's default partitioner chooses.

        Raises:
            StoreReadOnly: the batch is over.
            ClusterUnavailable: the record cannot be written.
        """
        if self._batch is None or not self._batch.is_open:
            raise StoreReadOnly(
                f"task {self.task} sends nothing to {topic} now: send only in the function that "
                "processes a record, while it runs"
            )
        self._access.send(topic, key, value, partition)
