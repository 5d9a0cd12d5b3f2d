"""A poll loop for kafka-python that ends on fatal errors, and waits after all others.

`KafkaConsumer.poll` raises the same error again at once when a member is fenced or has no rights,
and kafka-python makes no pause of its own. What a loop does after each error is decided by
`PollLoop`. A member that is ended leaves the group: one that no longer polls would delay every
rebalance until `max_poll_interval_ms`.

From the JoinGroup request until a poll takes the answer, kafka-python sends no heartbeats. So a
pause between two polls that is longer than the session timeout can cost the membership.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from uuid import UUID

from kafka import TopicPartition as ClientPartition
from kafka.consumer.subscription_state import OffsetResetStrategy
from kafka.errors import FencedInstanceIdError, KafkaError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from assignor.adapters.consumer_state import broker_waits, own_resets, waited_s
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.ranges import log_ranges, refresh_metadata, topic_id
from assignor.adapters.kafka_python.records import begins_of, drop_fetched
from assignor.adapters.poll_arguments import (
    attached_member,
    check_offsets,
    check_timeout,
    is_closed,
    no_consumer,
    stop_event,
)
from assignor.adapters.processing import (
    BlockingLoop,
    GroupConsumer,
    consumed,
    known_topics,
)
from assignor.adapters.threads import runs_on_io_thread
from assignor.embedding import COMMIT_METADATA, ListenerFailed, MemberStopped
from assignor.embedding.loops import CLOSED, Batch, PollLoop, log_late_commit

POLL_MS = 1000
"""Default timeout of a poll: longer than most rebalances, so that their answer comes within it."""

# How kafka-python calls what the listener of `subscribe` has raised.
_OF_LISTENER = "User rebalance callback"
# How long a consumer sends no heartbeats, at every check, before it counts as fenced.
_SILENT_S = 1.0
_NONE = "none"
# Where kafka-python has what to do with a lost position; there is no public way.
_STRATEGY = "_default_offset_reset_strategy"


class SilenceWatch:
    """Finds a member whose heartbeats have stopped, as kafka-python's do once it is fenced."""

    def __init__(self) -> None:
        self._since_s: float | None = None

    def is_fenced(self, assignor: Any) -> bool:
        """Return whether the member was silent at every check, for longer than a moment.

        A poll or the application may take long between two checks: one check is no proof.
        """
        now_s = time.monotonic()
        if not assignor.is_silent:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = now_s
        return self._since_s is not None and now_s - self._since_s > _SILENT_S


class ConsumerLoop(GroupConsumer):
    """`TaskClient` of a `KafkaConsumer`; arguments as `GroupConsumer`."""

    partition = ClientPartition

    def __init__(
        self, consumer: Any, assignor: StreamsAssignor, timeout_ms: int, reset: str
    ) -> None:
        super().__init__(consumer, assignor, timeout_ms, begins_of(consumer), reset)
        self._silence = SilenceWatch()

    def poll(self, max_records: int | None, *, waits: bool) -> Batch:
        """Return partition -> records; raises what `KafkaConsumer.poll` does, too.

        Raises:
            ListenerFailed: the listener of `subscribe` has raised.
        """
        size = {} if max_records is None else {"max_records": max_records}
        self.begun.clear()
        try:
            batch: Batch = self.consumer.poll(timeout_ms=self.timeout_ms if waits else 0, **size)
        except KafkaError as error:
            if _OF_LISTENER in str(error) and error.__cause__ is not None:
                raise ListenerFailed("a rebalance", error.__cause__) from error.__cause__
            raise
        return batch

    def check(self) -> None:
        """Check that the member can go on; raises as `GroupConsumer.check`.

        Raises:
            FencedInstanceIdError: its heartbeats have stopped.
        """
        super().check()
        if self._silence.is_fenced(self.assignor):
            raise FencedInstanceIdError

    def positions(self) -> Mapping[Any, int]:
        """Return partition -> position, of those that have one."""
        return consumed(getattr(self.consumer, "_subscription", None))

    def ranges(self, partitions: Collection[Any]) -> Mapping[Any, tuple[int, int]]:
        """Return partition -> its first offset, and the one behind its last.

        Raises:
            KafkaError: the cluster does not answer.
        """
        return log_ranges(self.consumer, partitions)

    def topic_ids(self, *, asks: bool) -> Mapping[str, UUID | None]:
        """Return topic -> id of the assigned topics that the metadata have."""
        if asks:
            refresh_metadata(self.consumer)
        return {topic: topic_id(self.consumer, topic) for topic in super().topic_ids(asks=asks)}

    def seek(self, offsets: Mapping[Any, int]) -> None:
        """Read these partitions from other offsets, those that are still assigned."""
        own = {ClientPartition(*each): at for each, at in offsets.items()}
        super().seek(own)
        drop_fetched(self.consumer, own.keys())

    def seek_partition(self, partition: Any, offset: int) -> None:
        """Read a partition from another offset; the client's `seek` copies the assignment first."""
        self.consumer._subscription.seek(partition, offset)  # noqa: SLF001 linear in partitions

    def commit(self, next_offsets: Mapping[Any, int]) -> bool:
        """Commit offsets; return False if they have to be committed again."""
        return commit_next(self.consumer, next_offsets)

    def leave(self) -> None:
        """Leave the group, also as one that was given a member id and has not joined yet."""
        with suppress(KafkaError, OSError):
            super().leave()


