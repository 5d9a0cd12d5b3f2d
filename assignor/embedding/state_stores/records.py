"""Records of changelogs: keys and values, and what this package writes beside them.

A changelog record of a running task has a header with its owner: who wrote it, and with which
claim on the task. Two keys are reserved:

- an *owner record* claims the task. From then on records of earlier owners do not count;
- a *commit record* has everything that a batch of input wrote, in all stores of the task, and the
  input offsets after the batch. It is one record, so it is in the log whole or not at all. Each
  changelog of the task gets it, so that a store can be removed from the topology, and all are
  acknowledged before any of its writes is sent as a record of its own.

So each reader of the log computes the same state: the writes that it read, and then those of the
last commit record, which may not have become records of their own.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import msgpack

from assignor.logs import line_logger
from assignor.stores import StoreError, store_errors, text, whole_number
from encoding import TopicPartition

_log = line_logger(__name__)

RESERVED: Final = b"\x00assignor/"
OWNER_KEY: Final = RESERVED + b"owner"
COMMIT_KEY: Final = RESERVED + b"commit"
OWNER_HEADER: Final = "assignor-owner"
PROCESS_BYTES: Final = 8
Headers = Sequence[tuple[str, bytes | None]]
"""Names and values; other programs write some without a value."""
UNKNOWN_OFFSET: Final = -1
"""Of `ChangelogAccess.append`, where a broker does not say where a record is."""

# A name of no store, in the writes of a commit: topic -> id. Members that do not know it have no
# such store.
_TOPIC_IDS: Final = "\x00assignor/topic-ids"
_OWNER: Final = struct.Struct(f">Q{PROCESS_BYTES}s")
_FORMAT: Final = 1
# Epochs fit in 63 bits; a header beyond is not one of this package.
_EPOCH_LIMIT: Final = 1 << 62
# Each claim adds 1, and no group makes so many: an owner so far ahead is not of this package.
_EPOCH_JUMP: Final = 1 << 40
# Epochs between those that end a write-back: more claims than members make between two of them.
_CLAIMS_BETWEEN: Final = 1 << 30

Writes = Mapping[bytes, bytes | None]
"""Key -> value; None deletes the key."""


class Owner(NamedTuple):
    """The writer of a record: number of its claim on the task, and process; later claims win."""

    epoch: int
    process: bytes


NOBODY: Final = Owner(0, b"")
"""The owner of records without the header, such as those of other programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to write; `headers` are pairs of a name and bytes."""

    partition: TopicPartition
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class ChangelogRecord(Protocol):
    """A record that was read, as kafka-python's and aiokafka's `ConsumerRecord`."""

    @property
    def offset(self) -> int:
        """Its offset."""
        ...

    @property
    def key(self) -> bytes | None:
        """Its key."""
        ...

    @property
    def value(self) -> bytes | None:
        """Its value; None for a tombstone."""
        ...

    @property
    def timestamp(self) -> int | None:
        """When it was written, in ms since 1970; None or below 1: not known."""
        ...

    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]:
        """Its headers; other programs write some without a value."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A batch of input that is processed.

    Attributes:
        epoch: of the owner that made it.
        number: of the commit; each commit of an owner has a higher one than those before.
        inputs: input partition -> offset of the first record that is not processed.
        writes: store -> what the batch wrote.
        topic_ids: input topic -> its id, as far as the broker has one.
    """

    epoch: int = 0
    number: int = 0
    inputs: Mapping[TopicPartition, int] = field(default_factory=dict)
    writes: Mapping[str, Writes] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int]:
        """Later commits of the task have higher values, whatever stores it had meanwhile.

        Numbers alone do not: a changelog that the task did not have for a while has an old number.
        """
        return self.epoch, self.number


NO_COMMIT: Final = Commit()


def owned_record(
    changelog: TopicPartition, key: bytes, value: bytes | None, owner: Owner
) -> NewRecord:
    """Return a record of a running task, with its owner in a header."""
    headers = ((OWNER_HEADER, _OWNER.pack(*owner)),)
    return NewRecord(partition=changelog, key=key, value=value, headers=headers)


def owner_of(headers: Iterable[tuple[str, bytes | None]] | None) -> Owner:
    """Return the owner that a record names; `NOBODY` if it names none that is valid."""
    for name, value in headers or ():
        if name == OWNER_HEADER and value is not None and len(value) == _OWNER.size:
            owner = Owner(*_OWNER.unpack(value))
            return owner if 0 < owner.epoch < _EPOCH_LIMIT else NOBODY
    return NOBODY


def is_plausible(owner: Owner, *, after: Owner) -> bool:
    """Whether claims since `after` can have led to this owner; otherwise its header is foreign."""
    return owner.epoch - after.epoch < _EPOCH_JUMP


def fencing_owner(record: ChangelogRecord, *, after: Owner, name: str) -> Owner:
    """Return the owner that wrote a record: it fences earlier ones; `NOBODY` if implausible.

    Args:
        record: the record.
        after: owner of the last record before it that counted.
        name: of the changelog partition, for the log.
    """
    found = owner_of(record.headers)
    if is_plausible(found, after=after):
        return found
    _log.warning(
        "the record at offset %s of %s names owner epoch %s, which no claim has; the header is "
        "ignored. Does another program write to this changelog?",
        record.offset,
        name,
        found.epoch,
    )
    return NOBODY


def next_owner(last: Owner, process: bytes, *, name: str) -> Owner:
    """Return the owner of the next claim.

    Args:
        last: the latest owner of all changelogs of the task.
        process: of the new owner.
        name: of the changelog with `last`, for messages.

    Raises:
        StoreError: the epoch would be too high to be read.
    """
    if last.epoch + 1 >= _EPOCH_LIMIT:
        raise StoreError(
            f"{name} has records with owner epoch {last.epoch}, the last one that can be read, so "
            "that its task cannot be claimed; another program wrote them: make the changelog anew"
        )
    return Owner(last.epoch + 1, process)


def count_write_backs(owner: Owner) -> int:
    """Return how often `assignor write-back` has written the state of the task of an owner."""
    return owner.epoch // _CLAIMS_BETWEEN


def write_back_owner(last: Owner, process: bytes, *, name: str) -> Owner:
    """Return the owner that ends a write-back: the next one with a higher `count_write_backs`.

    Raises:
        StoreError: as `next_owner`.
    """
    epoch = (count_write_backs(last) + 1) * _CLAIMS_BETWEEN
    return next_owner(Owner(epoch - 1, process), process, name=name)


def commit_bytes(commit: Commit) -> bytes:
    """Return the value of a commit record."""
    inputs = [[topic, number, offset] for (topic, number), offset in sorted(commit.inputs.items())]
    writes = {store: list(found.items()) for store, found in sorted(commit.writes.items())}
    if ids := sorted(commit.topic_ids.items()):
        writes[_TOPIC_IDS] = [(topic.encode(), found.bytes) for topic, found in ids]
    packed: bytes = msgpack.packb([_FORMAT, commit.epoch, commit.number, inputs, writes])
    return packed


def read_commit(value: bytes | None, *, name: str) -> Commit:
    """Return the commit in the value of a commit record; `NO_COMMIT` for no value.

    Args:
        value: the bytes.
        name: of the record, for messages.

    Raises:
        StoreError: the value is not valid.
    """
    if not value:
        return NO_COMMIT
    remedy = "does another program write to this changelog?"
    with store_errors(name, problem="is not a valid commit record", remedy=remedy):
        given = msgpack.unpackb(value)
        if given[0] != _FORMAT:
            raise ValueError(f"format {given[0]} is unknown; this release reads {_FORMAT}")
        _, epoch, number, inputs, writes = given
        ids = writes.pop(_TOPIC_IDS, ())
        return Commit(
            epoch=whole_number(epoch, what="epoch"),
            number=whole_number(number, what="number"),
            inputs={
                TopicPartition(text(topic), whole_number(at, what="partition")): whole_number(
                    offset, what="offset"
                )
                for topic, at, offset in inputs
            },
            writes={text(store): _checked_writes(pairs) for store, pairs in writes.items()},
            topic_ids={topic.decode(): UUID(bytes=found) for topic, found in ids},
        )


def _checked_writes(pairs: Sequence[Sequence[object]]) -> Writes:
    writes: dict[bytes, bytes | None] = {}
    for key, value in pairs:
        if not isinstance(key, bytes) or not isinstance(value, bytes | None):
            raise TypeError(f"{key!r} and {value!r} are no bytes")
        writes[key] = value
    return writes
