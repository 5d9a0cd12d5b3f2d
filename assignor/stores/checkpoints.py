"""Checkpoints: the changelog offsets up to which a task's local state is restored.

Format 1 is Kafka Streams' text format, so that a JVM member can take over the directory. Format 2
has a checksum and also stores the end offset sum, so that the lag is known without a request.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgpack
import numpy as np

from assignor.stores.errors import StoreError, store_errors
from assignor.stores.files import seal, unseal
from assignor.stores.reading import text, whole_number
from encoding import TopicPartition

CHECKPOINT_NAME: Final = ".checkpoint"
CHECKPOINT_LIMIT: Final = 64 << 20
CHECKPOINT_REMEDY: Final = "delete it, and the state is restored"
_MAGIC: Final = b"SRBchkp2"
_TEXT_VERSION: Final = "0"
_FIELDS: Final = 3
_NUMBER: Final = re.compile("-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The offsets of one task.

    Attributes:
        offsets: changelog partition -> next offset to read; -4 is "unknown", as in Kafka Streams.
        end_offset_sum: sum of the partitions' end offsets when the checkpoint was written; None in
            format 1.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    end_offset_sum: int | None = None

    @property
    def offset_sum(self) -> int:
        """Sum of the offsets of all changelog partitions; unknown offsets count as 0."""
        return sum(offset for offset in self.offsets.values() if offset > 0)

    @property
    def lag(self) -> int | None:
        """Records that were not restored when it was written; None if not known (format 1)."""
        return (
            None if self.end_offset_sum is None else max(0, self.end_offset_sum - self.offset_sum)
        )


def checkpoint_bytes(checkpoint: Checkpoint, file_format: int) -> bytes:
    """Return the bytes of a checkpoint.

    Raises:
        StoreError: a topic's name cannot be written in the text format.
    """
    rows = sorted(checkpoint.offsets.items())
    if file_format == 1:
        blank = [topic for (topic, _), _ in rows if not topic or any(map(str.isspace, topic))]
        if blank:
            raise StoreError(
                f"topic name {blank[0]!r} is empty or has white space; a checkpoint of format 1 "
                "cannot contain it"
            )
        lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in rows]
        return "\n".join([_TEXT_VERSION, str(len(rows)), *lines, ""]).encode()
    topics = sorted({topic for (topic, _), _ in rows})
    number_by_topic = {topic: number for number, topic in enumerate(topics)}
    columns = np.array(
        [(number_by_topic[topic], partition, offset) for (topic, partition), offset in rows],
        dtype="<i8",
    ).reshape(-1, _FIELDS)
    body = {
        "topics": topics,
        "columns": [column.tobytes() for column in columns.T],
        "end_offset_sum": checkpoint.end_offset_sum,
    }
    return seal(_MAGIC, msgpack.packb(body))


def read_checkpoint(data: bytes, *, name: str) -> Checkpoint:
    """Return the checkpoint in a file of any known format.

    Args:
        data: the bytes of the file.
        name: path of the file, for messages.

    Raises:
        StoreError: the file is damaged; the state has to be restored from the start.
    """
    with store_errors(name, problem="is not a valid checkpoint", remedy=CHECKPOINT_REMEDY):
        if data[:8] != _MAGIC:
            return _from_text(data.decode())
        given = msgpack.unpackb(unseal(_MAGIC, data, name=name))
        topics = [text(topic) for topic in given["topics"]]
        columns = [np.frombuffer(column, "<i8") for column in given["columns"]]
        number, partition, offset = columns
        if len(number) and not 0 <= number.min() <= number.max() < len(topics):
            raise ValueError(f"numbers of topics go from 0 to {len(topics) - 1}")
        end = given["end_offset_sum"]
        return Checkpoint(
            offsets={
                TopicPartition(topics[n], p): o
                for n, p, o in zip(
                    number.tolist(), partition.tolist(), offset.tolist(), strict=True
                )
            },
            end_offset_sum=None if end is None else whole_number(end, what="end_offset_sum"),
        )


def _from_text(written: str) -> Checkpoint:
    version, count, *lines = written.splitlines()
    if version.strip() != _TEXT_VERSION:
        raise ValueError(f"version {version[:20]!r} is unknown")
    rows = [line.split() for line in lines if line.strip()]
    if len(rows) != _number(count):
        raise ValueError(f"the header says {_number(count)} entries, the file has {len(rows)}")
    offsets = {
        TopicPartition(topic, _number(partition)): _number(offset)
        for topic, partition, offset in rows
    }
    return Checkpoint(offsets=offsets)


def _number(given: str) -> int:
    """Return an integer as Java writes a `long`; `int` would accept non-ASCII digits too."""
    found = _NUMBER.fullmatch(given.strip())
    if found is None or not -(1 << 63) <= int(found[0]) < 1 << 63:
        raise ValueError(f"{given[:40]!r} is not a whole number of 64 bits")
    return int(found[0])