def polled(
    consumer: Any,
    assignor: StreamsAssignor | None = None,
    *,
    timeout_ms: int = POLL_MS,
    stop: threading.Event | None = None,
) -> Iterator[Batch]:
    """Yield what `poll` returns, empty batches too, until the member has to stop.

    The loop ends when the whole group was asked to stop (KIP-671). A pause of the application
    beyond the session timeout or `max_poll_interval_ms` is a warning in the log, and the batches
    after a slow one are smaller.

    Args:
        consumer: of `streams_consumer`, or a `KafkaConsumer` with an assignor attached.
        assignor: the attached assignor; default: that of the consumer.
        timeout_ms: of each poll.
        stop: ends the loop when set.

    Raises:
        ConfigError: an argument is wrong, or no assignor is attached to this consumer.
        MemberStopped: the member cannot go on; the message says why. A dynamic one has left.
        UnreadableRecord: a record cannot be read; what was returned before can be committed.
    """
    listed = check_client(consumer).get("partition_assignment_strategy", ())
    assignor = attached_member(StreamsAssignor, assignor, consumer, listed)
    check_timeout("timeout_ms", timeout_ms)
    with consumer_loop(consumer, assignor, timeout_ms, stop_event(stop)) as loop:
        yield from loop.batches()


@contextmanager
def consumer_loop(
    consumer: Any, assignor: StreamsAssignor, timeout_ms: int, ended: threading.Event
) -> Iterator[BlockingLoop]:
    """Yield the loop over a consumer, which resets lost positions itself meanwhile."""
    config = consumer.config
    loop = PollLoop(
        max_poll_interval_ms=config["max_poll_interval_ms"],
        session_timeout_ms=config["session_timeout_ms"],
        max_poll_records=config.get("max_poll_records"),
        client_errors=(KafkaError,),
        waited_s=partial(waited_s, consumer, assignor),
    )
    reset = config.get("auto_offset_reset", _NONE)
    positions, none = getattr(consumer, "_subscription", None), OffsetResetStrategy.NONE
    with own_resets(positions, _STRATEGY, none) as before:
        settles = _NONE if before == none else reset
        yield BlockingLoop(ConsumerLoop(consumer, assignor, timeout_ms, settles), loop, ended)


def check_client(consumer: Any) -> Mapping[str, Any]:
    """Return the settings of a consumer of kafka-python.

    Raises:
        ConfigError: it is none, or of another client.
    """
    config: Mapping[str, Any] | None = getattr(consumer, "config", None)
    if config is None:
        raise no_consumer(consumer, "a KafkaConsumer")
    return config


def commit_next(consumer: Any, next_offsets: Mapping[Any, int] | None = None) -> bool:
    """Commit what is processed; return False if it is not committed.

    If other members own some of the partitions, also because the group has removed this member,
    they process again what was not committed. If the rebalance is still running, or no coordinator
    has answered within `request_timeout_ms`, commit again after the next poll. A topic that does
    not exist is left out, and named in the log once.

    Args:
        consumer: a `KafkaConsumer`.
        next_offsets: partition, or pair of topic and number -> offset of the first record that is
            not processed; default: all records that polls returned are processed.

    Raises:
        ConfigError: it is a consumer of another client, or `next_offsets` are no offsets.
        MemberStopped: the consumer is closed.
        RuntimeError: this is a listener, on the client's I/O thread.
    """
    config = check_client(consumer)
    if is_closed(consumer):
        raise MemberStopped(CLOSED)
    if runs_on_io_thread(consumer):
        raise RuntimeError(
            "commit_next was called in a listener, on the client's I/O thread, where it would wait "
            "for itself; commit each batch before the next poll, in which partitions are revoked"
        )
    check_offsets(next_offsets)
    if next_offsets is not None and not next_offsets:
        return True
    coordinator = getattr(consumer, "_coordinator", None)
    offsets = next_offsets and {
        ClientPartition(*where): OffsetAndMetadata(at, COMMIT_METADATA, -1)
        for where, at in next_offsets.items()
    }
    try:
        if _is_moved(consumer, coordinator, offsets):
            raise RebalanceInProgressError
        with broker_waits(coordinator).waiting():
            consumer.commit(offsets, timeout_ms=config["request_timeout_ms"])
    except KafkaError as error:
        log_late_commit(error)
        return False
    return True


def _is_moved(consumer: Any, coordinator: Any, offsets: Mapping[Any, Any] | None) -> bool:
    """Return whether partitions may be of other members, whose offsets kafka-python would move.

    In an eager rebalance it has none, and would commit nothing. The coordinator leaves out topics
    that were deleted.
    """
    assigned = consumer.assignment()
    if offsets is None:
        return not assigned and bool(coordinator.rebalance_in_progress())
    topics = {partition.topic for partition in offsets.keys() - assigned}
    return known_topics(getattr(coordinator, "_cluster", None), topics) != []
