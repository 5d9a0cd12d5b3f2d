"""The topics of a cluster: ids, partitions and their leaders."""

import re
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from system_tests.broker.partition_log import PartitionLog

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_RETENTION = "retention.bytes"
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NAMESPACE = uuid.UUID("6f2b8f5e-54f5-4f0e-9d3c-1c1b8a4f7d10")


@dataclass(slots=True, kw_only=True)
class Topic:
    """A topic, with its partitions in order and its configuration as given at creation."""

    name: str
    topic_id: uuid.UUID
    replicas: int = 1
    partitions: list[PartitionLog] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    leaders: list[int] = field(default_factory=list)


class Catalog:
    """All topics of the cluster; leaders are spread over the live nodes by topic and partition."""

    def __init__(self, max_batch_bytes: int) -> None:
        self._max_batch_bytes = max_batch_bytes
        self._topics: dict[str, Topic] = {}
        self._created = 0

    def names(self) -> tuple[str, ...]:
        """Return all topic names, sorted."""
        return tuple(sorted(self._topics))

    def topic(self, name: str) -> Topic | None:
        """A topic by name."""
        return self._topics.get(name)

    def topic_by_id(self, topic_id: uuid.UUID) -> Topic | None:
        """A topic by identifier (KIP-516)."""
        return next((t for t in self._topics.values() if t.topic_id == topic_id), None)

    def log(self, name: str, partition: int) -> PartitionLog | None:
        """A partition's log."""
        topic = self._topics.get(name)
        if topic is None or not 0 <= partition < len(topic.partitions):
            return None
        return topic.partitions[partition]

    def check(
        self,
        name: str,
        partitions: int,
        replicas: int,
        nodes: int,
        configs: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Return (error code, sentence) if a topic cannot be created, else (0, "")."""
        if not _TOPIC_NAME.fullmatch(name) or name in {".", ".."}:
            text = f"topic name {name!r}: use 1 to 249 letters, digits, '.', '_' or '-'"
            return INVALID_TOPIC_EXCEPTION, text
        if name in self._topics:
            return TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists"
        if partitions < 1:
            return INVALID_PARTITIONS, f"{partitions} partitions; give 1 or more"
        if not 1 <= replicas <= nodes:
            text = f"replication factor {replicas} with {nodes} live brokers"
            return INVALID_REPLICATION_FACTOR, text
        retention = (configs or {}).get(_RETENTION, "-1")
        if not _INTEGER.fullmatch(retention) or int(retention) < -1:
            return INVALID_CONFIG, f"{_RETENTION}={retention!r}; give bytes, or -1 to keep all"
        return 0, ""

    def create(
        self,
        name: str,
        partitions: int,
        live: Sequence[int],
        configs: Mapping[str, str],
        replicas: int = 1,
    ) -> Topic:
        """Create a topic; call `check` first."""
        self._created += 1
        topic_id = uuid.uuid5(_NAMESPACE, f"{name}#{self._created}")
        topic = Topic(name=name, topic_id=topic_id, replicas=replicas, configs=dict(configs))
        self._topics[name] = topic
        self.grow(topic, partitions, live)
        return topic

    def grow(self, topic: Topic, partitions: int, live: Sequence[int]) -> None:
        """Add partitions to a topic until it has this many."""
        while len(topic.partitions) < partitions:
            topic.leaders.append(spread(topic.name, len(topic.partitions), live))
            log = PartitionLog(self._max_batch_bytes, _retention_bytes(topic.configs))
            topic.partitions.append(log)

    def delete(self, name: str) -> bool:
        """Delete a topic; False if it is unknown."""
        return self._topics.pop(name, None) is not None

    def elect_leaders(self, live: Sequence[int]) -> None:
        """Elect another leader for each partition whose leader is not live."""
        for topic in self._topics.values():
            for partition, leader in enumerate(topic.leaders):
                if leader not in live:
                    topic.leaders[partition] = spread(topic.name, partition, live)
                    topic.partitions[partition].new_leader()


def _retention_bytes(configs: Mapping[str, str]) -> int | None:
    """Return the size limit of a partition in bytes; None for no limit or a compacted topic."""
    kept = int(configs.get(_RETENTION, "-1"))
    return kept if kept >= 0 and "delete" in configs.get("cleanup.policy", "delete") else None


def spread(name: str, index: int, live: Sequence[int]) -> int:
    """Return a live node for a name and an index, deterministic; -1 if no node is live."""
    return live[(zlib.crc32(name.encode()) + index) % len(live)] if live else -1
