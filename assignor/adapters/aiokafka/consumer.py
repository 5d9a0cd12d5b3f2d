"""A ready consumer: an `AIOKafkaConsumer` with a `StreamsAssignor`, attached, closed as one."""

import asyncio
import inspect
import time
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any, Final, Unpack

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import ConsumerStoppedError

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.coordinator import commit_existing_topics, count_polls
from assignor.adapters.aiokafka.records import name_unreadable_records
from assignor.adapters.aiokafka.settings import ConsumerSettings
from assignor.adapters.consumer_options import (
    ClientSettings,
    ConsumerOptions,
    consumer_options,
)
from assignor.adapters.dropped import release_if_dropped
from assignor.adapters.membership import MemberKeywords, documented
from assignor.embedding import error_text
from assignor.logs import line_logger
from assignor.topology import Topology

CLIENT_SETTINGS: Final = ClientSettings(
    defaults={
        name: parameter.default
        for name, parameter in inspect.signature(AIOKafkaConsumer).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    },
    fixed={"partition_assignment_strategy": "aiokafka joins once for each assignor in it"},
    has_scheme=False,
)
"""Settings of an `AIOKafkaConsumer`."""

_log = line_logger(__name__)

_DEFAULTS: Final = MappingProxyType(
    {"auto_offset_reset": "earliest", "enable_auto_commit": False, "max_poll_records": 500}
)
# At least, for connections.
_CLOSE_S: Final = 1.0
_JOIN_S: Final = 5.0  # as librdkafka


class ConsumerKeywords(MemberKeywords, ConsumerSettings, total=False):
    """Keywords of `streams_consumer`: options of the assignor, and settings of the client."""


