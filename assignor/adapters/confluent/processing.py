"""A consumer's records processed into state stores: poll, restore, process, commit."""

import threading
import time
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from confluent_kafka import (
    KafkaError,
    KafkaException,
)
from confluent_kafka import TopicPartition as Position
from kafka.errors import KafkaError as ClientError
from kafka.errors import UnknownTopicOrPartitionError

from assignor.adapters.confluent.errors import commit_error, message_error
from assignor.adapters.confluent.handover import DeferredListener
from assignor.adapters.confluent.offsets import by_partition, partition_of
from assignor.adapters.confluent.settings import Settings
from assignor.adapters.kafka_python import refresh_metadata, topic_id
from assignor.adapters.poll_arguments import (
    check_stores,
    check_timeout,
    no_consumer,
    stop_event,
)
from assignor.adapters.processing import BlockingLoop, known_topics
from assignor.config import check_handler, check_kind
from assignor.embedding import COMMIT_METADATA, Handler, TaskStores
from assignor.embedding.loops import (
    Batch,
    PollLoop,
    log_late_commit,
)
from assignor.errors import ConfigError
from assignor.logs import line_logger
from assignor.option_fields import whole

if TYPE_CHECKING:  # it reads by what is here
    from assignor.adapters.confluent.consumer import Consumer

_log = line_logger(__name__)

_POLL_S: Final = 1.0
MAX_RECORDS: Final = 500
"""Most records of a poll of `run_tasks`, by default."""
# Of the second one the loop says for which record, or after how many.
_LEFT: Final = KafkaError._MAX_POLL_EXCEEDED
_QUIET: Final = frozenset({KafkaError._PARTITION_EOF, _LEFT})
_SETTING_NAMES: Final = MappingProxyType(
    {
        "max_poll_interval_ms": "max.poll.interval.ms",
        "max_poll_records": "max_records of run_tasks",
    }
)
_RANGE_S: Final = 5.0
_RECORDS: Final = whole(1, 1_000_000)  # librdkafka's limit
# What librdkafka says of a topic that was deleted, or is new to it.
_UNKNOWN: Final = frozenset(
    {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART}
)


def run_tasks(
    consumer: "Consumer",
    stores: TaskStores,
    handle: Handler,
    *,
    timeout: float = _POLL_S,
    max_records: int = MAX_RECORDS,
    stop: threading.Event | None = None,
) -> None:
    """Poll, restore tasks, process their records and commit, until the member has to stop.

    A consumer that is not subscribed is subscribed to the topics of its topology. While the cluster
    cannot be reached, records are kept and tried again. A batch that takes longer than half of
    `max.poll.interval.ms` is processed in parts, with a commit and a poll in between.

    An exception of `handle` ends the loop, also an error of a producer or another client that it
    uses: its record has no effect on state, and is processed again by the next call or member.
    Catch in `handle` what may pass, or write with `state.send`, whose errors are retried.

    Args:
        consumer: with `"enable.auto.commit": False` and `listener=stores`.
        stores: the state of the member's tasks.
        handle: called with each `Message` and the stores of its task; may not poll or commit.
        timeout: seconds of each poll.
        max_records: of each poll.
        stop: ends the loop when set.

    Raises:
        ConfigError: as `run_tasks` of kafka-python.
        MemberStopped: the member cannot go on; the message says why.
        UnreadableRecord: a record of the input or of a changelog cannot be read.
        StoreError: a store cannot be used.
        Exception: of `handle`.
    """
    check_handler(handle)
    check_timeout("timeout", timeout)
    check_kind("max_records", max_records, _RECORDS)
    ended = stop_event(stop)
    settings = getattr(consumer, "_settings", None)
    if not isinstance(settings, Settings):
        raise no_consumer(consumer, "a Consumer of assignor.adapters.confluent")
    if settings.auto_commit:
        raise ConfigError(
            'the consumer commits what is not processed yet; set "enable.auto.commit": False'
        )
    listener = consumer.assignor.listener
    given = listener.listener if isinstance(listener, DeferredListener) else listener
    check_stores(stores, given, settings.group_id, consumer.assignor)
    if not consumer._member.topics:
        consumer.subscribe(consumer.assignor.source_topics)
    loop = PollLoop(
        max_poll_interval_ms=round(settings.max_poll_interval_s * 1000),
        client_errors=(KafkaException, ClientError),
        setting_names=_SETTING_NAMES,
    )
    with consumer._mailbox.in_loop():
        BlockingLoop(ConsumerLoop(consumer, timeout, max_records), loop, ended).run(stores, handle)


