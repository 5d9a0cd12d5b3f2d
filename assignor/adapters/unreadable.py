"""The position of a record that a client cannot read, from the error that its fetcher raised."""

import traceback
from typing import Final

from assignor.embedding import UnreadableRecord, error_text

# In both clients, the generator that reads a partition's batches, and its record.
_READS: Final = "_unpack_records"
_RECORD: Final = "record"


def unreadable(topic: str, partition: int, position: int, error: Exception) -> UnreadableRecord:
    """Return the error that names the record.

    Args:
        topic: of the record.
        partition: of the record.
        position: up to where the partition was read. Offsets from there on may have no record
            (compaction), so the record that was being read is looked up in the traceback.
        error: of the deserializer, the codec or the checksum.
    """
    offset = position
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == _READS:
            offset = max(offset, getattr(frame.f_locals.get(_RECORD), "offset", offset))
    return UnreadableRecord(topic, partition, offset, error_text(error))
