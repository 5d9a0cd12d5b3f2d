"""The state stores of a member: they follow its tasks, and records are processed into them."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import MappingProxyType
from typing import Any, Final, Self

from assignor.embedding.bad_records import BadRecordAction, BadRecords, OnBadRecord
from assignor.embedding.errors import ChangelogLost, CopiesKept, MemberStopped
from assignor.embedding.internal_topics import DELETE_RETENTION_MS
from assignor.embedding.process_id import LockedDirectory
from assignor.embedding.running_tasks import RunningTasks, listed_tasks
from assignor.embedding.state_stores.access import ChangelogAccess
from assignor.embedding.state_stores.copies import Phase, TaskCopy, TaskProgress, progress_of
from assignor.embedding.state_stores.held_input import HeldInput
from assignor.embedding.state_stores.input_offsets import InputOffsets
from assignor.embedding.state_stores.layout import AnyStore, check_settings, store_layout
from assignor.embedding.state_stores.local_state import CLEANUP_DELAY_S, LocalState
from assignor.embedding.state_stores.processing import Handler, HeldProcessing, TaskState
from assignor.embedding.state_stores.records import PROCESS_BYTES
from assignor.embedding.state_stores.tables import no_copy
from assignor.embedding.state_stores.takeover import Takeovers
from assignor.embedding.state_stores.writing import Divided
from assignor.errors import ConfigError
from assignor.rebalance import PartitionsByTask
from assignor.topology import Topology
from encoding import TaskId, TopicPartition, shown, task_order

_FOLLOW_S: Final = 0.1


class TaskStores(RunningTasks):
    """A listener that keeps the state stores of the member's tasks, with their changelogs.

    State is exactly-once: the writes of a record and its input offset count together or not at all,
    also when the process is killed, when another member restores the task, and when a member that
    was paused continues to write. Outputs to other topics are at-least-once.

    Use it on one thread, except for `stores[task]`, `local_state` and the listener's callbacks.

    Args:
        topology: of the application.
        stores: the state stores, as `SqliteStore` or `DictStore`. Stores that the topology has
            beside them are not touched.
        application_id: the group id.
        access: the changelogs and a producer, such as `KafkaChangelogs`; `close` closes it.
        state_dir: directory of `SqliteStore`: the one that the assignor has. None: not needed.
        tell: called with a sentence after each new assignment, restoration and error.
        restore_s: longest time that one call of `process` restores; the member does not poll
            meanwhile, so that it has to be well below the session timeout.
        cleanup_delay_s: how long files of tasks are kept that moved away.
        delete_retention_ms: of the changelogs, as in `InternalTopicSettings`; a copy that lacks
            records, and last had all of them longer ago than half of it, is rebuilt.
        expires: all changelogs have cleanup.policy=compact,delete, not only windowed ones.
        on_bad_record: what becomes of records that cannot be processed.

    Attributes:
        application_id, work: as given, and what was processed.

    Raises:
        TopologyError: a store is not in the topology, or has no changelog of its own.
        ConfigError: a store has files, and there is no `state_dir`; or a value is wrong.
        StateDirectoryLocked: another process uses the directory.
        StoreError: the directory cannot be used.
        CopiesKept: the directory has copies that are kept; nothing is closed, such as `access`.
    """

    def __init__(
        self,
        topology: Topology,
        stores: Sequence[AnyStore],
        *,
        application_id: str,
        access: ChangelogAccess,
        state_dir: str | Path | None = None,
        tell: Callable[[str], object] = lambda _: None,
        restore_s: float = 0.5,
        cleanup_delay_s: float = CLEANUP_DELAY_S,
        delete_retention_ms: int = DELETE_RETENTION_MS,
        on_bad_record: OnBadRecord = BadRecordAction.FAIL,
        expires: bool = False,
    ) -> None:
        super().__init__(tell)
        self._layout = store_layout(topology, application_id, stores, expires=expires)
        check_settings(restore_s=restore_s)
        self._local = LocalState(self._layout, state_dir, cleanup_delay_s, delete_retention_ms)
        self._access = access
        self._restore_s = restore_s
        self._takeovers = Takeovers(access, os.urandom(PROCESS_BYTES))
        self._held = HeldInput(self._layout.task_of_input)
        self._input = InputOffsets(access, application_id, self._layout, self._held)
        bad = BadRecords(on_bad_record, self._layout.readers)
        self._processing = HeldProcessing(self._held, self._layout, access, self._input, bad)
        self.work = self._processing.work
        self._copies: dict[TaskId, TaskCopy] = {}
        self._sums: Mapping[TaskId, int] = self._local.idle_sums
        self._inputs: PartitionsByTask = {}
        self._is_closed = self._follows_more = False
        self._copies_kept: CopiesKept | None = None
        self.application_id = application_id
        # Tasks that were revoked; they may have been assigned again since.
        self._revoked: SimpleQueue[TaskId] = SimpleQueue()

    # On the client's thread

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Record the assignment."""
        super().on_tasks_assigned(active, standby)
        self._inputs = dict(active)

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Suspend the tasks, after the current batch; those that stay are claimed again."""
        super().on_tasks_revoked(active, standby)
        for task in active:
            self._revoked.put(task)

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Return the changelog offsets of all copies here, for the leader; 0 without a copy."""
        return {**dict.fromkeys(self.restoring_tasks(), 0), **self._sums}

    def restoring_tasks(self) -> AbstractSet[TaskId]:
        """Return the active tasks that are not restored.

        A task that was restored when it was given up before a rebalance, and came back with its
        answer, is not among them: its state is the latest, although `process` has to claim it.
        """
        return {task for task in self._fresh - self._kept if self._layout.stores_of(task)}

    # On the application's thread

    def process(
        self,
        batch: Mapping[Any, Sequence[Any]],
        handle: Handler,
        *,
        is_over: Callable[[], bool] = lambda: False,
        slow: Mapping[TopicPartition, int] = MappingProxyType({}),
        are_committed: bool = True,
    ) -> dict[Any, int]:
        """Process a batch; follow the assignment, restore new tasks and update standbys.

        Records of tasks that are not restored yet are kept for a later call: pause the partitions
        of `waiting`. Records that the state has already are skipped.

        Args:
            batch: partition -> records, as the client polls them or a loop yields them; empty
                batches too.
            handle: called with each record and the stores of its task. If it raises, the record
                has no effect on state; it and those behind it are processed by the next call, or
                the next member.
            is_over: called before each record but the first one: return True to keep the rest of
                the batch for a later call, such as when it is time to poll.
            slow: partition -> offset of a record that took too long: a later call has it alone.
            are_committed: whether all offsets are that earlier calls have returned; else they are
                returned again, and no record of `slow` begins.

        Returns:
            Partition -> offset to commit: the client's position where a loop's batch has it, and no
            record before it is left.

        Raises:
            ClusterUnavailable: the changelogs cannot be read or written. Nothing is lost: call
                `process` again.
            StoreError: a file of a store cannot be used.
            TopologyError: no source of the topology reads a topic of the batch.
            MemberStopped: the stores are closed; `CopiesKept`: a changelog lacks what copies have.
        """
        if self._is_closed:
            raise MemberStopped("these state stores are closed; make others to go on")
        self._give_up_revoked()  # records of the batch are those of the assignment after it
        self._held.hold(batch)
        self._input.settled.update(getattr(batch, "settled", {}))
        self._input.topic_ids = getattr(batch, "topic_ids", {})
        self._processing.slow.begin(slow, are_committed=are_committed)
        with self.work.noting_waits(batch, self._pending), self._noting_copies():
            self._follow_assignment()
            self._takeovers.look_at_idle(self._copies.values())
            self._take_over()
            running = {t for t, copy in self._copies.items() if copy.phase is Phase.RUNNING}
            copies = [self._copies[t] for t in sorted(running, key=task_order)]
            self._input.take_over(copies, self._inputs, are_committed=are_committed)
            done: dict[Any, int] = {}
            with suppress(Divided), self.working(running) as active:
                tasks = sorted(active & running, key=task_order)
                done = self._processing.run([self._copies[t] for t in tasks], handle, is_over)
                positions = getattr(batch, "positions", {})
                running &= {t for t in tasks if self._copies[t].phase is Phase.RUNNING}
                done = self._input.committable(running, positions, done)
            self._follow_changelogs()
        return done

    def check_follows(
        self, listener: object, group_id: object, directory: LockedDirectory | None
    ) -> None:
        """Check that these are the stores of a member, or raise ConfigError."""
        if listener is not self:
            raise ConfigError(
                "these state stores are not the listener of the consumer, so they would get no "
                "task; make the consumer with listener=stores"
            )
        if group_id != self.application_id:
            raise ConfigError(
                f"these state stores have application_id={shown(repr(self.application_id))}, and "
                f"the consumer has group id {shown(repr(group_id))}; give both the same"
            )
        self._local.check_shared(directory)

    @property
    def waiting(self) -> frozenset[TopicPartition]:
        """Input partitions to fetch nothing from.

        Their active tasks are not restored, or have records that are not processed.
        """
        inputs, copies = self._inputs, self._copies.copy()
        running = {task for task, copy in copies.items() if copy.phase is Phase.RUNNING}
        tasks = (self.active - running) | (self.active & self._held.tasks)
        return frozenset(p for task in tasks for p in inputs.get(task, ()))

    @property
    def has_rest(self) -> bool:
        """Whether `process` has more to do, with records or changelogs: do not wait in a poll."""
        reads = self._takeovers.has_more or self._follows_more
        return reads or bool(self.active & self._held.tasks - self.restoring_tasks())

    def unread(self) -> dict[Any, int]:
        """Return client's partition -> where to seek, as records from there on were dropped."""
        return self._held.unread()

    def close(self) -> None:
        """Close stores, changelogs and directory; after the consumer's close. Idempotent."""
        self._is_closed = True
        with ExitStack() as closing:  # an interrupt in one of them leaves none of the others open
            closing.callback(self._access.close)
            closing.callback(self._local.close)
            for copy in self._copies.values():
                closing.callback(self._local.close_copy, copy)
        self._copies = {}

    def __enter__(self) -> Self:
        """Return the stores."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self.close()

    # On any thread

    def __getitem__(self, task: TaskId) -> TaskState:
        """Return the stores of an active, standby or suspended task, for reading.

        Raises:
            StoreNotHeld: the task is not here, or not restored yet.
        """
        copy = self._copies.get(task)
        if copy is None or (task in self.restoring_tasks() and not copy.phase.is_settled):
            raise no_copy(task, is_assigned=task in self.active | self.standby)
        return TaskState(copy, self._layout, self._access)

    def local_state(self, store: AnyStore, partition: int) -> TaskState:
        """Return the stores of the task that has a partition of a given store, for reading.

        Raises:
            StoreNotHeld: the task is neither active, standby nor suspended here.
            TopologyError: the store was not given.
        """
        return self[self._layout.task_of_store(store, partition)]

    def progress(self) -> list[TaskProgress]:
        """Return how far the copies of tasks are that are open here."""
        return [progress_of(copy, self._access) for copy in self._copies.copy().values()]

    # Steps of `process`

    @contextmanager
    def _noting_copies(self) -> Iterator[None]:
        """Note how far copies are after the block; keep them where changelogs have lost records."""
        if self._copies_kept is not None:
            raise self._copies_kept
        try:
            yield
        except ChangelogLost as lost:
            self._copies_kept = self._local.keep(lost, self._copies.values())
            raise self._copies_kept from None
        finally:
            held = {task: copy.offset_sum for task, copy in self._copies.items() if copy.replicas}
            self._sums = {**self._local.idle_sums, **held}

    def _give_up_revoked(self) -> None:
        """Claim tasks again that were revoked and came back."""
        with suppress(Empty):
            while True:
                task = self._revoked.get_nowait()
                if task in self._copies:
                    self._copies[task].suspend()

    def _follow_assignment(self) -> None:
        """Open and close copies, so that they are those of the assignment.

        Copies of suspended tasks stay open until the assignment that says whether the tasks stay.
        """
        with self._locked():
            active, standby = frozenset(self.active), frozenset(self.standby)
            suspended = self.suspended - active - standby
        for task in self._copies.keys() - active - standby - suspended:
            self._local.put_away(self._copies.pop(task))
        for task in sorted((active | standby) - self._copies.keys(), key=task_order):
            # None: another member of this process has it open, and closes it soon.
            if (copy := self._local.open(task)) is not None:
                self._copies[task] = copy
        for task in active & self._copies.keys():
            self._copies[task].activate()
        for task in (standby - active) & self._copies.keys():
            self._copies[task].give_up()
        for task in suspended & self._copies.keys():
            self._copies[task].suspend()
        # Suspended tasks are among them.
        self._held.keep_only(self._inputs.keys())
        self._local.remove_unused()

    def _take_over(self) -> None:
        """Restore and claim active tasks that do not run yet, for a limited time."""
        pending, restoring = self._pending(), self.restoring_tasks()
        self._takeovers.advance(pending, limit_s=self._restore_s)
        changes = {copy.task: copy.restored for copy in pending if copy.phase is Phase.RUNNING}
        # A task that was kept is claimed again, and restored only if another member has run it.
        restored = [task for task, count in changes.items() if count or task in restoring]
        if restored:
            read = sum(changes.values())
            self._tell(f"restored tasks: {listed_tasks(restored)}; {read} changelog records read")

    def _follow_changelogs(self) -> None:
        """Update standbys, for a short time, unless active tasks are being restored."""
        self._follows_more = False
        if self._pending():
            return
        copies = [copy for copy in self._copies.values() if copy.phase is Phase.FOLLOWING]
        replicas = [replica for copy in copies for replica in copy.replicas.values()]
        until_s = time.monotonic() + _FOLLOW_S
        while (more := bool(self._access.read(replicas))) and time.monotonic() < until_s:
            pass
        self._follows_more = more

    def _pending(self) -> list[TaskCopy]:
        return [copy for copy in self._copies.values() if not copy.phase.is_settled]
