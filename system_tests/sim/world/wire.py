"""The consumer protocol around the assignor's blobs: what JoinGroup and SyncGroup carry.

```
subscription  int16 version | int32 n, n x string topic | bytes user data | owned (from version 1)
assignment    int16 version | partitions                | bytes user data
partitions    int32 n, n x (string topic, int32 n, n x int32 partition)
```

Strings are int16 length and UTF-8, bytes int32 length (-1: null). Owned partitions came with
KIP-429. The simulator uses no Kafka client.
"""

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 it is a class
from typing import NamedTuple

from encoding import TopicPartition

_INT16 = Struct(">h")
_INT32 = Struct(">i")
Partitions = tuple[TopicPartition, ...]


class WireError(ValueError):
    """The bytes are not what the consumer protocol says; the message says where."""


class ConsumerSubscription(NamedTuple):
    """What a member offers: its topics, the assignor's blob, and what it still owns."""

    topics: tuple[str, ...]
    user_data: bytes
    owned_partitions: Partitions


def write_subscription(value: ConsumerSubscription, *, version: int) -> bytes:
    """Write a member's metadata; version 0 has no room for owned partitions."""
    data = _head(version, value.topics) + _INT32.pack(len(value.user_data)) + value.user_data
    return data + _partitions_bytes(value.owned_partitions) if version else data


def read_subscription(data: bytes) -> ConsumerSubscription:
    """Read a member's metadata.

    Raises:
        WireError: the bytes end early.
    """
    try:
        version = _INT16.unpack_from(data, 0)[0]
        count = _INT32.unpack_from(data, 2)[0]
        at = 6
        topics = []
        for _ in range(count):
            topic, at = _read_string(data, at)
            topics.append(topic)
        user_data, at = _read_bytes(data, at)
        owned = _partitions_of(data[at:]) if version >= 1 else ()
    except (StructError, UnicodeDecodeError) as error:
        raise WireError(f"subscription of {len(data)} bytes: {error}") from error
    return ConsumerSubscription(tuple(topics), user_data, owned)


@lru_cache(maxsize=4096)  # most rebalances send what the last one sent
def write_assignment(partitions: Partitions, user_data: bytes) -> bytes:
    """Write one member's part of the leader's answer."""
    return b"".join(
        (_INT16.pack(0), _partitions_bytes(partitions), _INT32.pack(len(user_data)), user_data)
    )


@lru_cache(maxsize=4096)
def read_assignment(data: bytes) -> tuple[Partitions, bytes]:
    """Read one member's part.

    Raises:
        WireError: the bytes end early.
    """
    try:
        partitions, at = _read_partitions(data, 2)
        user_data, _ = _read_bytes(data, at)
    except (StructError, UnicodeDecodeError) as error:
        raise WireError(f"assignment of {len(data)} bytes: {error}") from error
    return partitions, user_data


@lru_cache(maxsize=64)
def _head(version: int, topics: tuple[str, ...]) -> bytes:
    return b"".join((_INT16.pack(version), _INT32.pack(len(topics)), *map(_string, topics)))


def _string(text: str) -> bytes:
    data = text.encode()
    return _INT16.pack(len(data)) + data


@lru_cache(maxsize=4096)
def _partitions_bytes(partitions: Partitions) -> bytes:
    """The same few sets of partitions go back and forth, so their bytes are kept."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        parts += (_string(topic), Struct(f">i{len(numbers)}i").pack(len(numbers), *numbers))
    return b"".join(parts)


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + _INT16.unpack_from(data, at)[0]
    return str(_exactly(data, at + 2, end), "utf-8"), end


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    end = at + 4 + max(0, _INT32.unpack_from(data, at)[0])
    return _exactly(data, at + 4, end), end


def _exactly(data: bytes, start: int, end: int) -> bytes:
    if not start <= end <= len(data):
        raise StructError(f"{end - start} bytes at offset {start} are wanted")
    return data[start:end]


@lru_cache(maxsize=4096)
def _partitions_of(data: bytes) -> Partitions:
    return _read_partitions(data, 0)[0]


def _read_partitions(data: bytes, at: int) -> tuple[Partitions, int]:
    count = _INT32.unpack_from(data, at)[0]
    at += 4
    found: list[TopicPartition] = []
    for _ in range(count):
        topic, at = _read_string(data, at)
        many = _INT32.unpack_from(data, at)[0]
        numbers: Iterable[int] = Struct(f">{max(0, many)}i").unpack_from(data, at + 4)
        found.extend(TopicPartition(topic, number) for number in numbers)
        at += 4 + 4 * max(0, many)
    return tuple(found), at
