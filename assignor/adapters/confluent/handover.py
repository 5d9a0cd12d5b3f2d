"""How a rebalance reaches the application: as an event, awaited on kafka-python's event loop.

Heartbeats go on meanwhile. An application that does not poll within `max.poll.interval.ms` loses
its membership, as with librdkafka: the member leaves, and joins again after the next poll.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as Position
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.errors import KafkaError as ClientError
from kafka.errors import KafkaTimeoutError
from kafka.future import Future

from assignor.adapters.confluent.commits import Commits
from assignor.adapters.confluent.events import Call, Change, Failed, Mailbox, Rebalanced
from assignor.adapters.confluent.offsets import NO_EPOCH
from assignor.adapters.confluent.settings import Settings
from assignor.embedding import ListenerFailed, is_interrupt
from assignor.logs import line_logger
from assignor.rebalance import PartitionsByTask, TasksListener
from encoding import TaskId, TopicPartition

_log = line_logger(__name__)

TICK_S: Final = 0.05
"""Between two looks at whether there is something to do."""
_COMMITTED_MS: Final = 5_000
_LEAVE_MS = 5_000  # as librdkafka: an answer may wait behind that of a JoinGroup request


class Handover(AsyncConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    """The listener of a member's `KafkaConsumer`.

    Args:
        consumer: the member's.
        settings: of the consumer.
        mailbox: of the application's thread.
        commits: of the consumer, which a change waits for.

    Attributes:
        is_abandoned: the application is gone; nothing waits for it any more.
    """

    def __init__(
        self, consumer: Any, settings: Settings, mailbox: Mailbox, commits: Commits
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._mailbox = mailbox
        self._committer, self._stored = commits.committer, commits.stored
        self._has_left = False
        self.is_abandoned = False

    # The poll interval; on any thread

    @property
    def waits_for_poll(self) -> bool:
        """Whether the member has left for the poll interval and the application still works."""
        if self._has_left and self._mailbox.idle_s() <= 0:
            self._has_left = False
        return self._has_left

    def late_s(self) -> float:
        """Return by how much the application exceeds its poll interval; not positive: not at all.

        It counts once: after the member has left it is not late again before it polls.
        """
        if self._has_left:
            return 0.0
        return self._mailbox.idle_s() - self._settings.max_poll_interval_s

    def post(self, change: Change, served: Callable[[], object] = lambda: None) -> bool:
        """Have all partitions of the member change; return whether there is one."""
        partitions = self.assigned()
        if partitions:
            self._mailbox.post(Rebalanced(change=change, partitions=partitions, served=served))
        return bool(partitions)

    def assigned(self) -> tuple[TopicPartition, ...]:
        """Return the partitions of the member, sorted."""
        return _sorted(self._consumer.assignment())

    # On kafka-python's I/O thread

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Have the application take new partitions, once it is known what is committed of them."""
        partitions = list(assigned)
        # They begin there. What is not newer is not committed by itself, as in librdkafka.
        with suppress(ClientError):
            found = await self._consumer._coordinator.fetch_committed_offsets_async(
                partitions, timeout_ms=_COMMITTED_MS
            )
            self._stored.fetched(
                _sorted(partitions),
                {TopicPartition(*each): _position(each, at) for each, at in found.items()},
            )
        await self._pass_on(Change.ASSIGNED, partitions)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Have the application give up partitions, before another member gets them."""
        await self._pass_on(Change.REVOKED, revoked)

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """Have the application drop partitions that other members have."""
        await self._pass_on(Change.LOST, lost)

    async def _pass_on(self, change: Change, partitions: Iterable[Any]) -> None:
        """Wait for the application to take a change, and for the commits that it has made."""
        consumer, done = self._consumer, Future()
        net, manager = consumer._net, consumer._manager

        def served() -> None:
            with suppress(RuntimeError):  # the client is closed
                net.call_soon_threadsafe(lambda: done.success(None))

        self._mailbox.post(Rebalanced(change=change, partitions=_sorted(partitions), served=served))
        while not done.is_done and not self.is_abandoned:
            with suppress(KafkaTimeoutError):
                await manager.wait_for(done, TICK_S * 1000)
            await self.leave_if_late()
        submitted = self._committer.submitted
        end_s = time.monotonic() + self._settings.commit_timeout_s
        while self._committer.ended < submitted and time.monotonic() < end_s:
            await net.sleep(TICK_S / 10)

    async def leave_if_late(self) -> None:
        """Leave the group if the application exceeds its poll interval."""
        late_s = self.late_s()
        if late_s <= 0 or self.is_abandoned:
            return
        self._has_left = True
        sentence = (
            f"Application maximum poll interval ({self._settings.max_poll_interval_s * 1000:.0f}ms)"
            f" exceeded by {late_s * 1000:.0f}ms"
        )
        _log.log(
            logging.INFO if self._mailbox.has_loop else logging.WARNING,
            "%s (adjust max.poll.interval.ms for long-running message processing): leaving group",
            sentence,
        )
        self._mailbox.post(Failed(error=KafkaError(KafkaError._MAX_POLL_EXCEEDED, sentence)))
        self.post(Change.LOST)
        await self._consumer._coordinator.maybe_leave_group_async("max.poll.interval.ms exceeded")


class DeferredListener(TasksListener):
    """Passes calls to the application's listener through the mailbox.

    `task_offsets`, `restoring_tasks` and `on_error` are called immediately, on the client's I/O
    thread: the subscription contains what the first two return.

    Attributes:
        listener: of the application.
    """

    def __init__(self, listener: TasksListener, mailbox: Mailbox) -> None:
        self.listener = listener
        self._mailbox = mailbox

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Have the listener called by the next `poll`."""
        self._post(lambda: self._call(self.listener.on_tasks_assigned, active, standby))

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Have the listener called by the next `poll`."""
        self._post(lambda: self._call(self.listener.on_tasks_revoked, active, standby))

    def on_tasks_lost(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Have the listener called by the next `poll`."""
        self._post(lambda: self._call(self.listener.on_tasks_lost, active, standby))

    def pause_work(self) -> None:
        """Call the listener: a rebalance here waits for the application's `poll` in any case."""
        self.listener.pause_work()

    def on_shutdown_requested(self) -> None:
        """Have the listener called by the next `poll`."""
        self._post(self.listener.on_shutdown_requested)

    @property
    def reports_offsets(self) -> bool:
        """Whether the listener does."""
        return self.listener.reports_offsets

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Return what the listener returns."""
        return self.listener.task_offsets()

    def restoring_tasks(self) -> Collection[TaskId]:
        """Return what the listener returns."""
        return self.listener.restoring_tasks()

    def on_error(self, why: str) -> None:
        """Call the listener."""
        self.listener.on_error(why)

    def _post(self, call: Callable[[], object]) -> None:
        self._mailbox.post(Call(call=call))

    def _call(self, method: Callable[..., None], *tasks: PartitionsByTask) -> None:
        """Tell the listener what becomes of tasks.

        Raises:
            ListenerFailed: the listener has raised.
        """
        try:
            method(*tasks)
        except Exception as error:
            if is_interrupt(error):
                raise
            raise ListenerFailed(method.__name__, error) from error


def _position(partition: Any, committed: Any) -> Position:
    epoch = committed.leader_epoch
    return Position(
        partition.topic,
        partition.partition,
        committed.offset,
        leader_epoch=NO_EPOCH if epoch is None else epoch,
    )


def leave_group(consumer: Any) -> None:
    """Leave the group and drop the subscription of a `KafkaConsumer`, within a few seconds."""
    consumer._coordinator.maybe_leave_group(timeout_ms=_LEAVE_MS)
    consumer.unsubscribe()


def _sorted(partitions: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(*each) for each in partitions))
