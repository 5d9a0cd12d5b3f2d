"""`ClusterAccess` by kafka-python: an admin client of its own, with a deadline for every call.

Used by the thread of `InternalTopicManager` only. The admin client gives up after 10 s: a leader
answers without these facts, too. It rebootstraps as the consumer does under a supervisor
(KIP-1102).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kafka import TopicPartition as ClientPartition
from kafka.admin import ConfigResource, KafkaAdminClient, OffsetSpec
from kafka.errors import KafkaError

from assignor.adapters.connecting import network_client
from assignor.adapters.rebootstrap.kafka_python import supervise_own
from assignor.embedding import (
    CHECKED_SETTINGS,
    ClusterUnavailable,
    InternalTopic,
    error_text,
)
from encoding import TopicPartition

_DEADLINE_MS = 10_000
_EXISTS = 36
_Value = TypeVar("_Value")


def admin_settings(consumer_config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an admin client that reaches the cluster as a consumer does."""
    known = KafkaAdminClient.DEFAULT_CONFIG.keys() - {"kafka_client", "metric_reporters"}
    settings = {name: consumer_config[name] for name in sorted(known & consumer_config.keys())}
    deadline = min(_DEADLINE_MS, consumer_config.get("request_timeout_ms") or _DEADLINE_MS)
    name = consumer_config.get("client_id") or "streams-rebalance"
    return settings | {
        "client_id": f"{name}-admin",
        "request_timeout_ms": deadline,
        "bootstrap_timeout_ms": deadline,
    }


class KafkaAdminAccess:
    """A cluster through kafka-python's admin client.

    Args:
        settings: of `KafkaAdminClient`.
        group_id: whose committed offsets are asked for.
    """

    def __init__(self, settings: Mapping[str, Any], *, group_id: str) -> None:
        """Connect.

        Raises:
            ClusterUnavailable: no broker answered within the deadline.
        """
        self._group_id = group_id
        self._servers = settings.get("bootstrap_servers")
        self._admin: Any = self._run_request(
            f"no broker of {self._servers} answered", lambda: _connected(settings)
        )
        self._supervisor = supervise_own(self._admin)

    def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Return topic -> number of partitions, for the topics that exist."""
        if not topics:
            return {}
        rows = self._run_request(
            "topic metadata cannot be read", lambda: self._admin.describe_topics(list(topics))
        )
        return {
            row["name"]: len(row["partitions"])
            for row in rows
            if row["error_code"] == 0 and row["partitions"]
        }

    def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return topic -> settings; nothing where this user may not describe them."""
        wanted = dict.fromkeys(CHECKED_SETTINGS)
        asked = [ConfigResource("TOPIC", topic, configs=wanted) for topic in topics]
        try:
            described = self._admin.describe_configs(asked, config_filter="all")
        except (KafkaError, OSError):
            # Optional check: without the right to describe settings, counts are checked alone.
            return {}
        return {
            topic: {name: values[name]["value"] for name in CHECKED_SETTINGS if name in values}
            for topic, values in described.get("topic", {}).items()
        }

    def create_topics(
        self, topics: Sequence[InternalTopic], *, replication_factor: int
    ) -> Mapping[str, str]:
        """Create topics, wait until they have leaders; return topic -> why it was not created."""
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication_factor,
                "configs": dict(topic.configs),
            }
            for topic in topics
        }
        created = self._run_request(
            f"{', '.join(sorted(wanted))} cannot be created",
            lambda: self._admin.create_topics(wanted, raise_errors=False),
        )
        failed = {
            row["name"]: f"internal topic {row['name']} cannot be created: "
            f"{row.get('error_message') or 'error ' + str(row['error_code'])}; "
            "grant CREATE on the cluster or create it yourself, with "
            f"{wanted[row['name']]['num_partitions']} partitions"
            for row in created["topics"]
            # Another leader created it meanwhile; it is checked like any existing topic.
            if row["error_code"] not in {0, _EXISTS}
        }
        made = sorted(wanted.keys() - failed.keys())
        self._run_request(
            f"{', '.join(made)} got no leaders",
            lambda: self._admin.wait_for_topics(made, timeout_ms=_DEADLINE_MS),
        )
        return failed

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return partition -> end offset, uncommitted records included."""
        asked = {ClientPartition(p.topic, p.partition): OffsetSpec.LATEST for p in partitions}
        offsets = self._run_request(
            "end offsets cannot be read",
            lambda: self._admin.list_partition_offsets(asked, timeout_ms=_DEADLINE_MS),
        )
        return {TopicPartition(p.topic, p.partition): at.offset for p, at in offsets.items()}

    def committed(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return partition -> committed offset of the group, 0 where it has none."""
        asked = {self._group_id: [ClientPartition(p.topic, p.partition) for p in partitions]}
        offsets = self._run_request(
            "committed offsets cannot be read", lambda: self._admin.list_group_offsets(asked)
        ).get(self._group_id, {})
        found = {TopicPartition(p.topic, p.partition): at.offset for p, at in offsets.items()}
        return {partition: max(0, found.get(partition, 0)) for partition in partitions}

    def close(self) -> None:
        """Close every connection."""
        if self._supervisor is not None:
            self._supervisor.close()
        self._admin.close()

    @staticmethod
    def _run_request(what: str, call: Callable[[], _Value]) -> _Value:
        try:
            return call()
        except (KafkaError, OSError) as error:
            raise ClusterUnavailable(f"{what}: {error_text(error)}") from error


def _connected(settings: Mapping[str, Any]) -> KafkaAdminClient:
    with network_client() as kafka_client:
        return KafkaAdminClient(**settings, kafka_client=kafka_client)