class StreamsConsumer(AIOKafkaConsumer):  # type: ignore[misc] # the client is untyped
    """An `AIOKafkaConsumer` whose group runs tasks; `stop` closes its assignor, too.

    A consumer that is dropped without `stop` leaves the group, if the event loop runs on.

    Attributes:
        assignor: the attached assignor, with the tasks and the routing of this member.
    """

    def __init__(self, assignor: StreamsAssignor, topics: Iterable[str], **settings: Any) -> None:
        """Attach; `start` connects and subscribes.

        Args:
            assignor: not attached yet.
            topics: to subscribe to; some may not exist yet.
            settings: of the `AIOKafkaConsumer`; the assignor is its only assignor.

        Raises:
            TypeError, ConfigError: as `StreamsAssignor.attach` does.
        """
        super().__init__(**settings)
        self.assignor = assignor
        self._source_topics = tuple(topics)
        assignor.attach(self)
        self._started: list[Any] = []
        self._stopping: asyncio.Future[None] | None = None
        self._dropped = release_if_dropped(
            self, _release, self._loop, self._client, self._started, assignor, is_reported=True
        )

    def subscribe(self, *arguments: Any, **options: Any) -> None:
        """Subscribe to topics, as `AIOKafkaConsumer.subscribe`.

        Raises:
            ConsumerStoppedError: the consumer is stopped; the client takes topics then, too.
        """
        if self._closed:
            raise ConsumerStoppedError
        super().subscribe(*arguments, **options)

    async def start(self) -> None:
        """Connect and subscribe, without waiting for tasks.

        Raises:
            KafkaError: no broker answers.
        """
        try:
            await super().start()
        finally:
            self._started += filter(None, [self._coordinator, self._fetcher])
        name_unreadable_records(self)
        commit_existing_topics(self)
        count_polls(self)
        # A consumer that is made with topics waits for each of them, and only a leader, which has
        # started, creates repartition topics.
        self.subscribe(self._source_topics)

    async def stop(self) -> None:
        """Leave the group, then close the assignor; as `AIOKafkaConsumer.stop`.

        aiokafka's own method waits for as long as the coordinator does not answer, and raises a
        `CancelledError` if a broker has gone. This one returns after `request_timeout_ms`, and the
        time that the assignor needs. If the caller is cancelled, stopping continues, and
        another `stop` waits for its end.

        Raises:
            RuntimeError: this is not the event loop that the consumer was made on.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                "stop was called on another event loop than the one that the consumer was made on; "
                "its connections and tasks belong to that one: call stop there, before it ends"
            )
        if self._stopping is None:
            self._dropped.detach()
            self._closed = True
            self._stopping = asyncio.ensure_future(self._end())
        await asyncio.shield(self._stopping)

    async def _end(self) -> None:
        try:
            await _close_parts(self._started, self._client)
        finally:
            # Its timers belong to this event loop; then it waits for its threads.
            self.assignor.driver.timer.close()
            await asyncio.to_thread(self.assignor.close)


def _release(
    loop: asyncio.AbstractEventLoop, client: Any, started: Sequence[Any], assignor: StreamsAssignor
) -> None:
    """Leave the group and end the tasks and threads of a consumer that was dropped."""
    try:
        if loop.is_running():
            asyncio.run_coroutine_threadsafe(_stop(client, started, assignor), loop).result()
    finally:
        assignor.close()


async def _stop(client: Any, started: Sequence[Any], assignor: StreamsAssignor) -> None:
    assignor.driver.timer.close()
    await _close_parts(started, client)


async def _close_parts(started: Sequence[Any], client: Any) -> None:
    """Close coordinator and fetcher within the time of one request, then the connections.

    In a rebalance, which waits for the slowest member, the group is left after 5 s.
    """
    limit_s = client._request_timeout_ms / 1000  # noqa: SLF001 no public way
    joining = [each for each in started if getattr(each, "_performed_join_prepare", False)]
    end_s = time.monotonic() + (min(limit_s, _JOIN_S) if joining else limit_s)
    for part in (*started, client):
        if part is client:
            for each in joining:
                leaving = asyncio.ensure_future(each._maybe_leave_group())  # noqa: SLF001 as above
                await asyncio.wait({leaving}, timeout=_CLOSE_S)
                leaving.cancel()
        # In a task of its own: aiokafka may end it with a `CancelledError`, which is not ours.
        closing = asyncio.ensure_future(part.close())
        await asyncio.wait({closing}, timeout=max(_CLOSE_S, end_s - time.monotonic()))
        if not closing.done():
            closing.cancel()
        elif not closing.cancelled() and closing.exception() is not None:
            _log.info("not closed cleanly: %s", error_text(closing.exception()))


def new_consumer(
    topology: Topology | None,
    options: ConsumerOptions,
    *,
    topologies: Sequence[Topology] | None = None,
) -> StreamsConsumer:
    """Return the consumer of these options, not started; see `streams_consumer`."""
    group_id = options.client["group_id"]
    assignor = StreamsAssignor(
        topology, application_id=group_id, topologies=topologies, **options.member
    )
    try:
        return StreamsConsumer(
            assignor,
            assignor.source_topics,
            partition_assignment_strategy=[assignor],
            **{**_DEFAULTS, **options.client},
        )
    except BaseException:
        assignor.close()
        raise


@documented(rest="options")
def streams_consumer(
    topology: Topology | None = None,
    *,
    group_id: str,
    bootstrap_servers: str | Sequence[str],
    topologies: Sequence[Topology] | None = None,
    **options: Unpack[ConsumerKeywords],
) -> StreamsConsumer:
    """Return an `AIOKafkaConsumer` that is ready to start, with its assignor attached.

    Call it where the event loop runs, then `await consumer.start()`, or use `async with`: that
    subscribes to the topology's source topics, repartition topics included. `.assignor` is its
    `StreamsAssignor`; stopping the consumer closes it, too.

    Three settings of the client have other defaults here: `enable_auto_commit=False` (commit what
    is processed, with `commit_next`), `auto_offset_reset="earliest"` (no record from before the
    first commit is skipped) and `max_poll_records=500` (a batch without a limit may take longer
    than `max_poll_interval_ms`). Without `rack`, `client_rack` is the rack of the assignor. Without
    `heartbeat_interval_ms`, that is at most a third of a given `session_timeout_ms`. There
    are no fallback assignors: aiokafka joins once for each assignor.

    Args:
        topology: what the application processes.
        group_id: of the consumer; also the prefix of internal topics.
        bootstrap_servers: `host:port`, or several.
        topologies: several versions of the topology instead, for a program that can run each of
            them; it is subscribed to the topics of all.
        options: options of `StreamsAssignor`, and settings of `AIOKafkaConsumer`, by name.

    Raises:
        TypeError: there is no group id, or no topology.
        ConfigError: an option is unknown or invalid; the message names the nearest one.
        StateDirectoryLocked, StoreError, TopologyError, ReleaseError: as `StreamsAssignor` does.
    """
    given = consumer_options(
        options, CLIENT_SETTINGS, group_id=group_id, bootstrap_servers=bootstrap_servers
    )
    return new_consumer(topology, given, topologies=topologies)
