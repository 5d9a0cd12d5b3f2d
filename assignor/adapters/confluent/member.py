"""The group member beside librdkafka: a kafka-python consumer that fetches nothing, on a thread.

The thread keeps the coordinator of kafka-python going, whatever the application does; heartbeats
are sent by kafka-python's own I/O thread. A rebalance is passed to the application as an event and
awaited there, so that heartbeats go on while the application works on it.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError
from kafka import KafkaConsumer
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaError as ClientError
from kafka.errors import KafkaTimeoutError
from kafka.future import Future

from assignor.adapters.confluent.commits import Commits
from assignor.adapters.confluent.errors import code_of
from assignor.adapters.confluent.events import Change, Failed, Mailbox, Rebalanced
from assignor.adapters.confluent.settings import Settings
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.embedding import MemberStopped, PollErrors
from assignor.logs import line_logger
from encoding import RebalanceError, TopicPartition

_log = line_logger(__name__)

_TICK_S: Final = 0.05
"""Between two looks at what there is to do; a rebalance begins at most so much later."""
_JOIN_MS: Final = 500
"""How long the thread waits in a join before it looks at the application's poll interval again."""
_ASSIGNORS: Final = {
    "cooperative-sticky": CooperativeStickyAssignor,
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
}


@dataclass(slots=True)
class _Wanted:
    """What the application wants of the member; changed under the member's condition."""

    topics: frozenset[str] = frozenset()
    connects: bool = False
    closes: bool = False
    is_abandoned: bool = False


