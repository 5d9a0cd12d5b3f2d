"""The consumer protocol around an assignor's user data, read without a client.

```
subscription  int16 version | int32 n, n x string topic | bytes user data
              from 1: partitions owned | from 2: int32 generation | from 3: string rack
assignment    int16 version | partitions | bytes user data
partitions    int32 n, n x (string topic, int32 n, n x int32 partition)
```

Strings are int16 length and UTF-8, bytes int32 length; -1 is null. Versions above 3 are read as 3,
since later versions only append. Owned partitions came with KIP-429, the generation with KIP-792,
the rack with KIP-881.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from encoding import DecodeError, TopicPartition

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_SMALLEST_TOPIC: Final = 6  # bytes of an empty name and of a count
_OWNED_SINCE: Final = 1
_GENERATION_SINCE: Final = 2
_RACK_SINCE: Final = 3
_NOTHING: Final = _INT16.pack(0) + _INT32.pack(0) + _INT32.pack(0)
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # as Kafka's `Topic.validate`


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSubscription:
    """Metadata with which a member joined.

    Attributes:
        version: of the consumer protocol, not of the assignment protocol.
        topics: that the member subscribes to, in its order.
        user_data: the assignor's own bytes; may be empty.
        owned_partitions: that the member has not given up; empty before version 1.
        generation: in which it got them; -1 if unknown.
        rack: `client.rack`, or None.
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerAssignment:
    """The leader's answer to a member: partitions, sorted, and the assignor's own bytes."""

    version: int
    partitions: tuple[TopicPartition, ...]
    user_data: bytes


def read_consumer_subscription(data: bytes) -> ConsumerSubscription:
    """Read a member's metadata.

    Raises:
        DecodeError: the bytes end early, or a count is larger than the bytes allow.
    """
    read = _Reader(data, "consumer subscription")
    version = read.int16("version")
    topics = tuple(read.text("topic") for _ in range(read.count("topics", 2)))
    user_data = read.blob("user data")
    owned = read.partitions() if version >= _OWNED_SINCE else ()
    generation = read.int32("generation") if version >= _GENERATION_SINCE else -1
    rack = read.optional_text("rack") if version >= _RACK_SINCE else None
    return ConsumerSubscription(
        version=version,
        topics=topics,
        user_data=user_data,
        owned_partitions=owned,
        generation=generation,
        rack=rack or None,
    )


def read_consumer_assignment(data: bytes) -> ConsumerAssignment:
    """Read a member's part of the leader's answer.

    Raises:
        DecodeError: the bytes end early, or a count is larger than the bytes allow.
    """
    read = _Reader(data, "consumer assignment")
    version = read.int16("version")
    partitions = tuple(sorted(read.partitions()))
    return ConsumerAssignment(
        version=version, partitions=partitions, user_data=read.blob("user data")
    )


def safe_consumer_subscription(data: bytes) -> bytes:
    """Return a member's metadata in a form that no client of a leader raises for.

    Topics whose names Kafka does not allow are left out: a client would ask its broker for them.
    Bytes that cannot be decoded become a subscription without topics and user data, which the
    leader quarantines.
    """
    try:
        given = read_consumer_subscription(data)
    except DecodeError:
        return _NOTHING
    kept = [topic.encode() for topic in given.topics if _TOPIC.fullmatch(topic)]
    if len(kept) == len(given.topics):
        return data
    listed = b"".join(_INT16.pack(len(topic)) + topic for topic in kept)
    start = 2 + 4 + sum(2 + len(topic.encode()) for topic in given.topics)
    return _INT16.pack(given.version) + _INT32.pack(len(kept)) + listed + data[start:]


class _Reader:
    """Reads bytes in order; every read that does not fit is a `DecodeError`."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what, self._at = bytes(data), what, 0

    def int16(self, name: str) -> int:
        return int(_INT16.unpack(self._take(2, name))[0])

    def int32(self, name: str) -> int:
        return int(_INT32.unpack(self._take(4, name))[0])

    def count(self, name: str, each: int) -> int:
        """Read a count of entries of at least `each` bytes; refuse more than the bytes can hold."""
        count = self.int32(name)
        if not 0 <= count <= (len(self._data) - self._at) // each:
            raise self._wrong(f"claims {count} {name}")
        return count

    def optional_text(self, name: str) -> str | None:
        size = self.int16(name)
        if size < -1:
            raise self._wrong(f"{name} has length {size}")
        if size == -1:
            return None
        try:
            return self._take(size, name).decode()
        except UnicodeDecodeError:
            raise self._wrong(f"{name} is no UTF-8") from None

    def text(self, name: str) -> str:
        return self.optional_text(name) or ""

    def blob(self, name: str) -> bytes:
        size = self.int32(name)
        if size < -1:
            raise self._wrong(f"{name} has length {size}")
        return self._take(max(0, size), name)

    def partitions(self) -> tuple[TopicPartition, ...]:
        found: list[TopicPartition] = []
        for _ in range(self.count("topics", _SMALLEST_TOPIC)):
            topic = self.text("topic")
            for _ in range(self.count("partitions", 4)):
                found.append(TopicPartition(topic, self.int32("partition")))  # noqa: PERF401 two loops deep
        return tuple(found)

    def _take(self, size: int, name: str) -> bytes:
        if size > len(self._data) - self._at:
            raise self._wrong(f"ends in {name}")
        self._at += size
        return self._data[self._at - size : self._at]

    def _wrong(self, problem: str) -> DecodeError:
        what = f"{self._what} {problem}"
        return DecodeError(what, offset=self._at, version=None, available=len(self._data))


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Return (topic, partition numbers), sorted by topic; numbers keep their order.

    >>> by_topic([TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0)])
    [('a', [0]), ('b', [1, 0])]
    """
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return sorted(found.items())
