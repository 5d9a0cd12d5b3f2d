"""The records of one partition: batches as received, with a new base offset.

The checksum of a v2 batch does not cover base offset and leader epoch, so a broker writes both
without decoding the batch. Compressed batches are stored as they are (KIP-98).
"""

import struct
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka.record import MemoryRecords
from kafka.record.util import calc_crc32c

from system_tests.broker.compression import CorruptError, TooLargeError, uncompressed_size
from system_tests.broker.transactions import CONTROL, Transactions, attributes_of

# base offset, length, leader epoch, magic, crc, attributes, last offset delta, first and max
# timestamp, producer id, producer epoch, base sequence, count
_HEADER = struct.Struct(">qiibIhiqqqhii")
_POSITION = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_LENGTH_BEFORE = 12
_EPOCH_AT = 12
_CRC_FROM = 21
_SEQUENCES = 2**31
_REMEMBERED_BATCHES = 5
# Without a C library the checksum is computed in Python; larger batches are not checked.
_CRC_BYTES_MAX = 16_384
_ATTRIBUTES_AT = 22
_CODEC_BITS = 7
# Length, attributes, two deltas, key and value, number of headers: a byte each.
_RECORD_BYTES_MIN = 7
# Kafka limits the compressed size of a batch only. Here the records of a batch are held in memory
# to find a timestamp, so the decompressed size is limited to this multiple of `message.max.bytes`.
_UNCOMPRESSED_FACTOR = 8

NONE = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
MESSAGE_TOO_LARGE = 10
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87


class Appended(NamedTuple):
    """The result of an append: an error code, the batch's base offset, the log's start offset."""

    error: int
    base_offset: int = -1
    message: str | None = None
    start_offset: int = -1


class TimestampOffset(NamedTuple):
    """A record's offset with its timestamp in ms; both -1 if there is none."""

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A stored batch."""

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    data: bytes


@dataclass(slots=True)
class _Producer:
    """State of an idempotent producer: its epoch and its last batches."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(
        default_factory=lambda: deque(maxlen=_REMEMBERED_BATCHES)
    )


