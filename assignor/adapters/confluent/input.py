"""Where librdkafka's consumer is in its input: behind control records, and after lost positions.

librdkafka's position is behind the last record that was returned, and stays before the control
records and aborted transactions after it (librdkafka issues 2539 and 3917). It reports the end of a
partition behind them, as an event of `enable.partition.eof`. Lost positions are reported, too
(`auto.offset.reset` is "error" for librdkafka), and settled here.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.offsets import StoredOffsets, partition_of
from assignor.adapters.confluent.settings import Settings
from assignor.embedding.loops import InputWatch
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

_RESETS: Final = {OFFSET_BEGINNING: "earliest", OFFSET_END: "latest"}
_RANGE_S: Final = 5.0


def read_one(consumer: confluent_kafka.Consumer, wait_s: float) -> list[Message]:
    """Return a message that librdkafka has within `wait_s` seconds, or none."""
    message = confluent_kafka.Consumer.poll(consumer, wait_s)
    return [] if message is None else [message]


class Seeker(Protocol):
    """What a consumer does with lost positions."""

    def get_watermark_offsets(self, partition: Position, timeout: float) -> tuple[int, int]:
        """Return the first offset of a partition and the one after its last record."""

    def seek(self, partition: Position) -> None:
        """Go on with this offset."""


class ReaderInput:
    """The ends and lost positions of the partitions that one consumer reads.

    Args:
        settings: of the consumer.
        stored: what is stored and committed of its partitions.
    """

    def __init__(self, settings: Settings, stored: StoredOffsets) -> None:
        self._watch = InputWatch(_RESETS.get(settings.reset_offset, "error"))
        self._returns_ends = settings.returns_ends
        self._stored = stored
        self._ends: dict[TopicPartition, int] = {}
        self._lost: dict[TopicPartition, int | None] = {}

    def take(self, consumer: Seeker, messages: Sequence[Message]) -> list[Message]:
        """Return what the application gets of these messages; settle lost positions."""
        taken = [message for message in messages if message.error() is None or self._keeps(message)]
        self._settle(consumer)
        return taken

    def _keeps(self, message: Message) -> bool:
        error, offset = message.error(), message.offset()
        partition = TopicPartition(message.topic() or "", message.partition() or 0)
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            if offset:  # else there is nothing to commit
                self._ends[partition] = offset
            return self._returns_ends
        if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
            if self._watch.resets:
                self._lost[partition] = offset if offset is not None and offset >= 0 else None
            return not self._watch.resets
        return True

    def _settle(self, consumer: Seeker) -> None:
        """Seek lost positions to where the input is; those that cannot be, at the next call."""
        for partition, at in sorted(self._lost.items(), key=lambda item: item[0]):
            try:
                found = consumer.get_watermark_offsets(Position(*partition), _RANGE_S)
                [to] = self._watch.settle({partition: at}, {partition: found}, {}).values()
                consumer.seek(Position(*partition, to))
            except KafkaException as error:
                self._lost[partition] = at
                _log.info("%s [%s] is not read yet: %s", *partition, error)
            else:
                self._stored.settled(partition, to)

    def forget(self, partitions: Iterable[Position | TopicPartition]) -> None:
        """Drop what is known of partitions that are read elsewhere, or no more."""
        for each in partitions:
            where = partition_of(each) if isinstance(each, Position) else each
            self._ends.pop(where, None)
            self._lost.pop(where, None)

    def positions(self, found: Sequence[Position]) -> list[Position]:
        """Return librdkafka's positions, with those at ends of partitions as the ends."""
        return [self._position(each) for each in found]

    def _position(self, found: Position) -> Position:
        end = self._ends.get(partition_of(found), -1)
        return Position(found.topic, found.partition, end) if end > found.offset else found
