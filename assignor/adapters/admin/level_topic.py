"""Reading and writing a group's feature log topic with kafka-python.

No client stays open. A read consumes the whole topic, which has a few records. A change is complete
when all in-sync replicas have it and it has been read back.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    TopicAlreadyExistsError,
    for_code,
)
from kafka.protocol.metadata import MetadataRequest

from assignor.adapters.admin.client import Admin, BrokerError, NotAuthorized
from assignor.adapters.connecting import network_client
from assignor.levels.log import (
    NO_MINIMUMS,
    TOPIC_SETTINGS,
    Note,
    TopicChange,
    TopicRecord,
    TopicView,
    change_record,
    check_counted,
    leader_note,
    read_topic,
    topic_name,
)
from probing.features import LevelRange, NodeSupport, raised_minimums

_READ_MS: Final = 200
_UNKNOWN_TOPIC: Final = 3
_BROKERS_DEFAULT: Final = -1


class FeatureTopic:
    """The feature log of one group.

    Args:
        admin: the connected admin client; its time limit applies to each read and each change.
        group: the group id.
    """

    def __init__(self, admin: Admin, group: str) -> None:
        self._admin = admin
        self._partition = TopicPartition(topic_name(group), 0)

    def look(self) -> TopicView:
        """Return the state in the topic; an empty state if the topic does not exist.

        Raises:
            BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
            StoreError: a later release wrote it.
        """
        if not self._exists():
            return TopicView()
        try:
            return read_topic(self._records())
        except KafkaError as error:
            raise self._failure(error, "read") from error

    def change(
        self,
        view: TopicView,
        levels: Mapping[str, int],
        note: Note,
        members: Mapping[str, Mapping[str, LevelRange]],
        *,
        minimums: Mapping[str, int] = NO_MINIMUMS,
    ) -> TopicChange:
        """Write a change of the state in `view`; it is effective when this returns.

        Raises:
            BrokerError, NotAuthorized: as in `look`; read again to see whether it is effective.
            StoreError: a level is unknown, or a concurrent change came first.
        """
        change = change_record(
            view, levels, note, nonce=uuid4().hex, members=members, minimums=minimums
        )
        if not self._exists():
            self._create()
        try:
            self._write([(change.key, change.value)])
            after = self.look()
            check_counted(after, change)
            self._write([(key, None) for key in after.stale])
        except KafkaError as error:
            raise self._failure(error, "write") from error
        return change

    def raise_minimums(self, nodes: Sequence[NodeSupport]) -> Mapping[str, int]:
        """Raise each minimum that all members support (KIP-584); return the raised minimums.

        Args:
            nodes: every member, with what it supports.

        Raises:
            BrokerError, NotAuthorized, StoreError: as in `change`.
        """
        view = self.look()
        minimums = raised_minimums(view.state.levels, view.state.minimums, nodes)
        if minimums:
            members = {str(node.node_id): node.ranges for node in nodes}
            self.change(view, {}, leader_note(minimums), members, minimums=minimums)
        return minimums

    def _records(self) -> list[TopicRecord]:
        with network_client() as kafka_client:
            consumer = KafkaConsumer(
                bootstrap_servers=list(self._admin.target.servers),
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                kafka_client=kafka_client,
                **dict(self._admin.target.settings),
            )
        found: list[TopicRecord] = []
        deadline = time.monotonic() + self._admin.target.timeout_ms / 1000
        try:
            consumer.assign([self._partition])
            limit_ms = self._admin.target.timeout_ms
            end = consumer.end_offsets([self._partition], timeout_ms=limit_ms)[self._partition]
            consumer.seek_to_beginning(self._partition)
            while consumer.position(self._partition, timeout_ms=limit_ms) < end:
                if time.monotonic() > deadline:
                    raise BrokerError(
                        f"topic {self._partition.topic} was not read in time; raise --timeout"
                    )
                for rows in consumer.poll(timeout_ms=_READ_MS).values():
                    found += (
                        TopicRecord(offset=row.offset, key=row.key or b"", value=row.value)
                        for row in rows
                        if row.offset < end
                    )
        finally:
            with suppress(KafkaError):
                consumer.close()
        return found

    def _write(self, rows: list[tuple[bytes, bytes | None]]) -> None:
        if not rows:
            return
        limit_ms = self._admin.target.timeout_ms
        with network_client() as kafka_client:
            producer = KafkaProducer(
                bootstrap_servers=list(self._admin.target.servers),
                acks="all",
                max_block_ms=limit_ms,
                kafka_client=kafka_client,
                **dict(self._admin.target.settings),
            )
        try:
            for key, value in rows:
                # One after the other, because deletions must stay in order.
                sent = producer.send(self._partition.topic, key=key, value=value, partition=0)
                sent.get(limit_ms / 1000)
        finally:
            producer.close(timeout=1)

    def _exists(self) -> bool:
        name = self._partition.topic

        async def ask(client: KafkaAdminClient) -> bool:
            row = MetadataRequest.MetadataRequestTopic
            request = MetadataRequest(topics=[row(name=name)], allow_auto_topic_creation=False)
            response = await client._manager.send(request)  # noqa: SLF001 as in `Admin.ask`
            [found] = response.topics
            if found.error_code and found.error_code != _UNKNOWN_TOPIC:
                raise for_code(found.error_code)
            return not found.error_code

        return self._admin.ask(f"describe topic {name}", ask)

    def _create(self) -> None:
        topic = NewTopic(
            self._partition.topic, 1, _BROKERS_DEFAULT, topic_configs=dict(TOPIC_SETTINGS)
        )
        try:
            self._admin.client.create_topics([topic])
        except TopicAlreadyExistsError:
            pass
        except KafkaError as error:
            raise self._failure(error, "create") from error
        deadline = time.monotonic() + self._admin.target.timeout_ms / 1000
        while not self._exists() and time.monotonic() < deadline:
            time.sleep(_READ_MS / 1000)

    def _failure(self, error: Exception, doing: str) -> BrokerError:
        name = self._partition.topic
        if isinstance(error, AuthorizationError):
            return NotAuthorized(f"not authorized to {doing} topic {name}; ask for the permission")
        reason: Any = str(error).strip() or type(error).__name__
        return BrokerError(f"{self._admin.target.spelled} could not {doing} topic {name}: {reason}")
