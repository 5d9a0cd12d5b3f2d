"""The position of a record that a client cannot read, from the error that its fetcher raised."""

import traceback
from typing import Final

from assignor.embedding import UnreadableRecord, error_text, is_interrupt

# In both clients, the generator that reads a partition's batches, and its record.
_READS: Final = "_unpack_records"
_RECORD: Final = "record"


def unreadable(
    topic: str, partition: int, position: int, error: BaseException
) -> UnreadableRecord | None:
    """Return the error that names the record; None: a record is not the cause, as an interrupt.

    Args:
        topic: of the record.
        partition: of the record.
        position: up to where the partition was read. Offsets from there on may have no record
            (compaction), so the record that was being read is looked up in the traceback.
        error: of the deserializer, the codec or the checksum, or anything else.
    """
    # A StopIteration ends the generator, and has its frame alone.
    errors = [error] if error.__cause__ is None else [error, error.__cause__]
    frames = (frame for each in errors for frame, _ in traceback.walk_tb(each.__traceback__))
    reads = [frame for frame in frames if frame.f_code.co_name == _READS]
    if not reads or is_interrupt(error):
        return None
    offset = position
    for frame in reads:
        offset = max(offset, getattr(frame.f_locals.get(_RECORD), "offset", offset))
    return UnreadableRecord(topic, partition, offset, error_text(error))
