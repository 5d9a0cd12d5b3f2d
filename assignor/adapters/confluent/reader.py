"""What librdkafka as a reader alone does not do: settle lost positions, and notice that it is lost.

It may reach no broker while the member of its group does: librdkafka forgets all brokers when a
metadata answer names none (librdkafka issue 5301; it happens while a cluster restarts). It may
never connect again, and heartbeats of the member would keep partitions that nobody reads.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as Position
from kafka.errors import UnknownTopicOrPartitionError

from assignor.adapters.confluent.errors import message_error
from assignor.adapters.confluent.events import Call, Mailbox
from assignor.adapters.confluent.offsets import (
    NOWHERE,
    StoredOffsets,
    by_partition,
    partition_of,
    place_of,
)
from assignor.adapters.confluent.processing import ConsumerLoop
from assignor.adapters.confluent.settings import Settings
from assignor.adapters.processing import result_of
from assignor.embedding.loops import (
    InputWatch,
    LoopFacts,
    Step,
    Then,
    decide,
    first_offsets,
    lost_positions,
    settle,
)
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

_CHECKS: Final = 3
"""Checks within the limit."""
_ANSWER_S: Final = 2.0
_SECOND_MS: Final = 1000
# How often at most it is looked for topics that were made anew, while records come.
_LOOK_S: Final = 1.0
_RESETS: Final = {OFFSET_BEGINNING: "earliest", OFFSET_END: "latest"}

Reaches = Callable[[str, float], bool]


class ReaderWatch:
    """Counts for how long only the member of the group has reached a broker.

    Args:
        settings: of the consumer.
        mailbox: of the application's thread, on which the reader is asked.
        reaches: whether the reader gets the metadata of a topic within so many seconds.

    Attributes:
        limit_s: seconds after which the reader counts as lost: the session timeout, after which a
            plain consumer would lose its partitions, at least two of the longest pauses between
            connections.
    """

    def __init__(self, settings: Settings, mailbox: Mailbox, reaches: Reaches) -> None:
        member = settings.member
        self._mailbox = mailbox
        self._reaches = reaches
        self.limit_s: float = (
            max(member["session_timeout_ms"], 2 * member["reconnect_backoff_max_ms"]) / _SECOND_MS
        )
        self._interval_s = self.limit_s / _CHECKS
        self._silent_s = self._interval_s + member["heartbeat_interval_ms"] / _SECOND_MS
        self._is_asked = False
        self._checked_s = self._reached_s = time.monotonic()

    @property
    def sentence(self) -> str:
        """What happens to a consumer whose reader is lost."""
        return (
            f"librdkafka has reached no broker for {self.limit_s:g} s while the group member has "
            "(librdkafka issue 5301), so this consumer reads nothing and leaves the group; close "
            "it and make a new one"
        )

    def is_lost(self, topic: str, heard_s: float) -> bool:
        """Return whether the reader has reached no broker for `limit_s`, and the member has.

        Three times within `limit_s` the next `poll` asks a broker: it then takes the time of an
        answer longer, 2 s without a connection.

        Args:
            topic: that the consumer reads.
            heard_s: when the member last got the answer to a heartbeat (`time.monotonic()`).
        """
        now_s = time.monotonic()
        if now_s - heard_s > self._silent_s:
            self._reached_s = now_s
        elif not self._is_asked and now_s - self._checked_s >= self._interval_s:
            self._is_asked = True
            self._mailbox.post(Call(call=lambda: self._check(topic)))
        return self._checked_s - self._reached_s > self.limit_s

    def _check(self, topic: str) -> None:
        has_reached = self._reaches(topic, min(_ANSWER_S, self._interval_s))
        self._checked_s = time.monotonic()
        if has_reached:
            self._reached_s = self._checked_s
        self._is_asked = False


class ReaderInput:
    """The lost positions of the partitions that one consumer reads.

    librdkafka reports them (its `auto.offset.reset` is "error"), and they are settled here.

    Args:
        settings: of the consumer.
        stored: what is stored and committed of its partitions.

    Attributes:
        watch: finds where the consumer continues.
    """

    def __init__(self, settings: Settings, stored: StoredOffsets) -> None:
        self.watch = InputWatch(_RESETS.get(settings.reset_offset, "error"))
        self._stored = stored
        self._lost: dict[TopicPartition, int | None] = {}
        self._looked_s = -inf
        # Partition -> (position that librdkafka tells by mistake, the right one), until a record is
        # returned of it.
        self._mistaken: dict[TopicPartition, tuple[int, int]] = {}

    def take(self, consumer: Any, messages: Sequence[Message]) -> list[Message]:
        """Return what the application gets of these messages; settle lost positions."""
        failed: dict[TopicPartition, Message] = {}
        taken = [
            message
            for message in messages
            if (message.error() is None and not (self._mistaken or failed))
            or self._keeps(message, failed)
        ]
        for each in failed.values():
            self._set_back(consumer, each)
        now_s = time.monotonic()
        # To settle a lost position asks for new topics: records of the former ones go before.
        asks = bool(self._lost and taken)
        if asks or not messages or now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            taken = self._drop_former(consumer, taken, now_s, asks=asks)
        for partition, at in sorted(self._lost.items(), key=lambda item: item[0]):
            if self._settle(consumer, partition, {partition: at}, {}):
                self._lost.pop(partition, None)
            else:  # at the next call
                self._lost[partition] = at
        return taken

    def made_anew(self, consumer: Any) -> frozenset[TopicPartition]:
        """Return the partitions with positions of a former topic, until a poll settles them."""
        client = ConsumerLoop(consumer)
        return frozenset(self.watch.made_anew(client.topic_ids(asks=False), client.assigned()))

    def _drop_former(
        self, consumer: Any, taken: list[Message], now_s: float, *, asks: bool
    ) -> list[Message]:
        """Settle positions in topics that were made anew; return the messages of all others."""
        client = ConsumerLoop(consumer)
        ids = client.topic_ids(asks=asks)
        anew = frozenset(self.watch.look(ids, client.assigned(), now_s))
        if not anew:
            return taken
        former = [m for m in taken if (m.topic(), m.partition()) in anew]
        dropped = first_offsets(by_partition(former))
        client.seek(dropped)
        self._settle(consumer, min(anew), {}, dropped)
        return [m for m in taken if m not in former]

    def _settle(
        self,
        consumer: Any,
        partition: TopicPartition,
        lost: Mapping[TopicPartition, int | None],
        dropped: Mapping[TopicPartition, int],
    ) -> bool:
        """Settle lost positions, and those in new topics; return whether that was possible."""
        try:
            if lost.get(partition) == NOWHERE:
                found = self._begin(consumer, partition)
            else:
                found = result_of(settle(ConsumerLoop(consumer), lost, dropped=dropped))
        except UnknownTopicOrPartitionError as error:
            _log.debug("%s", error)
            return False
        except KafkaException as error:
            _log.info("%s [%s] is not read yet: %s", *partition, error)
            return False
        for each, offset in found.items():
            self._stored.settled(each, offset)
        return True

    def _begin(self, consumer: Any, partition: TopicPartition) -> Mapping[TopicPartition, int]:
        """Read a partition from where it was sought, or from where a broker tells that it begins.

        Topics that were made anew are settled before, as the partition is of one, maybe.

        Raises:
            KafkaException: no broker tells it.
            UnknownTopicOrPartitionError: as `ConsumerLoop.ranges`.
        """
        client = ConsumerLoop(consumer)
        found: Mapping[TopicPartition, int] = result_of(settle(client, {}))
        if partition in found:
            return found
        at = self._sought(partition)
        if at < 0:
            start, end = client.ranges([partition])[partition]
            at = end if self._stored.is_at_end(partition) else start
        client.seek({partition: at})
        return {**found, partition: at}

    def _sought(self, partition: TopicPartition) -> int:
        """Return where a partition was sought, until it returns a record; below 0: nowhere."""
        return self._mistaken.get(partition, (0, OFFSET_INVALID))[1]

    def positions(self, found: list[Position]) -> list[Position]:
        """Return positions as they are: librdkafka has none from a seek to the next record."""
        return [self._position(each) for each in found]

    def _position(self, position: Position) -> Position:
        mistake = self._mistaken.get(partition_of(position))
        if mistake is None or mistake[0] != position.offset:
            return position
        return Position(position.topic, position.partition, mistake[1])

    def sought(self, position: Position) -> None:
        """Note where a partition was sought, unless that is a logical offset."""
        if position.offset >= 0:
            self._mistaken[partition_of(position)] = OFFSET_INVALID, position.offset

    def _set_back(self, consumer: Any, message: Message) -> None:
        """Have the position of a partition that has failed where it was.

        Up to 2.13.0 librdkafka's `consume` moves it behind the error, as behind a record.
        """
        where, given, offset = place_of(message), message.error(), message.offset()
        if offset is None or consumer.position([Position(*where)])[0].offset != offset + 1:
            return
        if given is not None and given.code() == KafkaError._AUTO_OFFSET_RESET:  # refuses a seek
            self._mistaken[where] = offset + 1, self._sought(where)
        else:
            with suppress(KafkaException):
                consumer.seek(Position(*where, offset))

    def _keeps(self, message: Message, failed: dict[TopicPartition, Message]) -> bool:
        """Return whether the application gets a message; note partitions whose last is an error."""
        where = place_of(message)
        failed.pop(where, None)
        if message.error() is None:
            self._mistaken.pop(where, None)
            return True
        if message.topic() is not None:
            failed[where] = message
        error = message_error(message)
        resets = self.watch.resets or message.offset() == NOWHERE
        facts = LoopFacts(step=Step.POLL, error=error, resets=resets)
        if decide(facts).then is not Then.SETTLE:
            return True
        self._lost |= lost_positions(error)
        return False

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop what is known of partitions that are read elsewhere, or no more."""
        for each in partitions:
            self._lost.pop(each, None)
            self._mistaken.pop(each, None)