class PartitionLog:
    """A partition in memory. Offsets start at 0.

    Args:
        max_batch_bytes: maximum size of a batch.
        retention_bytes: old batches are deleted if at least this much remains
            (`retention.bytes`); None keeps all.
    """

    def __init__(self, max_batch_bytes: int, retention_bytes: int | None = None) -> None:
        self._max_batch_bytes = max_batch_bytes
        self._retention_bytes = retention_bytes
        self._bytes = 0
        self.start_offset = 0
        self._batches: list[Batch] = []
        self._last_offsets: list[int] = []
        self._producers: dict[int, _Producer] = {}
        self._epoch_starts: list[tuple[int, int]] = [(0, 0)]
        self.end_offset = 0
        self.transactions = Transactions()

    @property
    def stable_end_offset(self) -> int:
        """The last stable offset: the end for readers of committed transactions."""
        return self.transactions.stable_end(self.end_offset)

    @property
    def leader_epoch(self) -> int:
        """Number of leader changes."""
        return self._epoch_starts[-1][0]

    def new_leader(self) -> None:
        """Begin the next leader epoch."""
        self._epoch_starts.append((self.leader_epoch + 1, self.end_offset))

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return (highest known epoch <= `epoch`, its end offset), or (-1, -1) if there is none."""
        at = bisect_right(self._epoch_starts, epoch, key=lambda pair: pair[0])
        if at == 0:
            return -1, -1
        end = self._epoch_starts[at][1] if at < len(self._epoch_starts) else self.end_offset
        return self._epoch_starts[at - 1][0], end

    def append(self, data: bytes) -> Appended:
        """Append one v2 record batch; a repeated one of an idempotent producer is not stored."""
        if len(data) < _HEADER.size:
            return Appended(CORRUPT_MESSAGE, message=f"{len(data)} bytes are no record batch")
        header = _HEADER.unpack_from(data)
        _, length, _, magic, crc, _, last_delta, _, max_timestamp_ms = header[:9]
        producer_id, producer_epoch, first_sequence, count = header[9:]
        refused = self._refusal(data, length, magic, crc, (count, last_delta))
        if refused is not None:
            return refused
        has_sequence = producer_id >= 0 and not attributes_of(data) & CONTROL
        if has_sequence:
            known = self._check_sequence(producer_id, producer_epoch, first_sequence, count)
            if known is not None:
                return known
        base_offset = self.end_offset
        stored = bytearray(data)
        _POSITION.pack_into(stored, 0, base_offset)
        _EPOCH.pack_into(stored, _EPOCH_AT, self.leader_epoch)
        last_offset = base_offset + last_delta
        self._batches.append(Batch(base_offset, last_offset, max_timestamp_ms, bytes(stored)))
        self._last_offsets.append(last_offset)
        self.end_offset = last_offset + 1
        self._bytes += len(stored)
        self.transactions.appended(data, producer_id, base_offset)
        self._clean_up()
        if has_sequence:
            last_sequence = (first_sequence + count - 1) % _SEQUENCES
            batches = self._producers[producer_id].batches
            batches.append((first_sequence, last_sequence, base_offset))
        return Appended(NONE, base_offset, start_offset=self.start_offset)

    def read(
        self, offset: int, max_bytes: int, *, at_least_one: bool, end_offset: int | None = None
    ) -> bytes:
        """Return whole batches from the one that contains `offset` on, up to `max_bytes`.

        Args:
            offset: the first offset that is read.
            max_bytes: of all batches.
            at_least_one: return the first batch even if it is larger (KIP-74).
            end_offset: return batches that begin before this offset; default: all.
        """
        chunks: list[bytes] = []
        size = 0
        for at in range(bisect_left(self._last_offsets, offset), len(self._batches)):
            data = self._batches[at].data
            if end_offset is not None and self._batches[at].base_offset >= end_offset:
                break
            if size + len(data) > max_bytes and (chunks or not at_least_one):
                break
            chunks.append(data)
            size += len(data)
        return b"".join(chunks)

    def find_timestamp(self, timestamp_ms: int) -> TimestampOffset:
        """Return the first record at or after a timestamp."""
        for batch in self._batches:
            if batch.max_timestamp_ms < timestamp_ms:
                continue
            for offset, record_ms in _records_of(batch):
                if record_ms >= timestamp_ms:
                    return TimestampOffset(offset, record_ms)
        return TimestampOffset(-1, -1)

    def max_timestamp(self) -> TimestampOffset:
        """The record with the greatest timestamp (KIP-734)."""
        if not self._batches:
            return TimestampOffset(-1, -1)
        newest = max(self._batches, key=lambda batch: batch.max_timestamp_ms)
        return self.find_timestamp(newest.max_timestamp_ms)

    def _clean_up(self) -> None:
        """Delete old batches, many at a time, as a broker deletes segments."""
        keep = self._retention_bytes
        if keep is None or self._bytes <= keep + max(keep // 4, 1):
            return
        dropped = 0
        for batch in self._batches:
            if self._bytes - len(batch.data) < keep:
                break
            self._bytes -= len(batch.data)
            dropped += 1
        del self._batches[:dropped]
        del self._last_offsets[:dropped]
        if self._batches:
            self.start_offset = self._batches[0].base_offset

    def _refusal(
        self, data: bytes, length: int, magic: int, crc: int, counts: tuple[int, int]
    ) -> Appended | None:
        """Return the error of an invalid batch, or `None`."""
        count, last_delta = counts
        if magic != 2:  # noqa: PLR2004 - the magic number of the only format still produced
            return Appended(UNSUPPORTED_FOR_MESSAGE_FORMAT, message=f"magic {magic}; send 2")
        if len(data) > self._max_batch_bytes:
            limit = self._max_batch_bytes
            return Appended(MESSAGE_TOO_LARGE, message=f"{len(data)} bytes; at most {limit}")
        if length != len(data) - _LENGTH_BEFORE:
            return Appended(INVALID_RECORD, message="not exactly one whole batch; send one")
        if count < 1 or last_delta != count - 1:
            return Appended(INVALID_RECORD, message=f"{count} records, last delta {last_delta}")
        if len(data) <= _CRC_BYTES_MAX and calc_crc32c(memoryview(data)[_CRC_FROM:]) != crc:
            return Appended(CORRUPT_MESSAGE, message="the checksum does not match; send it again")
        return self._records_refusal(data, count)

    def _records_refusal(self, data: bytes, count: int) -> Appended | None:
        """Return the error of invalid records, or `None`; unknown if the codec is not installed."""
        codec = data[_ATTRIBUTES_AT] & _CODEC_BITS
        limit = _UNCOMPRESSED_FACTOR * self._max_batch_bytes
        try:
            size = uncompressed_size(codec, data[_HEADER.size :], limit)
        except KeyError:
            return Appended(UNSUPPORTED_COMPRESSION_TYPE, message=f"codec {codec}; use 0 to 4")
        except TooLargeError as error:
            return Appended(MESSAGE_TOO_LARGE, message=f"{error}; send smaller batches")
        except CorruptError as error:
            return Appended(CORRUPT_MESSAGE, message=f"{error}; send it again")
        if size is not None and count * _RECORD_BYTES_MIN > size:
            return Appended(INVALID_RECORD, message=f"{count} records do not fit in {size} bytes")
        return None

    def _check_sequence(
        self, producer_id: int, epoch: int, first_sequence: int, count: int
    ) -> Appended | None:
        """Check the sequence (KIP-98): return an error, the result of a repeated batch, or None."""
        producer = self._producers.get(producer_id)
        if producer is None or epoch > producer.epoch:
            if producer is not None and first_sequence != 0:
                return Appended(OUT_OF_ORDER_SEQUENCE_NUMBER, message="a new epoch starts at 0")
            self._producers[producer_id] = _Producer(epoch)
            return None
        if epoch < producer.epoch:
            return Appended(INVALID_PRODUCER_EPOCH, message=f"epoch is {producer.epoch} by now")
        last_sequence = (first_sequence + count - 1) % _SEQUENCES
        for known_first, known_last, base_offset in producer.batches:
            if (known_first, known_last) == (first_sequence, last_sequence):
                return Appended(NONE, base_offset, start_offset=self.start_offset)
        expected = (producer.batches[-1][1] + 1) % _SEQUENCES if producer.batches else None
        if expected is not None and first_sequence != expected:
            return Appended(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                message=f"sequence {first_sequence} where {expected} was next",
            )
        return None


def _records_of(batch: Batch) -> list[tuple[int, int]]:
    """Return (offset, timestamp) of the records; only of the batch if it cannot be decoded."""
    try:
        opened = MemoryRecords(batch.data).next_batch()
        return [(record.offset, record.timestamp) for record in opened or ()]
    except Exception:  # noqa: BLE001 kafka-python's decoder raises whatever its innermost step does
        # Invalid records, or a codec that is not installed.
        return [(batch.base_offset, batch.max_timestamp_ms)]
