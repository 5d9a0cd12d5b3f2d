"""Reading and writing a compacted topic of one partition with kafka-python.

No client stays open. A read consumes the whole topic, which has a few records. A record is written
when all in-sync replicas have it.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

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
from assignor.levels.log import TOPIC_SETTINGS, TopicRecord

_READ_MS: Final = 200
_UNKNOWN_TOPIC: Final = 3
_BROKERS_DEFAULT: Final = -1


class CompactedTopic:
    """A compacted topic of a group.

    Args:
        admin: the connected admin client; its time limit applies to each read and each write.
        name: of the topic.
    """

    def __init__(self, admin: Admin, name: str) -> None:
        self._admin = admin
        self._partition = TopicPartition(name, 0)

    def records(self) -> list[TopicRecord]:
        """Return all existing records, in offset order; none if the topic does not exist.

        Raises:
            BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
        """
        if not self._exists():
            return []
        try:
            return self._read()
        except KafkaError as error:
            raise self._failure(error, "read") from error

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write keys and values in this order, None deletes; create the topic if it is missing.

        Raises:
            BrokerError, NotAuthorized: as in `records`; read again to see what was written.
        """
        if not rows:
            return
        if not self._exists():
            self._create()
        try:
            self._write(rows)
        except KafkaError as error:
            raise self._failure(error, "write") from error

    def _read(self) -> list[TopicRecord]:
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

    def _write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
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
            request = MetadataRequest(
                topics=[row(name=name)], allow_auto_topic_creation=False, max_version=9
            )
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
