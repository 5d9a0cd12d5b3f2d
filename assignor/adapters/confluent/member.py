"""The group member beside librdkafka: a kafka-python consumer that fetches nothing, on a thread.

The thread keeps the coordinator of kafka-python going, whatever the application does; heartbeats
are sent by kafka-python's own I/O thread.
"""

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaConfigurationError, KafkaTimeoutError
from kafka.errors import KafkaError as ClientError

from assignor.adapters.confluent.commits import Commits
from assignor.adapters.confluent.errors import code_of
from assignor.adapters.confluent.events import Change, Failed, Mailbox
from assignor.adapters.confluent.handover import TICK_S, Handover, leave_group
from assignor.adapters.confluent.reader import ReaderWatch
from assignor.adapters.confluent.settings import Settings
from assignor.adapters.connecting import NetworkClient, network_client
from assignor.adapters.kafka_python import SilenceWatch, StreamsAssignor
from assignor.adapters.rebootstrap.kafka_python import supervise_own
from assignor.adapters.threads import runs_on_io_thread
from assignor.embedding import LEFT_GROUP, MemberStopped, PollErrors, error_text, fatal_reason
from assignor.logs import line_logger
from encoding import RebalanceError

_log = line_logger(__name__)

_JOIN_MS: Final = 500
"""How long the thread waits in a join before it looks at the application's poll interval again."""
_REFUSED_S: Final = 10.0
"""Pause after an error that only an operator can end, such as a missing right."""
_ASSIGNORS: Final = {
    "cooperative-sticky": CooperativeStickyAssignor,
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
}
# What librdkafka reports itself, on its own connections.
_OF_READER: Final = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
        KafkaError.SASL_AUTHENTICATION_FAILED,
    }
)


@dataclass(slots=True)
class _Wanted:
    """What the application wants of the member; changed under the member's condition."""

    topics: frozenset[str] = frozenset()
    connects: bool = False
    closes: bool = False


