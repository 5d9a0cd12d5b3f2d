"""What the application's thread does for the member in `poll`, `consume` and `close`."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import inf
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.commits import Commits
from assignor.adapters.confluent.errors import Reader, check_timeout, error_message
from assignor.adapters.confluent.events import (
    Call,
    Change,
    CommitDue,
    Event,
    Failed,
    Mailbox,
    Rebalanced,
)
from assignor.adapters.confluent.offsets import by_partition, partition_of
from assignor.adapters.confluent.processing import ConsumerLoop
from assignor.adapters.confluent.reader import ReaderInput
from assignor.adapters.confluent.settings import Settings
from assignor.adapters.threads import SECOND_THREAD, OneThread, Turns
from assignor.embedding.loops import LoopFacts, Step, Then, decide, first_offsets, seek_back
from encoding import TopicPartition

SLICE_S: Final = 0.1
"""How long librdkafka waits at once; a rebalance waits at most so long, and for one batch."""
CLOSED: Final = "Consumer closed"
_REFUSED_CALLS: Final = (KafkaException, OverflowError, RuntimeError, TypeError, ValueError)
_NO_CALLBACKS: Mapping[Change, None] = MappingProxyType({})


RebalanceCallback = Callable[..., object]


class Serving:
    """Takes events, calls the application, and does what its callbacks have left to do.

    Args:
        settings: of the consumer.
        mailbox: events of the member.
        commits: of the consumer.
        is_lost: whether the group has removed the member.

    Attributes:
        callbacks: of the application, by what becomes of partitions.
        read: partitions that librdkafka reads. Its own `assignment` waits for a `poll` of another
            thread.
        input: lost positions of what is read.
        owned: partitions of the group that the application was given and has not given up.
        assigns: calls of a callback that changed what is read.
        polling: had by the thread that polls or closes.
        turns: other threads use librdkafka between two short polls.
        is_closing: a thread closes the consumer.
    """

    def __init__(
        self, settings: Settings, mailbox: Mailbox, commits: Commits, is_lost: Callable[[], bool]
    ) -> None:
        self._settings = settings
        self._mailbox = mailbox
        self._commits = commits
        self._is_lost = is_lost
        self.polling, self.turns = OneThread(), Turns()
        self._is_taking = threading.Lock()
        self.is_closing = False
        self.callbacks: Mapping[Change, RebalanceCallback | None] = _NO_CALLBACKS
        self.read: frozenset[TopicPartition] = frozenset()
        self.owned: frozenset[TopicPartition] = frozenset()
        self.input = ReaderInput(settings, commits.stored)
        self.assigns = 0
        # Where partitions begin that the callback being called has not assigned yet.
        self._begins: dict[TopicPartition, Position] = {}

    def serve(self, consumer: Reader) -> Message | None:
        """Take events until one is an error, which is returned.

        Raises:
            Exception: of a callback; later events wait for the next call.
        """
        if not self._is_taking.acquire(blocking=False):
            return None  # called in a callback
        try:
            self._mailbox.is_serving, self._mailbox.serves_on = True, threading.get_ident()
            while self._may_take() and (event := self._mailbox.take()) is not None:
                if isinstance(event, Failed):
                    return error_message(event.error)
                self._take(consumer, event)
            return None
        finally:
            self._mailbox.has_polled, self._mailbox.is_serving = True, False
            self._mailbox.serves_on = None
            self._is_taking.release()

    def _may_take(self) -> bool:
        """Return whether the next event may be taken now: `close` takes those that wait."""
        return self.is_closing or not self._mailbox.closes

    def is_closed_by_poll(self, is_open: Callable[[], bool]) -> bool:
        """Have the polling thread close the consumer; return False if this thread is to close it.

        No thread polls then, and none begins to: release `polling` at the end.
        """
        while is_open():
            if self.polling.acquire(0.0 if not self._mailbox.closes else SLICE_S):
                if is_open():
                    self.is_closing = True
                    return False
                self.polling.release()
            else:
                self._mailbox.closes = True
        return True

    def closes_later(self) -> bool:
        """Return whether a callback runs on this thread; then close once it has returned."""
        if self._mailbox.serves_on != threading.get_ident():
            return False
        self._mailbox.closes = not self.is_closing
        return True

    def close_if_asked(self, consumer: Reader) -> bool:
        """Close the consumer if a callback has called `close`; return whether it has."""
        if not self._mailbox.closes:
            return False
        consumer.close()
        return True

    def serve_until(self, consumer: Reader, is_over: Callable[[], bool]) -> BaseException | None:
        """Take events of a consumer that is being closed; return what a callback raised first."""
        failure: BaseException | None = None
        self.is_closing, self._mailbox.closes = True, False
        try:
            while not is_over():
                try:
                    self.serve(consumer)
                except BaseException as error:  # noqa: BLE001 the caller raises it
                    failure = failure or error
                self._mailbox.wait(SLICE_S)
        finally:
            self.is_closing = False
        return failure

    def read_within(
        self, consumer: Reader, timeout: float, read: Callable[[float], list[Message]]
    ) -> list[Message]:
        """Return what `read` returns within `timeout` seconds, and take events in between.

        Args:
            consumer: of the application.
            timeout: seconds; negative: without an end.
            read: reads for at most so many seconds.

        Raises:
            TypeError, ValueError: `timeout` is no number.
            RuntimeError: a callback or another thread has closed the consumer, or another thread
                polls.
            Exception: of a callback.
        """
        check_timeout(timeout)
        if not self.polling.acquire():
            raise RuntimeError(CLOSED if self.is_closing else SECOND_THREAD)
        try:
            return self._read_within(consumer, timeout, read)
        finally:
            self._mailbox.has_polled = True  # the poll interval begins with the end of a poll
            self.polling.release()

    def _read_within(
        self, consumer: Any, timeout: float, read: Callable[[float], list[Message]]
    ) -> list[Message]:
        end_s = time.monotonic() + abs(timeout)

        def short_poll(wait_s: float) -> list[Message]:
            return self.turns.poll(read, wait_s, limit_s=SLICE_S)

        while True:
            self._mailbox.has_polled = True
            events = self._mailbox.events
            try:
                message = self.serve(consumer) if events else None
            finally:
                is_closed = self.close_if_asked(consumer)
            if is_closed:
                raise RuntimeError(CLOSED)
            if message is not None:
                return [message]
            left_s = SLICE_S if timeout < 0 else end_s - time.monotonic()
            wait_s = max(0.0, min(SLICE_S, left_s))
            try:
                messages = short_poll(wait_s)
            except BaseException as error:
                self.interrupted(consumer, error)
                raise
            if self._mailbox.closes:
                self.give_back(consumer, messages)
            messages = self.input.take(consumer, messages)
            if messages or left_s < SLICE_S:
                return messages

    def give_back(self, consumer: Any, messages: Sequence[Message]) -> None:
        """Close as `close` asked, and have messages read again that are not returned therefore.

        Raises:
            RuntimeError: the consumer is closed.
            Exception: what a callback raised.
        """
        records = by_partition(messages)
        with suppress(KafkaException):
            seek_back(ConsumerLoop(consumer), {}, records)
        if self._settings.auto_offset_store:
            first = first_offsets(records)
            self._commits.stored.store(Position(*each, at) for each, at in first.items())
        self.close_if_asked(consumer)
        raise RuntimeError(CLOSED)

    def interrupted(self, consumer: Any, error: BaseException) -> None:
        """Have everything read again that an interrupt may have cost; then close, if asked.

        librdkafka has dropped what the call had fetched, and its positions are behind that. So the
        partitions are read from the offsets that were last stored or committed.

        Args:
            consumer: of the application.
            error: that librdkafka's call raised, such as by a signal's handler.
        """
        if not isinstance(error, _REFUSED_CALLS):
            with suppress(KafkaException):
                seek_back(ConsumerLoop(consumer), {}, None, dict.fromkeys(self.read, inf))
        self.close_if_asked(consumer)

    def _take(self, consumer: Reader, event: Event) -> None:
        if isinstance(event, Rebalanced):
            try:
                self._rebalance(consumer, event)
            finally:
                event.served()
        elif isinstance(event, Call):
            event.call()
        elif isinstance(event, CommitDue):
            self._commits.submit_newer(self.newer(consumer, self.read))
        elif not isinstance(event, Failed) and self._settings.on_commit is not None:
            self._settings.on_commit(event.error, list(event.offsets))

    def _rebalance(self, consumer: Reader, event: Rebalanced) -> None:
        """Call back, and carry out what the callback has not, also if it fails."""
        change, partitions = event.change, frozenset(event.partitions)
        facts = LoopFacts(
            step=Step.REBALANCE,
            is_lost=self._is_lost() or change is Change.LOST,
            is_assigned=change is Change.ASSIGNED,
        )
        then = decide(facts).then
        if then is Then.DROP:
            # Together with what later events would take away; new partitions do not begin.
            change, partitions = Change.LOST, self.owned
        elif then is Then.BEGIN:
            self.owned |= partitions
        else:
            partitions &= self.owned
        if change is Change.ASSIGNED or partitions:
            self._hand_over(consumer, change, sorted(partitions))

    def _hand_over(
        self, consumer: Reader, change: Change, partitions: Sequence[TopicPartition]
    ) -> None:
        try:
            self._call_back(consumer, change, partitions)
        finally:
            self._complete(consumer, change, partitions)

    def _call_back(
        self, consumer: Reader, change: Change, partitions: Sequence[TopicPartition]
    ) -> None:
        callback = self.callbacks.get(change)
        if change is Change.LOST and callback is None:
            callback = self.callbacks.get(Change.REVOKED)
        self.assigns = 0
        self._begins = {each: Position(*each) for each in partitions}
        if callback is not None:
            callback(consumer, [Position(*each) for each in partitions])

    def _complete(
        self, consumer: Reader, change: Change, partitions: Sequence[TopicPartition]
    ) -> None:
        if change is Change.ASSIGNED:
            begins, self._begins = self._begins, {}
            if not self.assigns and partitions:
                consumer.incremental_assign([begins.get(p, Position(*p)) for p in partitions])
            return
        left = [each for each in partitions if each in self.read]
        if left:
            if change is Change.LOST:
                self._commits.stored.forget(left)
                self.read -= frozenset(left)
            consumer.incremental_unassign([Position(*each) for each in left])
        self.owned -= frozenset(partitions)

    # What is read

    def begin_at(self, offset: Position) -> bool:
        """Note where a partition begins; return False for one that is neither read nor new."""
        partition = partition_of(offset)
        if partition in self._begins:
            self._begins[partition] = offset
            return True
        return partition in self.read

    def add(self, partitions: Iterable[Position]) -> None:
        """Note that librdkafka reads these, too."""
        self.read |= frozenset(map(partition_of, partitions))

    @contextmanager
    def removing(self, consumer: Reader, partitions: Iterable[TopicPartition]) -> Iterator[None]:
        """Commit what is stored of these once librdkafka has stopped reading them in the block.

        If the block raises, they are still read. As in librdkafka nothing is committed here without
        `enable.auto.commit`.
        """
        gone = frozenset(partitions)
        given_up = sorted(self.read & gone)
        newer = self.newer(consumer, given_up) if self._settings.auto_commit else []
        yield
        self.assigns += 1
        self._commits.submit_newer(newer)
        self._commits.stored.forget(given_up)
        self.input.forget(gone)
        self.read -= frozenset(given_up)

    def newer(self, consumer: Any, partitions: Iterable[TopicPartition]) -> list[Position]:
        """Return what is stored of partitions and newer than what is committed.

        Positions count as stored with `enable.auto.offset.store`. Those of a topic that was made
        anew are left out: they are of the former one until a poll settles them.
        """
        wanted = sorted(frozenset(partitions) - self.input.made_anew(consumer))
        if wanted and self._settings.auto_offset_store:
            self._commits.stored.store(consumer.position([Position(*each) for each in wanted]))
        return self._commits.stored.newer(wanted)
