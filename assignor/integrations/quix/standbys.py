"""Standby copies of a Quix application's stores: a thread that follows changelogs.

Quix restores a store when its partition is assigned, and processes nothing meanwhile. A standby
has most of the changelog applied before. The copy is in the files in which Quix looks for it, so
Quix's own recovery reads only what follows. RocksDB opens a database once: a copy is closed before
Quix opens it, and `follow` waits for that.

As Quix's recovery, a standby applies a record only if the group has committed the input from which
the record was made. A later record waits until then.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException
from confluent_kafka import TopicPartition as Position
from quixstreams.state.metadata import CHANGELOG_PROCESSED_OFFSETS_MESSAGE_HEADER
from quixstreams.state.recovery import RecoveryPartition

from assignor.integrations.quix.state import QuixState, following_offset
from assignor.logs import line_logger
from encoding import TaskId, TopicPartition, task_order

_log = line_logger(__name__)

_BATCH: Final = 500
_WAIT_S: Final = 0.2
_COMMITS_EVERY_S: Final = 1.0
_REQUEST_S: Final = 10.0
_HELD_MOST: Final = 10_000
"""Records that a copy holds until their input is committed; then its changelog is paused."""


@dataclass(slots=True)
class _Copy:
    """A store partition that this thread has open.

    Attributes:
        partition: of the changelog.
        inputs: input partitions of its task.
        store: the store that opened it.
        opened: Quix's store partition.
        recovery: Quix's code that applies a record.
        committed: input topic -> committed offset, as last read; shared with `recovery`.
        position: offset of the next record to read.
        held: records that were read and not applied.
        is_paused: whether its changelog is paused.
        is_restored: whether it has had all that its changelog had.
    """

    partition: TopicPartition
    inputs: tuple[TopicPartition, ...]
    store: Any
    opened: Any
    recovery: Any
    committed: dict[str, int]
    position: int
    held: deque[Any] = field(default_factory=deque)
    is_paused: bool = False
    is_restored: bool = False


class StandbyFollower:
    """Follows the changelogs of standby tasks on a thread of its own.

    Args:
        settings: of a `confluent_kafka.Consumer` that reaches the cluster; its group is the one
            whose commits are read, and it never joins it.
        state: where the copies are; it is told how far each is.

    Attributes:
        applied: number of changelog records that were applied.
    """

    def __init__(self, settings: Mapping[str, Any], state: QuixState) -> None:
        self._settings = {
            **settings,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
        }
        self._state = state
        self._wanted: frozenset[TaskId] = frozenset()
        self._open: dict[TopicPartition, _Copy] = {}
        self._refused: set[TopicPartition] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._ended = False
        self._next_commits_s = 0.0
        self.applied = 0
        self._thread = threading.Thread(target=self._run, name="quix-standbys", daemon=True)

    def follow(self, tasks: Collection[TaskId]) -> None:
        """Follow these tasks from now on; wait until the copies of all others are closed."""
        with self._changed:
            self._wanted = frozenset(tasks)
            self._refused.clear()
            self._changed.notify_all()
            if tasks and not self._thread.ident:
                self._thread.start()
            self._changed.wait_for(lambda: self._ended or not self._superfluous())

    def close(self) -> None:
        """Close every copy, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.ident:
            self._thread.join()

    # On the thread

    def _superfluous(self) -> list[TopicPartition]:
        """Return open copies that are not wanted; `_changed` is held."""
        if not (self._thread.ident and self._open):
            return []
        return [
            each
            for each, held in self._open.items()
            if self._closed or not self._state.tasks(held.inputs) <= self._wanted
        ]

    def _run(self) -> None:
        try:
            with closing(Consumer(self._settings)) as consumer:
                self._follow_on(consumer)
        except Exception:  # noqa: BLE001 whatever ends a thread is logged
            # The application continues: it restores from the changelog what no standby has read.
            _log.exception("standbys are not followed any more")
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _follow_on(self, consumer: Any) -> None:
        """Follow until `close`; leave no copy open."""
        try:
            while not self._closed:
                self._adopt(consumer)
                self._read(consumer)
        finally:
            for partition in sorted(self._open):
                self._drop(consumer, partition)

    def _adopt(self, consumer: Any) -> None:
        """Close the copies that are no longer wanted, then open new ones; wait if there is none."""
        with self._changed:
            superfluous = self._superfluous()
        for partition in sorted(superfluous):
            self._drop(consumer, partition)
        with self._changed:
            self._changed.notify_all()
            # Superfluous again only once `follow` is called anew, which waits for the next turn.
            wanted = self._wanted
        missing = [
            (task, partition)
            for task in sorted(wanted, key=task_order)
            for partition in sorted(self._state.copies(task))
            if partition not in self._open and partition not in self._refused
        ]
        for task, partition in missing:
            self._take(consumer, task, partition)
        if not self._open:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or self._wanted != wanted, _COMMITS_EVERY_S
                )

    def _take(self, consumer: Any, task: TaskId, partition: TopicPartition) -> None:
        """Open a copy; a store that cannot be opened is left alone, and the reason is logged."""
        with self._changed:
            if task not in self._wanted:
                return  # the application may have it open by now
            store = self._state.copies(task)[partition]
            try:
                opened = store.assign_partition(partition.partition)
            except Exception as error:  # noqa: BLE001 rocksdict and Quix raise no common class
                self._refused.add(partition)
                self._state.note(partition, None)
                _log.warning("%s is not followed: %s", _shown(partition), error)
                return
            inputs, committed = self._state.inputs(task), dict[str, int]()
            # Its high watermark is only for Quix's own loop.
            recovery = RecoveryPartition(
                partition.topic, partition.partition, opened, committed, lowwater=0, highwater=0
            )
            following = following_offset(opened) or 0
            self._open[partition] = _Copy(
                partition, inputs, store, opened, recovery, committed, following
            )
        consumer.incremental_assign([Position(*partition, following or OFFSET_BEGINNING)])

    def _drop(self, consumer: Any, partition: TopicPartition) -> None:
        """Stop following a copy, and close it."""
        held = self._open[partition]
        try:
            consumer.incremental_unassign([Position(*partition)])
            self._state.note(partition, following_offset(held.opened))
        finally:
            held.store.revoke_partition(partition.partition)
            with self._changed:
                del self._open[partition]

    def _read(self, consumer: Any) -> None:
        """Read a batch and apply what is committed."""
        if not self._open:
            return
        restarted = set()
        for message in filter(_is_record, consumer.consume(_BATCH, _WAIT_S)):
            held = self._open.get(TopicPartition(message.topic(), message.partition()))
            if held is not None and message.offset() < held.position:
                restarted.add(held.partition)
            elif held is not None:
                held.position = message.offset() + 1
                held.held.append(message)
        for partition in sorted(restarted):
            self._rebuild(consumer, partition)
        for held in list(self._open.values()):
            self._apply(consumer, held)
            if not held.is_restored and not held.held:
                self._end_restoring(consumer, held)
        if any(held.held for held in self._open.values()):
            self._read_commits(consumer)

    def _rebuild(self, consumer: Any, partition: TopicPartition) -> None:
        """Delete a copy whose changelog was deleted and created again; the next turn reads it."""
        store = self._open[partition].store
        _log.warning("%s begins anew; its standby is built again", _shown(partition))
        self._drop(consumer, partition)
        store.destroy_partition(partition.partition)
        self._state.note(partition, None)

    def _apply(self, consumer: Any, held: _Copy) -> None:
        """Apply the records whose input is committed, in order."""
        applied = 0
        while held.held and _is_committed(held.held[0], held.committed):
            held.recovery.recover_from_changelog_message(held.held.popleft())
            applied += 1
        if applied:
            self.applied += applied
            self._state.note(held.partition, following_offset(held.opened))
        is_full = len(held.held) >= _HELD_MOST
        if is_full != held.is_paused:
            change = consumer.pause if is_full else consumer.resume
            change([Position(*held.partition)])
            held.is_paused = is_full

    def _end_restoring(self, consumer: Any, held: _Copy) -> None:
        """Have Quix end the restoration of a copy that has all of its changelog.

        While a store is restored, Quix lists its keys, to find out whether the records of an old
        release are among them, and answers that at the end. A standby answers it once; otherwise
        each opening of the copy would warn of an interrupted restoration.
        """
        try:
            _, end = consumer.get_watermark_offsets(Position(*held.partition), timeout=_REQUEST_S)
        except (KafkaException, TypeError):  # no answer in time; the next turn asks again
            return
        if held.position >= end:
            held.opened.complete_recovery()
            held.opened._migration_done_at_open = True
            held.is_restored = True

    def _read_commits(self, consumer: Any) -> None:
        """Read how far the group has committed the inputs of copies that wait for it."""
        if time.monotonic() < self._next_commits_s:
            return
        self._next_commits_s = time.monotonic() + _COMMITS_EVERY_S
        waiting = [held for held in self._open.values() if held.held]
        inputs = sorted({each for held in waiting for each in held.inputs})
        try:
            found = consumer.committed([Position(*each) for each in inputs], timeout=_REQUEST_S)
        except KafkaException as error:
            _log.info("standbys wait for the group's commits: %s", error)
            return
        offsets = {
            TopicPartition(each.topic, each.partition): each.offset
            for each in found
            if not each.error
        }
        for held in waiting:
            held.committed.update(
                (each.topic, offsets[each]) for each in held.inputs if each in offsets
            )
            self._apply(consumer, held)


def _is_record(message: Any) -> bool:
    """Whether this is a record, not an error from which librdkafka recovers by itself.

    Raises:
        KafkaException: librdkafka cannot go on.
    """
    error = message.error()
    if error is None:
        return True
    if error.fatal():
        raise KafkaException(error)
    _log.info("standbys: %s", error.str())
    return False


def _is_committed(message: Any, committed: Mapping[str, int]) -> bool:
    """Whether the group has committed the input from which a changelog record was made.

    Records of old releases of Quix do not name their input; Quix applies them at once, too.
    """
    named = dict(message.headers() or ()).get(CHANGELOG_PROCESSED_OFFSETS_MESSAGE_HEADER)
    processed: Mapping[str, int] = json.loads(named) if named else None or {}
    return all(offset < committed.get(topic, -1) for topic, offset in processed.items())


def _shown(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
