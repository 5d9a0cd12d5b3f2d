"""Transactions as data: batches and control batches (KIP-98) that a test appends to a log.

There is no transaction coordinator. A test writes what a broker's log contains after a producer's
transactions:

```
log = broker.cluster.catalog.log("in", 0)
log.append(transactional_batch([b"a", b"b"], producer_id=7))
log.append(control_batch(producer_id=7, is_commit=True))
```
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
_ATTRIBUTES_AT: Final = 21
_CRC_AT: Final = 17
_BATCH_BYTES: Final = 1 << 20
# Version and type; version and epoch of the coordinator.
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_COMMIT: Final = 1


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted, with the offsets of its first record and of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class Transactions:
    """The transactions of a log: which are open, and which were aborted."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []

    def appended(self, data: bytes, producer_id: int, base_offset: int) -> None:
        """Note a batch that the log has stored at this offset."""
        attributes = attributes_of(data)
        if attributes & CONTROL:
            first = self._open.pop(producer_id, None)
            if first is not None and not _is_commit(data):
                self._aborted.append(AbortedTransaction(producer_id, first, base_offset))
        elif attributes & TRANSACTIONAL:
            self._open.setdefault(producer_id, base_offset)

    def stable_end(self, end_offset: int) -> int:
        """Return the last stable offset: that of the first record of an open transaction."""
        return min(self._open.values(), default=end_offset)

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that have records or a marker in [start, end)."""
        return [
            each for each in self._aborted if each.last_offset >= start and each.first_offset < end
        ]


def attributes_of(data: bytes) -> int:
    """Return the attributes of a v2 batch; 0 of bytes that are too short for one."""
    end = _ATTRIBUTES_AT + 2
    return int.from_bytes(data[_ATTRIBUTES_AT:end], "big") if len(data) >= end else 0


def transactional_batch(
    values: Sequence[bytes], *, producer_id: int, epoch: int = 0, first_sequence: int = 0
) -> bytes:
    """Return a batch of records of a transaction.

    Args:
        values: of the records.
        producer_id: of the producer.
        epoch: of the producer.
        first_sequence: number of records that the producer has written to the partition before.
    """
    return _batch([(None, value) for value in values], producer_id, epoch, first_sequence)


def control_batch(*, producer_id: int, is_commit: bool, epoch: int = 0) -> bytes:
    """Return the marker that ends a transaction of a producer."""
    key = _KEY.pack(0, _COMMIT if is_commit else 0)
    data = bytearray(_batch([(key, _VALUE.pack(0, 0))], producer_id, epoch, -1))
    data[_ATTRIBUTES_AT + 1] |= CONTROL
    struct.pack_into(">I", data, _CRC_AT, calc_crc32c(bytes(data[_ATTRIBUTES_AT:])))
    return bytes(data)


def _batch(
    pairs: Sequence[tuple[bytes | None, bytes]], producer_id: int, epoch: int, first_sequence: int
) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=first_sequence,
        batch_size=_BATCH_BYTES,
    )
    for at, (key, value) in enumerate(pairs):
        builder.append(at, timestamp=0, key=key, value=value, headers=[])
    return bytes(builder.build())


def _is_commit(data: bytes) -> bool:
    batch = MemoryRecords(data).next_batch()
    return bool(_KEY.unpack_from(next(iter(batch)).key)[1] == _COMMIT)
