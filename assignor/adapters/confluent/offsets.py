"""Which offsets to commit: librdkafka's stored offsets, kept for commits through the member.

librdkafka stores the offset after a record when it returns the record (`enable.auto.offset.store`),
or when the application calls `store_offsets`. A commit without arguments and the automatic commit
take the stored offsets that are newer than the committed ones.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from confluent_kafka import OFFSET_INVALID, KafkaError, Message
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.errors import refused
from assignor.adapters.confluent.messages import ErrorMessage
from encoding import TopicPartition

NO_EPOCH: Final = -1
Positions = Callable[[list[Position]], list[Position]]


def partition_of(position: Position) -> TopicPartition:
    """Return the partition of an offset."""
    return TopicPartition(position.topic, position.partition)


def offset_after(message: Message, what: str) -> Position:
    """Return the offset after a record; `what` is to be done with it.

    Raises:
        TypeError: this is no message.
        KafkaException: this is an error, not a record.
    """
    if not isinstance(message, Message | ErrorMessage):
        raise TypeError("expected cimpl.Message")
    error = message.error()
    if error is not None:
        raise refused(
            KafkaError._INVALID_ARG,
            f"Cannot {what} offsets for message with error: '{error.str()}'",
        )
    offset, epoch = message.offset(), message.leader_epoch()
    return Position(
        message.topic() or "",
        message.partition() or 0,
        OFFSET_INVALID if offset is None else offset + 1,
        leader_epoch=NO_EPOCH if epoch is None else epoch,
    )


class StoredOffsets:
    """Offsets that the application stored, and committed ones; callable on any thread."""

    def __init__(self) -> None:
        self._stored: dict[TopicPartition, Position] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._lock = threading.Lock()

    def store(self, offsets: Iterable[Position]) -> None:
        """Store offsets, those of partitions that no record was returned of left out."""
        with self._lock:
            for position in offsets:
                if position.offset >= 0:
                    self._stored[partition_of(position)] = position

    def newer(self, partitions: Iterable[TopicPartition] | None = None) -> list[Position]:
        """Return stored offsets that are newer than the committed ones, of these or all."""
        with self._lock:
            wanted = self._stored.keys() if partitions is None else {*partitions}
            return [
                self._stored[partition]
                for partition in sorted(self._stored.keys() & wanted)
                if self._stored[partition].offset > self._committed.get(partition, OFFSET_INVALID)
            ]

    def committed(self, offsets: Iterable[Position]) -> None:
        """Note offsets that are committed."""
        with self._lock:
            for position in offsets:
                self._committed[partition_of(position)] = position.offset

    def forget(self, partitions: Sequence[TopicPartition]) -> None:
        """Drop what is known of partitions that are read no more."""
        with self._lock:
            for partition in partitions:
                self._stored.pop(partition, None)
                self._committed.pop(partition, None)