class GroupMember:
    """A member of the group, from the first `subscribe` or commit to `close`.

    Args:
        settings: of the consumer.
        assignor: of this member alone.
        mailbox: of the application's thread.
        commits: of the consumer, sent through this member.
    """

    def __init__(
        self,
        settings: Settings,
        assignor: StreamsAssignor,
        mailbox: Mailbox,
        commits: Commits,
    ) -> None:
        self._settings = settings
        self._assignor = assignor
        self._mailbox = mailbox
        self._commits = commits
        self._committer = commits.committer
        commits.connect, commits.fatal = self.connect, lambda: self.fatal
        self._wanted = _Wanted()
        self._changed = threading.Condition()
        self._consumer: Any = None
        self._topics: frozenset[str] = frozenset()
        self._exceeded_s: float | None = None
        self._thread: threading.Thread | None = None
        self.fatal: KafkaError | None = None
        self.is_closed = False

    # Any thread

    def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group with these topics; none: leave it."""
        with self._changed:
            self._wanted.topics = frozenset(topics)
            self._wanted.connects = self._wanted.connects or bool(self._wanted.topics)
            self._changed.notify_all()
        self._start()

    def connect(self) -> None:
        """Connect, to commit."""
        with self._changed:
            self._wanted.connects = True
        self._start()

    def close(self) -> None:
        """Begin to give everything up and to leave; `is_closed` is set at the end."""
        with self._changed:
            self._wanted.closes = True
            self._changed.notify_all()
        if self._thread is None:
            self.is_closed = True

    def abandon(self) -> None:
        """Close without the application, which is gone."""
        self._wanted.is_abandoned = True
        self.close()

    @property
    def topics(self) -> frozenset[str]:
        """What the application is subscribed to."""
        return self._wanted.topics

    @property
    def is_lost(self) -> bool:
        """Whether the group has removed this member since it joined."""
        consumer = self._consumer
        return consumer is None or bool(consumer._coordinator._generation.is_lost())

    @property
    def member_id(self) -> str | None:
        """The id that the coordinator gave this member, or None."""
        consumer = self._consumer
        member_id = "" if consumer is None else consumer._coordinator._generation.member_id
        return member_id or None

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these for connections from now on."""
        given = {"sasl_plain_username": username, "sasl_plain_password": password}
        with self._changed:
            self._settings.member.update(given)  # type: ignore[attr-defined]
            if self._consumer is not None:
                self._consumer._manager.config.update(given)

    # The member's thread

    def _start(self) -> None:
        with self._changed:
            if self._thread is None and not self._wanted.closes:
                self._thread = threading.Thread(
                    target=self._run, name=f"member-{self._settings.group_id}", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        errors = PollErrors()
        interval_s = self._settings.auto_commit_interval_s
        next_commit_s = time.monotonic() + interval_s
        try:
            while not self._wanted.closes:
                wait_s = _TICK_S
                try:
                    self._step()
                    errors.succeeded()
                except MemberStopped as stopped:
                    self._end(KafkaError(KafkaError._FATAL, str(stopped), fatal=True))
                except (ClientError, RebalanceError, OSError) as error:
                    wait_s = self._failed(errors, error)
                self._committer.expire()
                if interval_s and time.monotonic() >= next_commit_s:
                    next_commit_s = time.monotonic() + interval_s
                    self._commits.interval_over()
                self._wait(wait_s)
        except BaseException as error:
            _log.exception("the group member's thread has ended")
            self._end(KafkaError(KafkaError._FATAL, f"{type(error).__name__}: {error}", fatal=True))
            raise
        finally:
            self._leave()

    def _wait(self, wait_s: float) -> None:
        with self._changed:
            if not self._wanted.closes:
                self._changed.wait(wait_s)

    def _step(self) -> None:
        """Bring the member nearer to what is wanted, and keep it in the group."""
        if self._consumer is None:
            if self._wanted.connects and self.fatal is None:
                self._connect()
            return
        if self._topics != self._wanted.topics:
            self._resubscribe()
        if not self._topics or self.fatal is not None or self._waits_for_poll():
            return
        # Without the fetcher: librdkafka fetches.
        self._consumer._coordinator.poll(timeout_ms=_JOIN_MS)
        if self._assignor.failed is not None:
            raise MemberStopped(f"this member left the group for good: {self._assignor.failed}")

    def _connect(self) -> None:
        others = [_ASSIGNORS[name] for name in self._settings.other_assignors]
        consumer = KafkaConsumer(
            **self._settings.member,
            partition_assignment_strategy=[self._assignor, *others],
        )
        try:
            self._assignor.attach(consumer)
        except BaseException:
            consumer.close()
            raise
        self._consumer = consumer
        self._committer.connect(consumer)

    def _resubscribe(self) -> None:
        wanted = self._wanted.topics
        if self._topics:
            self._revoke_all()
            self._consumer.unsubscribe()
        self._topics = wanted
        if wanted:
            self._consumer.subscribe(sorted(wanted), listener=_Listener(self))

    def _waits_for_poll(self) -> bool:
        """Whether the application has exceeded its poll interval and has not polled since."""
        if self._exceeded_s is not None and self._mailbox.polled_s <= self._exceeded_s:
            return True
        self._exceeded_s = None
        if self._late_s() <= 0:
            return False
        self._consumer._net.run(self.leave_if_late)
        self._post(Change.LOST, self._assigned(), lambda: None)
        return True

    def _late_s(self) -> float:
        return time.monotonic() - self._mailbox.polled_s - self._settings.max_poll_interval_s

    def _failed(self, errors: PollErrors, error: Exception) -> float:
        try:
            pause = errors.failed(error)
        except MemberStopped as stopped:
            self._end(KafkaError(KafkaError._FATAL, str(stopped), fatal=True))
            return _TICK_S
        _log.warning("%s", pause.why)
        if code_of(error) == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self._mailbox.post(Failed(error=KafkaError(code_of(error), pause.why)))
        return pause.wait_ms / 1000

    def _end(self, error: KafkaError) -> None:
        """Take no further part in the group; the application's next `poll` returns the error."""
        if self.fatal is None:
            self.fatal = error
            _log.error("%s", error.str())
            self._mailbox.post(Failed(error=error))
            self._post(Change.LOST, self._assigned(), lambda: None)
            self._committer.disconnect(error)
            if self._consumer is not None:
                with suppress(ClientError, OSError, RuntimeError):
                    self._consumer.unsubscribe()

    def _leave(self) -> None:
        """Give everything up and leave the group."""
        try:
            if self._consumer is not None:
                self._revoke_all()
                end_s = time.monotonic() + self._settings.commit_timeout_s
                while not self._committer.is_idle and time.monotonic() < end_s:
                    time.sleep(_TICK_S / 10)
                self._committer.disconnect(KafkaError(KafkaError._DESTROY, "Consumer closed"))
                with suppress(ClientError, OSError, RuntimeError):
                    self._consumer.unsubscribe()
                self._consumer.close(autocommit=False)
        finally:
            self._committer.disconnect(KafkaError(KafkaError._DESTROY, "Consumer closed"))
            self.is_closed = True
            self._mailbox.wake()

    def _revoke_all(self) -> None:
        """Have the application give up everything, and wait for it."""
        partitions = self._assigned()
        if not partitions or self._wanted.is_abandoned:
            return
        served = threading.Event()
        self._post(Change.LOST if self.is_lost else Change.REVOKED, partitions, served.set)
        while not served.wait(_TICK_S) and not self._wanted.is_abandoned:
            if self._late_s() > 0 and not self._wanted.closes:
                self._consumer._net.run(self.leave_if_late)

    def _assigned(self) -> tuple[TopicPartition, ...]:
        if self._consumer is None:
            return ()
        return tuple(sorted(TopicPartition(*each) for each in self._consumer.assignment()))

    def _post(
        self, change: Change, partitions: tuple[TopicPartition, ...], served: Callable[[], object]
    ) -> None:
        self._mailbox.post(Rebalanced(change=change, partitions=partitions, served=served))

    # The client's I/O thread

    async def pass_on(self, change: Change, partitions: Iterable[Any]) -> None:
        """Have the application take a change, wait for it, and for the commits that it makes."""
        consumer, done = self._consumer, Future()
        changed = tuple(sorted(TopicPartition(*each) for each in partitions))
        net = consumer._net

        def served() -> None:
            with suppress(RuntimeError):  # the client is closed
                net.call_soon_threadsafe(lambda: done.success(None))

        self._post(change, changed, served)
        while not done.is_done and not self._wanted.is_abandoned:
            with suppress(KafkaTimeoutError):
                await consumer._manager.wait_for(done, _TICK_S * 1000)
            await self.leave_if_late()
        end_s = time.monotonic() + self._settings.commit_timeout_s
        while not self._committer.is_idle and time.monotonic() < end_s:
            await net.sleep(_TICK_S / 10)

    async def leave_if_late(self) -> None:
        """Leave the group if the application has exceeded its poll interval, as librdkafka does."""
        late_s = self._late_s()
        if late_s <= 0 or self._exceeded_s is not None or self._wanted.closes:
            return
        self._exceeded_s = time.monotonic()
        sentence = (
            f"Application maximum poll interval ({self._settings.max_poll_interval_s * 1000:.0f}ms)"
            f" exceeded by {late_s * 1000:.0f}ms"
        )
        _log.warning(
            "%s (adjust max.poll.interval.ms for long-running message processing): leaving group",
            sentence,
        )
        self._mailbox.post(Failed(error=KafkaError(KafkaError._MAX_POLL_EXCEEDED, sentence)))
        await self._consumer._coordinator.maybe_leave_group_async("max.poll.interval.ms exceeded")


class _Listener(AsyncConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    """Passes rebalances on; kafka-python awaits it on its event loop."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        await self._member.pass_on(Change.ASSIGNED, assigned)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self._member.pass_on(Change.REVOKED, revoked)

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        await self._member.pass_on(Change.LOST, lost)
