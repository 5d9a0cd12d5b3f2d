"""A ready consumer: a `KafkaConsumer` with a `StreamsAssignor`, attached, closed as one."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Unpack

from kafka import KafkaConsumer
from kafka.errors import IllegalStateError, KafkaError
from kafka.serializer import Deserializer

from assignor.adapters.connecting import network_client
from assignor.adapters.consumer_options import (
    ClientSettings,
    ConsumerOptions,
    consumer_options,
)
from assignor.adapters.dropped import release_if_dropped
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.bounded import BoundedConsumer
from assignor.adapters.kafka_python.port import check_closing_thread
from assignor.adapters.kafka_python.settings import ConsumerSettings
from assignor.adapters.membership import MemberKeywords, documented
from assignor.adapters.processing import check_not_processing
from assignor.adapters.threads import OneThread
from assignor.config import refused
from assignor.topology import Topology

CLIENT_SETTINGS: Final = ClientSettings(
    defaults=KafkaConsumer.DEFAULT_CONFIG,
    fixed={"partition_assignment_strategy": "give further assignors as fallback_assignors"},
    has_scheme=True,
    deserializers=(Deserializer,),
)
"""Settings of a `KafkaConsumer`."""
_DEFAULTS: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "allow_auto_create_topics": False,
}

_LEAVE_MS: Final = 5_000  # as librdkafka


class ConsumerKeywords(MemberKeywords, ConsumerSettings, total=False):
    """Keywords of `streams_consumer`: options of the assignor, and settings of the client."""


class StreamsConsumer(BoundedConsumer):
    """A `KafkaConsumer` whose group runs tasks; `close` closes its assignor, too.

    A consumer that is dropped without `close` leaves the group, with a `ResourceWarning`.

    Attributes:
        assignor: the attached assignor, with the tasks and the routing of this member.
    """

    def __init__(self, assignor: StreamsAssignor, topics: Iterable[str], **settings: Any) -> None:
        """Connect, attach and subscribe.

        Args:
            assignor: not attached yet.
            topics: to subscribe to.
            settings: of the `KafkaConsumer`; the assignor is among its assignors.

        Raises:
            KafkaError: no broker answers, or a setting is invalid.
            TypeError, ConfigError: as `StreamsAssignor.attach` does.
        """
        self._polling = OneThread()
        with network_client(settings.pop("kafka_client", None)) as kafka_client:
            super().__init__(**settings, kafka_client=kafka_client)
        self.assignor = assignor
        try:
            assignor.attach(self)
            self.subscribe(list(topics))
        except BaseException:
            super().close(autocommit=False)
            raise
        limit_ms = self.config["request_timeout_ms"]
        self._dropped = release_if_dropped(
            self, _release, self._coordinator, self._client, assignor, limit_ms
        )

    def poll(self, *arguments: Any, **options: Any) -> Any:
        """Return records, as `KafkaConsumer.poll`.

        Raises:
            RuntimeError: another thread polls, the process was forked, or this is a function that
                processes records into state stores.
        """
        check_not_processing(self.assignor.listener, "poll")
        with self._polling:
            return super().poll(*arguments, **options)

    def subscribe(self, *arguments: Any, **options: Any) -> None:
        """Subscribe to topics, as `KafkaConsumer.subscribe`.

        Raises:
            IllegalStateError: the consumer is closed; the client takes topics then, too.
        """
        if self._closed:
            raise IllegalStateError("KafkaConsumer is closed")
        super().subscribe(*arguments, **options)

    def commit(self, *arguments: Any, **options: Any) -> Any:
        """Commit offsets, as `KafkaConsumer.commit`.

        Raises:
            RuntimeError: the process was forked, or as `poll`.
        """
        self._polling.check_process()
        check_not_processing(self.assignor.listener, "commit")
        return super().commit(*arguments, **options)

    def commit_async(self, *arguments: Any, **options: Any) -> Any:
        """Commit offsets, as `KafkaConsumer.commit_async`; raise as `commit`."""
        self._polling.check_process()
        check_not_processing(self.assignor.listener, "commit_async")
        return super().commit_async(*arguments, **options)

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:  # noqa: FBT001, FBT002 the client's own signature
        """Leave the group, then close the assignor; as `KafkaConsumer.close`.

        In a rebalance it waits for 5 s at most: the answer would come after that of the JoinGroup
        request, which waits for the slowest member. The broker takes the LeaveGroup request then.

        Raises:
            RuntimeError: this is a listener, or a function that processes records; nothing has been
                closed.
        """
        if self._polling.is_forked:
            return
        check_closing_thread(self, self.assignor.listener)
        self._dropped.detach()
        if timeout_ms is None and self._coordinator.rebalance_in_progress():
            timeout_ms = min(_LEAVE_MS, self.config["request_timeout_ms"])
        try:
            super().close(autocommit=autocommit, timeout_ms=timeout_ms)
        finally:
            self.assignor.close()


def _release(coordinator: Any, client: Any, assignor: StreamsAssignor, limit_ms: float) -> None:
    """Leave the group and end the threads of a consumer that was dropped."""
    try:
        with suppress(KafkaError, OSError, RuntimeError):  # its event loop has ended
            coordinator.close(autocommit=False, timeout_ms=limit_ms)
        client.close()
    finally:
        assignor.close()


def connected_consumer(
    topology: Topology | None,
    options: ConsumerOptions,
    *,
    topologies: Sequence[Topology] | None = None,
    fallback_assignors: Sequence[Any] = (),
) -> StreamsConsumer:
    """Return the consumer of these options; see `streams_consumer`."""
    group_id = options.client["group_id"]
    if not _are_assignors(fallback_assignors):
        wanted = "a list of kafka-python's own assignors, such as [RangePartitionAssignor]"
        raise refused("fallback_assignors", fallback_assignors, wanted)
    assignor = StreamsAssignor(
        topology, application_id=group_id, topologies=topologies, **options.member
    )
    try:
        return StreamsConsumer(
            assignor,
            assignor.source_topics,
            partition_assignment_strategy=[assignor, *fallback_assignors],
            **{**_DEFAULTS, **options.client},
        )
    except BaseException:
        assignor.close()
        raise


def _are_assignors(value: object) -> bool:
    return isinstance(value, Sequence) and all(
        hasattr(each, "name") and callable(getattr(each, "assign", None)) and not _is_own(each)
        for each in value
    )


def _is_own(assignor: object) -> bool:
    return isinstance(assignor, StreamsAssignor) or assignor is StreamsAssignor


@documented(rest="options")
def streams_consumer(
    topology: Topology | None = None,
    *,
    group_id: str,
    bootstrap_servers: str | Sequence[str],
    topologies: Sequence[Topology] | None = None,
    fallback_assignors: Sequence[Any] = (),
    **options: Unpack[ConsumerKeywords],
) -> StreamsConsumer:
    """Return a `KafkaConsumer` that is ready to poll: assignor attached, topics subscribed.

    It is subscribed to the topology's source topics, repartition topics included. `.assignor` is
    its `StreamsAssignor`; closing the consumer closes it, too.

    Three defaults are those of Kafka Streams: `enable_auto_commit=False` (commit what is processed,
    with `commit_next`), `auto_offset_reset="earliest"` and `allow_auto_create_topics=False` (the
    leader creates repartition topics). Without `rack`, `client_rack` is the rack of the assignor.
    Without `heartbeat_interval_ms`, that is at most a third of a given `session_timeout_ms`.

    Args:
        topology: what the application processes.
        group_id: of the consumer; also the prefix of internal topics.
        bootstrap_servers: `host:port`, or several.
        topologies: several versions of the topology instead, for a program that can run each of
            them; it is subscribed to the topics of all.
        fallback_assignors: of kafka-python, for a rolling bounce of a group that uses them, such as
            `[RangePartitionAssignor]`; the group uses them until every member has a
            `StreamsAssignor`, and no task runs until then.
        options: options of `StreamsAssignor`, and settings of `KafkaConsumer`, by name.

    Raises:
        TypeError: there is no group id, or no topology.
        ConfigError: an option is unknown or invalid; the message names the nearest one.
        StateDirectoryLocked, StoreError, TopologyError, ReleaseError: as `StreamsAssignor` does.
        KafkaError: no broker answers within `bootstrap_timeout_ms`.
    """
    given = consumer_options(
        options, CLIENT_SETTINGS, group_id=group_id, bootstrap_servers=bootstrap_servers
    )
    return connected_consumer(
        topology, given, topologies=topologies, fallback_assignors=fallback_assignors
    )