class ConfluentMember:
    """A member of the group, from the first `subscribe` or commit to `close`.

    Args:
        settings: of the consumer.
        assignor: of this member alone.
        mailbox: of the application's thread.
        commits: of the consumer, sent through this member.
        reader: of the same consumer.

    Attributes:
        fatal, handover: why the member takes no further part in the group; its listener; or None.
        is_closed: it has left the group, and its thread ends.
    """

    def __init__(
        self,
        settings: Settings,
        assignor: StreamsAssignor,
        mailbox: Mailbox,
        commits: Commits,
        reader: ReaderWatch,
    ) -> None:
        self._settings = settings
        self._assignor = assignor
        self._reader = reader
        self._mailbox = mailbox
        self._commits = commits
        commits.connect, commits.fatal = self.connect, lambda: self.fatal
        self._credentials: dict[str, str] = {}
        self._wanted = _Wanted()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._consumer: Any = None
        self._connecting = NetworkClient()
        self.handover: Handover | None = None
        self._supervisor: Any = None
        self._topics: frozenset[str] = frozenset()
        self._silence = SilenceWatch()
        self.fatal: KafkaError | None = None
        self.is_closed = False

    # Any thread

    def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group with these topics; none: leave it."""
        with self._changed:
            self._wanted.topics = frozenset(topics)
            starts = bool(self._wanted.topics)
            self._changed.notify_all()
        if starts:
            self.connect()

    def connect(self) -> None:
        """Connect, to join or to commit."""
        with self._changed:
            if self._wanted.connects or self._wanted.closes:
                return
            self._wanted.connects = True
            name = f"member-{self._settings.group_id}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Begin to give everything up and to leave; `is_closed` is set at the end."""
        with self._changed:
            self._wanted.closes = True
            self._changed.notify_all()
            if self._consumer is None:
                self.is_closed = True  # there is nothing to give up
                self._connecting.give_up()

    def check_may_wait(self) -> None:
        """Check that this thread is none of the member's own, which would wait for itself.

        Raises:
            RuntimeError: it is.
        """
        if runs_on_io_thread(self._consumer) or threading.current_thread() is self._thread:
            raise RuntimeError(
                "close was called on a thread of the group member (in task_offsets, on_error, an "
                "observer or a hook), where it would wait for itself; call it where poll is called"
            )

    def abandon(self) -> None:
        """Close without the application, which is gone."""
        self.close()
        handover = self.handover
        if handover is not None:
            handover.is_abandoned = True

    @property
    def topics(self) -> frozenset[str]:
        """What the application is subscribed to."""
        return self._wanted.topics

    @property
    def is_lost(self) -> bool:
        """Whether this member is in no generation: it has not joined, or the group removed it."""
        return self._consumer is None or bool(self._consumer._coordinator._generation.is_lost())

    @property
    def member_id(self) -> str | None:
        """The id that the coordinator gave this member, or None."""
        consumer = self._consumer
        return None if consumer is None else consumer._coordinator._generation.member_id or None

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these for connections from now on."""
        with self._changed:
            self._credentials = {"sasl_plain_username": username, "sasl_plain_password": password}
            if self._consumer is not None:
                self._consumer._manager.config.update(self._credentials)

    # The member's thread

    def _run(self) -> None:
        errors = PollErrors()
        interval_s = self._settings.auto_commit_interval_s
        next_commit_s = time.monotonic() + interval_s
        try:
            while not self._wanted.closes:
                wait_s = self._try_step(errors)
                self._commits.committer.expire()
                if interval_s and time.monotonic() >= next_commit_s:
                    next_commit_s = time.monotonic() + interval_s
                    self._commits.interval_over()
                with self._changed:
                    if not self._wanted.closes and self._topics == self._wanted.topics:
                        self._changed.wait(wait_s)
        except BaseException as error:
            _log.exception("the thread of the group member has ended")
            self._end(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._leave()

    def _try_step(self, errors: PollErrors) -> float:
        """Do one step; return how long to wait before the next one, in seconds."""
        try:
            self._step()
        except KafkaConfigurationError as error:
            self._end(str(error))
        except (ClientError, RebalanceError, OSError) as error:
            try:
                pause = errors.failed(error)
            except MemberStopped as stopped:
                return self._refused(error, stopped)
            _log.log(pause.level, "%s", pause.why)
            self._report(error, pause.why)
            return pause.wait_ms / 1000
        else:
            errors.succeeded()
        return TICK_S

    def _step(self) -> None:
        """Bring the member nearer to what is wanted, and keep it in the group."""
        if self.fatal is not None:
            return
        handover = self.handover = self.handover or self._connected()
        if handover is None:
            return
        if self._topics != self._wanted.topics:
            self._resubscribe(handover)
        if not self._topics or handover.waits_for_poll:
            return
        if handover.late_s() > 0:
            self._consumer._net.run(handover.leave_if_late)
            return
        # Not the consumer's own poll, which would look up positions: librdkafka fetches.
        self._consumer._coordinator.poll(timeout_ms=_JOIN_MS)
        if self._assignor.failed is not None:
            self._end(f"{LEFT_GROUP}: {self._assignor.failed}")
        elif self._silence.is_fenced(self._assignor):
            self._end(
                "FENCED_INSTANCE_ID: another process has joined with this group.instance.id; "
                "give each process its own, then restart this one"
            )
        elif self._reader.is_lost(
            min(self._topics), self._consumer._coordinator.heartbeat.last_receive
        ):
            self._end(self._reader.sentence)

    def _connected(self) -> Handover | None:
        """Connect, unless the application closes meanwhile."""
        others = [_ASSIGNORS[name] for name in self._settings.other_assignors]
        with network_client() as self._connecting:
            if self._wanted.closes:
                return None
            consumer = KafkaConsumer(
                **{**self._settings.member, **self._credentials},
                partition_assignment_strategy=[self._assignor, *others],
                kafka_client=self._connecting,
            )
        with self._changed:
            if not self._wanted.closes:
                self._consumer = consumer
        if self._consumer is None:
            with suppress(ClientError, RuntimeError):  # closed on the other thread
                consumer.close()
            return None
        try:
            self._assignor.attach(consumer)
        except RebalanceError as error:
            raise KafkaConfigurationError(str(error)) from error
        if self._settings.rebootstrap:
            self._supervisor = supervise_own(consumer, **self._settings.rebootstrap)
        self._commits.committer.connect(consumer)
        # An application may take its time: nothing waits on the client's event loop.
        consumer._coordinator._REBALANCE_LISTENER_WARN_SECS = float("inf")
        return Handover(consumer, self._settings, self._mailbox, self._commits)

    def _resubscribe(self, handover: Handover) -> None:
        wanted = self._wanted.topics
        if self._topics:
            self._revoke_all(handover)
            leave_group(self._consumer)
        self._topics = wanted
        if wanted:
            self._consumer.subscribe(sorted(wanted), listener=handover)
            # A leader that does not know its topics yet would assign nothing at first.
            known = self._consumer._cluster.request_update()
            with suppress(KafkaTimeoutError):
                self._consumer._net.run(self._consumer._manager.wait_for, known, _JOIN_MS)

    def _refused(self, error: Exception, stopped: MemberStopped) -> float:
        """End for good, or try again after a while, as librdkafka does; return the pause."""
        if code_of(error) in {KafkaError._FAIL, KafkaError.FENCED_INSTANCE_ID}:
            self._end(str(stopped))
            return TICK_S
        why = f"retry in {_REFUSED_S:.0f} s ({error_text(error)}): {fatal_reason(error)}"
        _log.error("%s", why)
        self._report(error, why)
        return _REFUSED_S

    def _report(self, error: Exception, why: str) -> None:
        if code_of(error) not in _OF_READER:
            self._mailbox.post(Failed(error=KafkaError(code_of(error), why)))

    def _end(self, why: str) -> None:
        """Take no further part in the group; the next `poll` returns the fatal error."""
        if self.fatal is not None:
            return
        self.fatal = KafkaError(KafkaError._FATAL, why, fatal=True)
        _log.error("%s", why)
        self._mailbox.post(Failed(error=self.fatal))
        self._commits.committer.disconnect(self.fatal)
        if self.handover is not None:
            self.handover.post(Change.LOST)
            with suppress(ClientError, OSError, RuntimeError):
                leave_group(self._consumer)

    def _leave(self) -> None:
        """Give everything up and leave the group."""
        closed = KafkaError(KafkaError._DESTROY, "Consumer closed")
        committer = self._commits.committer
        try:
            if self._consumer is None:
                return
            if self.handover is not None:
                self._revoke_all(self.handover)
                end_s = time.monotonic() + self._settings.commit_timeout_s
                while committer.ended < committer.submitted and time.monotonic() < end_s:
                    time.sleep(TICK_S / 10)
            committer.disconnect(closed)
            if self._supervisor is not None:
                self._supervisor.close()
            with suppress(ClientError, OSError, RuntimeError):
                leave_group(self._consumer)
            self._consumer.close(autocommit=False)
        finally:
            committer.disconnect(closed)
            self.is_closed = True
            self._mailbox.wake()

    def _revoke_all(self, handover: Handover) -> None:
        """Have the application give up everything, and wait for it."""
        served = threading.Event()
        change = Change.LOST if self.is_lost else Change.REVOKED
        if not handover.post(change, served.set):
            return
        while not served.wait(TICK_S) and not handover.is_abandoned:
            if handover.late_s() > 0 and not self._wanted.closes:
                self._consumer._net.run(handover.leave_if_late)