class ConsumerLoop:
    """`TaskClient` of a `Consumer`.

    Args:
        consumer: subscribed.
        timeout: seconds of each poll and question.
        max_records: of each poll.
    """

    def __init__(
        self, consumer: "Consumer", timeout: float = _RANGE_S, max_records: int = 1
    ) -> None:
        self._consumer = consumer
        self._timeout = timeout
        self._max_records = max_records
        self._failure: Exception | None = None
        self.input = consumer._serving.input.watch
        self._stored = consumer._commits.stored

    @property
    def is_closed(self) -> bool:
        """Whether the consumer is closed."""
        return self._consumer._serving.is_closing or not self._consumer._is_open

    @property
    def is_shutdown(self) -> bool:
        """Whether the whole group was asked to stop."""
        return self._consumer.assignor.shutdown_requested

    def poll(self, max_records: int | None, *, waits: bool) -> Batch:
        """Return partition -> records; an error that ends the loop after those before it.

        Raises:
            MemberStopped: an error is fatal.
            OffsetOutOfRangeError, NoOffsetForPartitionError: a position is lost.
            UnreadableRecord: a record cannot be read.
        """
        if self._failure is not None:
            raise self._failure
        wait_s = self._timeout if waits else 0.0
        most = max_records or self._max_records
        self._stored.polled.clear()
        messages = self._consumer.consume(most, wait_s)
        if any((error := each.error()) and error.code() == _LEFT for each in messages):
            # The loss of its tasks follows once it joins: nothing more of them is processed.
            messages += self._consumer.consume(most, _POLL_S)
        for message in messages:
            error = message.error()
            self._failure = self._failure or message_error(message)
            if error is not None and self._failure is None and error.code() not in _QUIET:
                _log.warning("%s", error.str())
        records = by_partition(messages)
        if self._failure is not None and not records:
            raise self._failure
        return records

    def check(self) -> None:
        """Nothing: `poll` raises what `Consumer` does."""

    def assigned(self) -> Collection[Any]:
        """Return the partitions that are read."""
        return self._consumer._serving.read

    def positions(self) -> Mapping[Any, int]:
        """Return partition -> position, of those that have one.

        librdkafka has none until it returns a record: it is where reading begins.
        """
        read = [Position(*each) for each in sorted(self._consumer._serving.read)]
        found = self._consumer.position(read) if read else []
        begun = self._stored.begun
        offsets = {
            (where := partition_of(p)): p.offset if p.offset >= 0 else begun(where) for p in found
        }
        return {where: offset for where, offset in offsets.items() if offset >= 0}

    def begins(self, partitions: Collection[Any], before: Mapping[Any, int]) -> Mapping[Any, int]:
        """Return where these partitions are read again, as nobody has what was read of them."""
        last = self._stored.last({*partitions} - before.keys())
        again = {p: at for p, at in self._stored.polled.items() if at < before.get(p, -inf)}
        return {partition_of(each): each.offset for each in last} | again

    def ranges(self, partitions: Collection[Any]) -> Mapping[Any, tuple[int, int]]:
        """Return partition -> its first offset, and the one behind its last.

        Raises:
            KafkaException: the cluster does not answer.
            UnknownTopicOrPartitionError: librdkafka does not know a partition.
        """
        return {each: self._range(each) for each in partitions}

    def _range(self, partition: Any) -> tuple[int, int]:
        try:
            return self._consumer.get_watermark_offsets(Position(*partition), self._timeout)
        except KafkaException as error:
            if error.args[0].code() not in _UNKNOWN:
                raise
            topic, number = partition
            raise UnknownTopicOrPartitionError(
                f"{topic} [{number}] does not exist, as far as librdkafka knows: it is read once "
                "the topic exists"
            ) from None

    def topic_ids(self, *, asks: bool) -> Mapping[str, UUID | None]:
        """Return topic -> id of the topics that are read, of those that the member finds.

        Those that it had last, if no broker answers in time.
        """
        member = self._consumer._member._consumer
        if asks and member:
            with suppress(ClientError, RuntimeError):  # no answer, or it is closed
                refresh_metadata(member, time.monotonic() + self._timeout)
        topics = {each.topic for each in self._consumer._serving.read}
        found = known_topics(member and member._cluster, topics & self._consumer._member.topics)
        own = dict.fromkeys(topics - self._consumer._member.topics)
        return own | {topic: member and topic_id(member, topic) for topic in found}

    def seek(self, offsets: Mapping[Any, int]) -> None:
        """Read these partitions from other offsets, those that are still assigned.

        One below 0 is where reading begins, which is not known yet: nothing was read then.
        """
        failure = None
        for partition, offset in offsets.items():
            if offset < 0 or partition not in self._consumer._serving.read:
                continue
            try:
                self._consumer.seek(Position(partition.topic, partition.partition, offset))
            except KafkaException as error:
                failure = error
        if failure is not None:
            raise failure

    def paused(self) -> AbstractSet[Any]:
        """Return the partitions of which nothing is fetched, also those that have moved away."""
        return self._consumer._paused

    def paused_by_application(self) -> AbstractSet[Any]:
        """Return the partitions that the application has paused since a loop did so last."""
        return self._consumer._application_pauses

    def pause(self, partitions: AbstractSet[Any]) -> None:
        """Fetch nothing of these partitions."""
        self._consumer.pause([Position(*each) for each in sorted(partitions)])
        self._consumer._application_pauses -= partitions

    def resume(self, partitions: AbstractSet[Any]) -> None:
        """Fetch these partitions again, those that have moved away too if they come back."""
        self._consumer.resume([Position(*each) for each in sorted(partitions)])

    def commit(self, next_offsets: Mapping[Any, int]) -> bool:
        """Commit offsets; return False if they have to be committed again.

        Raises:
            ClientError: a broker refuses them for another reason than a rebalance.
        """
        if not next_offsets:
            return True
        offsets = [
            Position(p.topic, p.partition, at, metadata=COMMIT_METADATA)
            for p, at in next_offsets.items()
        ]
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False) or []
            failed = {each.topic: each.error for each in done if each.error is not None}
        except KafkaException as refused:
            failed = {each.topic: refused.args[0] for each in offsets}
        for topic, error in failed.items():
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                self.input.deleted.log(topic)
        late = [each for each in failed.values() if each.code() != KafkaError.UNKNOWN_TOPIC_OR_PART]
        for error in late:
            log_late_commit(commit_error(error))
        return not late

    def leave(self) -> None:
        """Leave the group."""
        self._consumer.unsubscribe()

    def has_left(self) -> bool:
        """Return whether the member is in no generation, to a caller that logs why."""
        handover = self._consumer._member.handover
        is_leaving = handover is not None and handover.waits_for_poll
        return self._consumer.assignor.driver.has_left(is_leaving=is_leaving)

    def report(self, why: str) -> None:
        """Report a failure, which is logged and kept for the application."""
        self._consumer.assignor.driver.reporter.report(why)
