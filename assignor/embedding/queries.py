"""Interactive queries: which host has the state of a key.

The partition of a key is the one that Kafka's default partitioner chooses (murmur2), with the
largest partition count among the source topics of the store's subtopology. The count comes from the
metadata, not from the host map, which lacks partitions of hosts without an endpoint.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assignor.errors import MissingSourceTopic
from assignor.rebalance import HostMap, Routing, ServedByHost
from encoding import HostInfo, TopicPartition, shown

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_32 = 0xFFFFFFFF
_WORD = 4
Partitioner = Callable[[bytes, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHosts:
    """The hosts that have the state of a key.

    Attributes:
        partition: the key's input partition.
        active: host of the active task; None if no host with an endpoint runs it.
        standby: hosts with a standby task, sorted.
    """

    partition: int
    active: HostInfo | None
    standby: tuple[HostInfo, ...]


def murmur2(data: bytes) -> int:
    """Return the hash of Kafka's default partitioner, as an unsigned 32-bit number.

    >>> murmur2(b"21") - 2**32
    -973932308
    """
    hashed = _SEED ^ len(data)
    whole = len(data) - len(data) % _WORD
    for at in range(0, whole, _WORD):
        word = int.from_bytes(data[at : at + _WORD], "little") * _MIX & _32
        word = (word ^ word >> 24) * _MIX & _32
        hashed = hashed * _MIX & _32 ^ word
    rest = data[whole:]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _MIX & _32
    hashed = (hashed ^ hashed >> 13) * _MIX & _32
    return hashed ^ hashed >> 15


def partition_for_key(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's default partitioner chooses for a serialised key.

    >>> partition_for_key(b"hello", 4)
    1

    Raises:
        ValueError: the number of partitions is below 1.
    """
    if partitions < 1:
        raise ValueError(f"partitions={partitions}: a topic has one partition or more")
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def key_hosts(
    routing: Routing,
    topics: Sequence[str],
    partition_counts: Mapping[str, int],
    key: bytes,
    *,
    partitioner: Partitioner = partition_for_key,
) -> KeyHosts:
    """Return the hosts that have the state of a key.

    Args:
        routing: the host map of the last assignment.
        topics: source topics of the store's subtopology.
        partition_counts: topic -> number of partitions.
        key: the serialised key.
        partitioner: (key, partitions) -> partition; the partitioner of the topics' producers.

    Raises:
        MissingSourceTopic: the partition count of no topic is known.
        TypeError: the key is not serialised.
    """
    given: object = key
    if not isinstance(given, bytes | bytearray):
        kind = type(given).__name__
        raise TypeError(f"key={shown(repr(given))} is of type {kind}; give it serialised, as bytes")
    widest = max(
        (t for t in topics if t in partition_counts), key=partition_counts.__getitem__, default=""
    )
    if not widest:
        raise MissingSourceTopic(topics)
    partition = partitioner(key, partition_counts[widest])
    wanted = TopicPartition(widest, partition)
    active = _serving(routing.active, wanted)
    return KeyHosts(
        partition=partition,
        active=active[0] if active else None,
        standby=_serving(routing.standby, wanted),
    )


def _serving(hosts: HostMap, wanted: TopicPartition) -> tuple[HostInfo, ...]:
    if isinstance(hosts, ServedByHost):
        return hosts.hosts_of(wanted)
    return tuple(sorted(host for host, partitions in hosts.items() if wanted in partitions))
