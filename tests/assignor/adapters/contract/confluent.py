"""librdkafka's consumer in virtual time, by experiment: it is not to be had without threads.

What it does was found with the scripts on real clients, which `contract` repeats for each release:

- errors of a partition are messages, and come again after each pause while the cause lasts; records
  before them are returned first, those of other partitions go on;
- a position is invalid from a seek, or an assignment, to the next record;
- an offset that does not exist is an error once, and nothing is fetched until the partition is
  assigned anew: a seek is refused;
- of a topic that was deleted nothing is said, for minutes;
- a paused partition, and one that is taken away, loses what was fetched;
- up to 2.13.0, an error moves the position behind its offset.
"""

from dataclasses import dataclass

import confluent_kafka
from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as Position
from kafka.record import MemoryRecords

from tests.assignor.adapters.contract.cluster import NO_LEADER, OUT_OF_RANGE, TOPIC, UNKNOWN_TOPIC

_SILENT = frozenset({NO_LEADER, UNKNOWN_TOPIC})  # metadata are asked for
_NO_RIGHT, _NO_RIGHT_S = 29, 1.0  # is an error once, as long as it lasts
_CODEC_BITS = 7
_LAST_MOVING = (2, 13, 0)  # the next release is 2.13.2


@dataclass
class _Read:
    """A partition that is read."""

    next: int
    position: int = OFFSET_INVALID
    is_dead: bool = False
    retry_s: float = 0.0
    refused: int = 0


class Reader(confluent_kafka.Consumer):
    """A consumer of a scripted cluster, which is an attribute of a subclass."""

    scripted, errors_move = None, False

    def __init__(self, config):
        backoff_ms = config.get("fetch.error.backoff.ms", 500)
        self._backoff_s, self._reads, self._stopped = backoff_ms / 1000, {}, set()

    # What is read

    def incremental_assign(self, partitions):
        for each in partitions:
            self._reads[each.partition] = _Read(each.offset)

    def incremental_unassign(self, partitions):
        for each in partitions:
            del self._reads[each.partition]

    def assign(self, partitions):
        self._reads = {}
        self.incremental_assign(partitions)

    def unassign(self):
        self._reads = {}

    def assignment(self):
        return [Position(TOPIC, number) for number in sorted(self._reads)]

    def seek(self, partition):
        read = self._reads.get(partition.partition)
        if read is None or read.is_dead:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self._reads[partition.partition] = _Read(partition.offset, retry_s=read.retry_s)

    def pause(self, partitions):
        self._stopped |= {each.partition for each in partitions}

    def resume(self, partitions):
        self._stopped -= {each.partition for each in partitions}

    def position(self, partitions):
        none, reads = _Read(OFFSET_INVALID), self._reads or {}
        return [
            Position(each.topic, each.partition, reads.get(each.partition, none).position)
            for each in partitions
        ]

    def get_watermark_offsets(self, partition, timeout=-1, cached=False):  # noqa: FBT002 as librdkafka
        error, start, end = self.scripted.range_of(partition.partition)
        if error:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return start, end

    def offsets_for_times(self, partitions, timeout=-1):
        ranges = [self.get_watermark_offsets(each, timeout) for each in partitions]
        return [
            Position(TOPIC, each.partition, range_[each.offset == OFFSET_END])
            for each, range_ in zip(partitions, ranges, strict=True)
        ]

    def store_offsets(self, message=None, offsets=None):
        """Nothing is committed by librdkafka."""

    # Records

    def poll(self, timeout=-1):
        return next(iter(self.consume(1, timeout)), None)

    def consume(self, num_messages=1, timeout=-1):
        if self._reads is None:
            raise RuntimeError("Consumer closed")
        clock, found = self.scripted.clock, []
        end_s = clock.monotonic() + max(0.0, timeout)
        clock.turn()
        while True:
            for number in sorted(self._reads.keys() - self._stopped, reverse=True):
                while len(found) < num_messages:
                    message = self._next(number, self._reads[number])
                    if message is None:
                        break
                    found.append(message)
            left_s = end_s - clock.monotonic()
            if len(found) >= num_messages or left_s <= 0:
                return found
            self.scripted.waiters.append(lambda: None)
            clock.wait(min(left_s, self._backoff_s))

    def _next(self, number, read):
        message = self._read_next(number, read)
        if self.errors_move and message is not None and message.error() is not None:
            offset = message.offset()
            read.position = OFFSET_INVALID if offset is None else offset + 1
        return message

    def _read_next(self, number, read):  # noqa: C901, PLR0912 as librdkafka, in order
        now_s = self.scripted.clock.monotonic()
        if read.is_dead or now_s < read.retry_s:
            return None
        if self.scripted.fetch_failures:
            self.scripted.fetch_failures.pop(0)
            read.retry_s = now_s + self._backoff_s
            return None
        error, start, end = self.scripted.range_of(number)
        if not error and read.next == OFFSET_INVALID:  # nothing is committed, and no reset
            error = OUT_OF_RANGE
        elif not error and read.next < 0:
            read.next = end if read.next == OFFSET_END else start
        error, _, data = (error, -1, b"") if error else self.scripted.fetch(number, read.next)
        if error:
            read.retry_s = now_s + self._backoff_s
            is_known, read.refused = read.refused == error, error
            if error == _NO_RIGHT:
                read.retry_s = now_s + _NO_RIGHT_S
            if error in _SILENT or (is_known and error == _NO_RIGHT):
                return None
            read.is_dead = error == OUT_OF_RANGE
            if read.is_dead:
                self.scripted.shown[number] = self.scripted.incarnation
            code = KafkaError._AUTO_OFFSET_RESET if read.is_dead else error
            return _message(number, read.next, error=KafkaError(code))
        read.refused = 0
        records = MemoryRecords(data)
        while (batch := records.next_batch()) is not None:
            code = _refusal(batch)
            if code is not None:
                read.retry_s = now_s + self._backoff_s
                return _message(number, batch.base_offset, error=KafkaError(code))
            if batch.is_control_batch:
                if batch.base_offset >= read.next:
                    read.next = read.position = batch.base_offset + 1
                continue
            for record in batch:
                if record.offset >= read.next:
                    read.next = read.position = record.offset + 1
                    return _message(number, record.offset, value=record.value)
        return None

    def close(self):
        self._reads = None


def reader_of(cluster, release=(2, 14)):
    """Return the class of a consumer of a scripted cluster, as a release has it."""
    return type("Reader", (Reader,), {"scripted": cluster, "errors_move": release <= _LAST_MOVING})


def _message(number, offset, **rest):
    return Message(topic=TOPIC, partition=number, offset=offset, **rest)


def _refusal(batch):
    """Return why a batch cannot be read; None: it can."""
    if not batch.validate_crc():
        return KafkaError._BAD_MSG
    return KafkaError._BAD_COMPRESSION if batch.attributes & _CODEC_BITS else None
