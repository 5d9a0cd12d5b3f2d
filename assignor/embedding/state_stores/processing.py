"""The function that processes records: what it gets, when it is called, and what if it fails."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from assignor.config import check_has_run
from assignor.embedding.bad_records import BadRecords
from assignor.embedding.errors import StoreReadOnly, is_interrupt
from assignor.embedding.state_stores.access import ChangelogAccess
from assignor.embedding.state_stores.copies import TaskCopy, Work
from assignor.embedding.state_stores.held_input import HeldInput, SlowRecords
from assignor.embedding.state_stores.input_offsets import InputOffsets
from assignor.embedding.state_stores.layout import StoreLayout
from assignor.embedding.state_stores.stores import Batch, StateStore, Store
from assignor.embedding.state_stores.writing import (
    COMMIT_SIZE,
    Divided,
    OpenBatch,
    write_running,
)
from assignor.errors import TopologyError
from assignor.stores import OutputTooLarge, RecordTooLarge
from encoding import RebalanceError, TaskId, TopicPartition

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

        An error decides about the input record, whatever the function does with it: to catch it, or
        to raise another one, would lose the output.

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
        try:
            self._access.send(topic, key, value, partition)
        except RebalanceError as error:
            self._batch.failed = error
            raise


Handler = Callable[[Any, TaskState], object]
"""Processes a record of a client with the stores of its task."""


class HeldProcessing:
    """Processes records that are held into the stores of their tasks.

    Args:
        held: the records.
        layout: of the stores.
        access: to the changelogs, and for outputs.
        inputs: how far the states have their input.
        bad: decides about records that cannot be processed.

    Attributes:
        slow: which records are left to a later call.
        work: what was processed.
    """

    def __init__(
        self,
        held: HeldInput,
        layout: StoreLayout,
        access: ChangelogAccess,
        inputs: InputOffsets,
        bad: BadRecords,
    ) -> None:
        self._held = held
        self._inputs = inputs
        self._layout = layout
        self._access = access
        self._bad = bad
        # Most bytes of a commit, until a changelog refuses one.
        self._commit_size = COMMIT_SIZE
        # Records are written one by one, to see whose writes or outputs a broker refuses.
        self._is_single = False
        self._refused: dict[tuple[TopicPartition, int], RecordTooLarge] = {}
        self.slow = SlowRecords()
        self.work = Work(bad.counts)

    def run(
        self, copies: Iterable[TaskCopy], handle: Handler, is_over: Callable[[], bool]
    ) -> dict[Any, int]:
        """Process what is held of these tasks, until it `is_over`; return what can be committed.

        At least one record is processed, unless all are `slow`. Those that are not stay held.

        Raises:
            Divided: as `write_running`; so are the errors of `write_batches`.
            Exception: of `handle`; the records before it are written.
        """
        self.work.ended = ""
        opened = [OpenBatch(copy) for copy in copies]
        try:
            for each in opened:
                self._run_task(each, opened, handle, is_over)
            self._write(opened)
            self.slow.end()
            self._is_single = False
        finally:
            for each in opened:
                each.batch.is_open = False
                each.batch.begin()
        done: dict[Any, int] = {}
        for each in opened:
            if each.is_running:
                done |= self._held.finish(each.copy.task, each.copy.inputs)
        return done

    def _run_task(
        self,
        each: OpenBatch,
        opened: Sequence[OpenBatch],
        handle: Handler,
        is_over: Callable[[], bool],
    ) -> None:
        state = TaskState(each.copy, self._layout, self._access, each.batch)
        for partition, offset, record in self._held.of_task(each.copy.task):
            if self._passes(each, partition, offset) or self.slow.skips(partition, offset):
                continue
            if is_over() and any(other.inputs for other in opened):
                self.slow.cut_off()
                return
            each.batch.begin_record()
            failure = self._failure(each, (partition, offset), record, state, handle)
            if failure is not None:
                # The records before it count, so that the next call begins with this one.
                self._write(opened)
                raise failure  # outside of an `except`, which would change what it follows from
            if each.batch.has_earlier and each.batch.size > self._commit_size:
                # Each commit fits into one record, unless a single input record writes too much.
                resume = each.batch.take_last()
                self._write(opened)
                if not each.is_running:
                    return
                resume()
            self.work.records[each.copy.task] += 1
            each.inputs[partition] = offset + 1
            self._inputs.processed(partition)
            size = sum(other.batch.size for other in opened)
            if size > (0 if self._is_single else self._commit_size):
                self._write(opened, (partition, offset))
                if not each.is_running:
                    return

    def _process(
        self,
        place: tuple[TopicPartition, int],
        record: Any,
        state: TaskState,
        handle: Handler,
        batch: Batch,
    ) -> None:
        """Call the function; raise what it raises, or the error of what it has written."""
        if place in self._refused:
            raise self._refused[place]
        self.work.current = *place, time.monotonic()
        try:
            _call(handle, record, state)
            batch.check_sent()
        except Exception:
            if self._is_single:
                self._access.flush()  # an output that is too large is the error to decide about
            raise
        finally:
            self.work.current = None
        if self._is_single:
            self._access.flush()

    def _failure(
        self,
        each: OpenBatch,
        place: tuple[TopicPartition, int],
        record: Any,
        state: TaskState,
        handle: Handler,
    ) -> Exception | None:
        """Call the function; return what to raise for a record. None: it counts as processed."""
        handled = sys.exception()
        try:
            self._process(place, record, state, handle, each.batch)
        except Exception as error:  # noqa: BLE001 returned, unless the application skips the record
            unsent = None if is_interrupt(error) else each.batch.failed
            each.batch.take_last()
            return self._decision(each, place, record, unsent or error, handled)
        return None

    def _decision(
        self,
        each: OpenBatch,
        place: tuple[TopicPartition, int],
        record: Any,
        error: Exception,
        handled: BaseException | None,
    ) -> Exception | None:
        """Return what to raise for a bad record; None: it counts as processed, without writes."""
        self.work.current = *place, time.monotonic()
        try:
            send = self._access.send
            failure = self._bad.failure(each.copy.task, record, error, send, handled)
        except Exception as undecided:  # noqa: BLE001 the caller raises it
            return undecided
        finally:
            self.work.current = None
        if failure is not None:
            return failure
        if self._is_single:
            try:
                self._access.flush()
            except OutputTooLarge as too_large:
                too_large.add_note(
                    f"this is the dead letter of {place[0]}, offset {place[1]}: allow "
                    "records of the input with some more headers, by max_request_size of the "
                    "producer and max.message.bytes of the topic for dead letters"
                )
                return too_large
        each.batch.begin_record()
        self._refused.pop(place, None)
        return None

    def _passes(self, each: OpenBatch, partition: TopicPartition, offset: int) -> bool:
        """Return whether a record is passed over, as the state has it."""
        has_it = offset < each.next_input(partition)
        if has_it and partition not in each.inputs:
            self._inputs.look(each.copy, partition, offset)
        return has_it and offset < each.next_input(partition)

    def _write(
        self, opened: Sequence[OpenBatch], last: tuple[TopicPartition, int] | None = None
    ) -> None:
        """Write what is processed so far, the `last` record alone if records go one by one.

        Raises:
            Divided: as `write_running`; or a record may be skipped, once it is known which one.
        """
        begin_s = time.monotonic()
        is_commit = any(each.inputs for each in opened)
        try:
            write_running(self._access, opened, limit=self._commit_size)
            self.work.commits += is_commit
        except Divided as error:
            self._commit_size = error.limit
            raise
        except (OutputTooLarge, RecordTooLarge) as error:
            if self._bad.always_fails or (self._is_single and last is None):
                raise
            if self._is_single and last is not None and isinstance(error, RecordTooLarge):
                self._refused[last] = error
                self._commit_size = COMMIT_SIZE  # not the commits were too large
            self._is_single = True
            raise Divided(self._commit_size) from error
        finally:
            self.work.commit_s += is_commit * (time.monotonic() - begin_s)


def _call(handle: Handler, record: Any, state: TaskState) -> None:
    """Call the function; a cancellation that it raises is an error of its own.

    Nothing is awaited here: it is not that of a coroutine that runs the loop.
    """
    try:
        check_has_run(handle(record, state))
    except asyncio.CancelledError as error:
        raise CancelledError(*error.args) from error
