"""`ClusterAccess` by aiokafka: clients of its own, on an event loop of the reading thread.

Used by the thread of `InternalTopicManager` only, never on the application's event loop. The
clients rebootstrap as the consumer does under a supervisor (KIP-1102).
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as ClientPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from assignor.adapters.aiokafka.offset_fetch import raise_group_errors
from assignor.adapters.rebootstrap.aiokafka import supervise_own
from assignor.embedding import (
    CHECKED_SETTINGS,
    ClusterUnavailable,
    InternalTopic,
    error_text,
)
from encoding import TopicPartition

_DEADLINE_S = 10.0
_POLL_S = 0.05
_EXISTS = 36
# Settings that a client keeps as private attributes.
_KEPT = (
    "bootstrap_servers",
    "request_timeout_ms",
    "sasl_kerberos_domain_name",
    "sasl_kerberos_service_name",
    "sasl_mechanism",
    "sasl_oauth_token_provider",
    "sasl_plain_password",
    "sasl_plain_username",
    "security_protocol",
    "ssl_context",
)
# The loop, and with it every client, stands still between two requests while clocks go on, so that
# this trigger would mean nothing. The deadline of a request ends a stuck connection.
_NO_TRIGGER_MS = 2**31 - 1
_Value = TypeVar("_Value")


def access_settings(consumer: Any) -> dict[str, Any] | None:
    """Settings of clients that reach the cluster as an `AIOKafkaConsumer` does.

    None when they cannot be found; the consumer shows them nowhere, but its connections keep them.
    """
    client = getattr(consumer, "_client", None)
    kept = {name: getattr(client, f"_{name}") for name in _KEPT if hasattr(client, f"_{name}")}
    if "bootstrap_servers" not in kept:
        return None
    return kept | {"client_id": f"{getattr(client, '_client_id', 'streams-rebalance')}-admin"}


class AIOKafkaAccess:
    """A cluster through aiokafka; opened, used and closed on one thread.

    Args:
        settings: of `AIOKafkaAdminClient`.
        group_id: whose committed offsets are asked for.
    """

    def __init__(self, settings: Mapping[str, Any], *, group_id: str) -> None:
        """Connect.

        Raises:
            ClusterUnavailable: no broker answered within the deadline.
        """
        self._settings = dict(settings)
        self._group_id = group_id
        self._loop = asyncio.new_event_loop()
        self._admin: Any = None
        self._consumer: Any = None
        self._supervisors: list[Any] = []
        try:
            self._run_request(
                f"no broker of {settings['bootstrap_servers']} answered", self._open()
            )
        except ClusterUnavailable:
            self.close()
            raise

    def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Return topic -> number of partitions, for the topics that exist."""
        rows = (
            self._run_request("topic metadata cannot be read", self._rows(topics)) if topics else []
        )
        return {
            row["topic"]: len(row["partitions"])
            for row in rows
            if row["error_code"] == 0 and row["partitions"]
        }

    def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return topic -> settings; nothing where this user may not describe them."""
        asked = [
            ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict.fromkeys(CHECKED_SETTINGS))
            for topic in topics
        ]
        try:
            responses = self._run_request("settings", self._admin.describe_configs(asked))
        except ClusterUnavailable:
            # Optional check: without the right to describe settings, counts are checked alone.
            return {}
        return {
            name: {row[0]: row[1] for row in values if row[0] in CHECKED_SETTINGS}
            for response in responses
            for error, _, _, name, values in response.resources
            if error == 0
        }

    def create_topics(
        self, topics: Sequence[InternalTopic], *, replication_factor: int
    ) -> Mapping[str, str]:
        """Create topics, wait until they have leaders; return topic -> why it was not created."""
        named = ", ".join(topic.name for topic in topics)
        wanted = [
            NewTopic(topic.name, topic.partitions, 1, topic_configs=dict(topic.configs))
            for topic in topics
        ]
        for topic in wanted:
            # The constructor refuses -1, the broker's own default; the request takes it (KIP-464).
            topic.replication_factor = replication_factor
        created = self._run_request(f"{named} cannot be created", self._admin.create_topics(wanted))
        failed = {
            name: f"internal topic {name} cannot be created: {text or f'error {error}'}; grant "
            "CREATE on the cluster or create it yourself"
            for name, error, text in (tuple(row)[:3] for row in created.topic_errors)
            # Another leader created it meanwhile; it is checked like any existing topic.
            if error not in {0, _EXISTS}
        }
        made = [topic.name for topic in topics if topic.name not in failed]
        self._run_request(f"{', '.join(made)} got no leaders", self._led(made))
        return failed

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return partition -> end offset, uncommitted records included."""
        asked = [ClientPartition(p.topic, p.partition) for p in partitions]
        offsets = self._run_request("end offsets cannot be read", self._consumer.end_offsets(asked))
        return {TopicPartition(p.topic, p.partition): at for p, at in offsets.items()}

    def committed(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return partition -> committed offset of the group, 0 where it has none."""
        asked = [ClientPartition(p.topic, p.partition) for p in partitions]
        offsets = self._run_request(
            "committed offsets cannot be read",
            self._admin.list_consumer_group_offsets(self._group_id, partitions=asked),
        )
        found = {TopicPartition(p.topic, p.partition): at.offset for p, at in offsets.items()}
        return {partition: max(0, found.get(partition, 0)) for partition in partitions}

    def close(self) -> None:
        """Close every connection, and the event loop."""
        if self._loop.is_closed():
            return
        for supervisor in self._supervisors:
            supervisor.close()
        for client, close in ((self._consumer, "stop"), (self._admin, "close")):
            if client is not None:
                with suppress(ClusterUnavailable):
                    self._run_request("closing failed", getattr(client, close)())
        self._loop.close()

    async def _open(self) -> None:
        self._admin = AIOKafkaAdminClient(**self._settings)
        raise_group_errors(self._admin, "_send_request")
        await self._admin.start()
        self._consumer = AIOKafkaConsumer(**self._settings, enable_auto_commit=False)
        await self._consumer.start()
        for client in (self._admin, self._consumer):
            own = supervise_own(client, metadata_recovery_rebootstrap_trigger_ms=_NO_TRIGGER_MS)
            self._supervisors += [] if own is None else [own]

    async def _rows(self, topics: Sequence[str]) -> list[dict[str, Any]]:
        # All topics: a broker creates those that aiokafka asks for by name, with its own defaults.
        rows: list[dict[str, Any]] = await self._admin.describe_topics(None)
        return [row for row in rows if row["topic"] in topics]

    async def _led(self, topics: Sequence[str]) -> None:
        """Wait until every partition has a leader; the deadline ends it."""
        while not await self._have_leaders(topics):  # noqa: ASYNC110 clusters send no event
            await asyncio.sleep(_POLL_S)

    async def _have_leaders(self, topics: Sequence[str]) -> bool:
        rows = await self._rows(topics)
        leaders = [part["leader"] for row in rows for part in row["partitions"]]
        return len(rows) == len(topics) and min(leaders, default=0) >= 0

    def _run_request(self, what: str, work: Coroutine[Any, Any, _Value]) -> _Value:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, _DEADLINE_S))
        except (KafkaError, OSError, TimeoutError) as error:
            raise ClusterUnavailable(f"{what}: {error_text(error)}") from error
