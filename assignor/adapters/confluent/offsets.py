"""Where librdkafka's consumer is, and which offsets to commit: kept for commits through the member.

librdkafka stores the offset after a record when it returns the record (`enable.auto.offset.store`),
or when the application calls `store_offsets`. A commit without arguments and the automatic commit
take the stored offsets that are newer than the committed ones.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import confluent_kafka
from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.errors import ErrorMessage, refused
from encoding import TopicPartition

NO_EPOCH: Final = -1
NOWHERE: Final = 1 << 62
"""Behind each log: librdkafka reports it as lost, and where to begin is looked up then."""
_COMMITTED: Final = frozenset({OFFSET_INVALID, OFFSET_STORED})
# What is fetched lies behind these.
_NOT_BEFORE: Final = frozenset({OFFSET_END, OFFSET_INVALID, OFFSET_STORED})


def partition_of(position: Position) -> TopicPartition:
    """Return the partition of an offset."""
    return TopicPartition(position.topic, position.partition)


def place_of(message: Message) -> TopicPartition:
    """Return the partition of a record, or of an error of a partition."""
    return TopicPartition(message.topic() or "", message.partition() or 0)


def checked_offsets(offsets: object) -> list[Position]:
    """Return given offsets.

    Raises:
        TypeError: they are no list of partitions with offsets.
    """
    if not isinstance(offsets, list):
        raise TypeError("requires list of TopicPartition")
    if not all(isinstance(each, Position) for each in offsets):
        raise TypeError("expected cimpl.TopicPartition")
    return list(offsets)


def assignable(
    partitions: object, topics: AbstractSet[str], owned: AbstractSet[TopicPartition]
) -> frozenset[TopicPartition]:
    """Return the partitions that an application wants to read.

    Args:
        partitions: as given.
        topics: of the group.
        owned: partitions of the group that this consumer has.

    Raises:
        TypeError: they are no list of partitions.
        KafkaException: the group has not assigned one of its partitions here; when it does, the
            partition could not be assigned again.
    """
    offsets = checked_offsets(partitions)
    foreign = refuse_foreign(offsets, topics, owned)
    if foreign is not None:
        raise KafkaException(foreign)
    return frozenset(map(partition_of, offsets))


def check_not_read(read: Iterable[TopicPartition], topics: Sequence[str]) -> None:
    """Check that no partition is read already that the group is about to assign.

    Raises:
        KafkaException: one is, since the application has assigned it.
    """
    found = sorted(each for each in read if each.topic in topics)
    if found:
        raise refused(
            KafkaError._CONFLICT,
            f"Failed to set subscription: {found[0].topic} [{found[0].partition}] is assigned by "
            "this application already, and the group could not assign it; call unassign first",
        )


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
    """Offsets that the application stored, and committed ones; callable on any thread.

    Args:
        reset: where a partition begins of which nothing is committed, as a logical offset;
            `OFFSET_INVALID`: librdkafka decides.

    Attributes:
        polled: partition -> where reading has begun since a poll emptied this.
    """

    def __init__(self, reset: int = OFFSET_INVALID) -> None:
        self._reset = reset
        self._stored: dict[TopicPartition, Position] = {}
        self._committed: dict[TopicPartition, Position] = {}
        self._begun: dict[TopicPartition, Position] = {}
        self.polled: dict[TopicPartition, int] = {}
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
                if self._stored[partition].offset > self._committed_offset(partition)
            ]

    def _committed_offset(self, partition: TopicPartition) -> int:
        position = self._committed.get(partition)
        return OFFSET_INVALID if position is None else int(position.offset)

    def fetched(
        self, partitions: Iterable[TopicPartition], offsets: Mapping[TopicPartition, Position]
    ) -> None:
        """Note what the group has committed of partitions; of those left out nothing."""
        with self._lock:
            for partition in partitions:
                begin = offsets.get(partition, Position(*partition, self._reset))
                self._committed[partition] = begin

    def begin(self, position: Position) -> Position:
        """Return where to begin to read a partition: as given, or else at its committed offset.

        librdkafka would ask the coordinator, and for ever wait when the coordinator has moved: it
        takes NOT_COORDINATOR for an answer without partitions, and does not ask again.
        """
        partition = partition_of(position)
        with self._lock:
            if position.offset in _COMMITTED:
                position = self._committed.get(partition, position)
            self._note_begun(partition, position)
        return position

    def begun(self, partition: TopicPartition) -> int:
        """Return where reading begins if nothing is committed; below 0: that is unknown.

        A committed offset need not be committed again, and may be one of a former topic.
        """
        with self._lock:
            if (position := self._begun.get(partition)) is None:
                return OFFSET_INVALID
            is_committed = self._committed_offset(partition) >= 0
        return OFFSET_INVALID if is_committed else int(position.offset)

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return whether a partition is to begin behind its last record."""
        with self._lock:
            return self._begun.get(partition, Position(*partition)).offset == OFFSET_END

    def last(self, partitions: Iterable[TopicPartition]) -> list[Position]:
        """Return where partitions are read again of which it is unknown what was returned.

        That is the last offset that was stored or committed, or where they began.
        """
        with self._lock:
            found = [
                self._stored.get(each)
                or (self._committed[each] if self._committed_offset(each) >= 0 else None)
                or self._begun.get(each)
                for each in sorted(partitions)
            ]
        return [each for each in found if each is not None and each.offset not in _NOT_BEFORE]

    def committed(self, offsets: Iterable[Position]) -> None:
        """Note offsets that are committed."""
        with self._lock:
            for position in offsets:
                if position.offset >= 0:
                    self._committed[partition_of(position)] = position

    def settled(self, partition: TopicPartition, offset: int) -> None:
        """Note that a lost position has become this offset: lower ones are newer now."""
        self.forget([partition])
        with self._lock:
            self._note_begun(partition, Position(*partition, offset))

    def _note_begun(self, partition: TopicPartition, position: Position) -> None:
        self._begun[partition] = position
        self.polled[partition] = int(position.offset)

    def forget(self, partitions: Sequence[TopicPartition]) -> None:
        """Drop what is known of partitions that are read no more."""
        with self._lock:
            for partition in partitions:
                self._stored.pop(partition, None)
                self._committed.pop(partition, None)
                self._begun.pop(partition, None)


def refuse_foreign(
    offsets: Iterable[Position], topics: Iterable[str], owned: AbstractSet[TopicPartition]
) -> KafkaError | None:
    """Return why offsets of the group's topics cannot be committed, or None.

    A commit for a partition that another member has would set that member back.

    Args:
        offsets: to commit.
        topics: of the group.
        owned: partitions of the group that this consumer has.
    """
    names = frozenset(topics)
    foreign = [each for each in offsets if each.topic in names and partition_of(each) not in owned]
    if not foreign:
        return None
    partition = partition_of(foreign[0])
    return KafkaError(
        KafkaError._ASSIGNMENT_LOST,
        f"{partition.topic} [{partition.partition}] is not assigned to this consumer now; "
        "another member continues with it",
    )


def read_one(consumer: confluent_kafka.Consumer, wait_s: float) -> list[Message]:
    """Return a message that librdkafka has within `wait_s` seconds, or none."""
    message = confluent_kafka.Consumer.poll(consumer, wait_s)
    return [] if message is None else [message]


def by_partition(messages: Iterable[Message]) -> dict[TopicPartition, list[Message]]:
    """Return partition -> records of these messages, errors left out."""
    records: dict[TopicPartition, list[Message]] = {}
    for message in messages:
        if message.error() is None:
            records.setdefault(place_of(message), []).append(message)
    return records
