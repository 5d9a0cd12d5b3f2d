"""A ready consumer: an `AIOKafkaConsumer` with a `StreamsAssignor`, attached, closed as one."""

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Final, Unpack

from aiokafka import AIOKafkaConsumer

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.settings import ConsumerSettings
from assignor.adapters.membership import MemberKeywords, documented, split_keywords
from assignor.topology import Topology

_CLIENT_SETTINGS: Final = {
    name: parameter.default
    for name, parameter in inspect.signature(AIOKafkaConsumer).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
}


class ConsumerKeywords(MemberKeywords, ConsumerSettings, total=False):
    """Keywords of `streams_consumer`: options of the assignor, and settings of the client."""


class StreamsConsumer(AIOKafkaConsumer):  # type: ignore[misc] # the client is untyped
    """An `AIOKafkaConsumer` whose group runs tasks; `stop` closes its assignor, too.

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

    async def start(self) -> None:
        """Connect and subscribe, without waiting for tasks.

        Raises:
            KafkaError: no broker answers.
        """
        await super().start()
        # A consumer that is made with topics waits for each of them, and only a leader, which has
        # started, creates repartition topics.
        self.subscribe(self._source_topics)

    async def stop(self) -> None:
        """Leave the group, then close the assignor; as `AIOKafkaConsumer.stop`."""
        try:
            await super().stop()
        finally:
            # Its timers belong to this event loop; then it waits for its threads.
            self.assignor.drop_rejoins()
            await asyncio.to_thread(self.assignor.close)


@documented(rest="client_options")
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

    Two settings of the client have other defaults here, which are those of Kafka Streams:
    `enable_auto_commit=False` (commit what is processed, with `commit_next`) and
    `auto_offset_reset="earliest"` (no record from before the first commit is skipped). Without
    `rack`, `client_rack` is the rack of the assignor. There are no fallback assignors: aiokafka
    joins once for each assignor.

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
    if group_id is None:
        raise TypeError("group_id=None: a consumer without a group gets no tasks; give a group_id")
    own, settings = split_keywords(
        options,
        client=_CLIENT_SETTINGS,
        kinds=ConsumerSettings.__annotations__,
        fixed={
            "application_id": "it is the group_id",
            "partition_assignment_strategy": "aiokafka joins once for each assignor in it",
        },
    )
    own.setdefault("rack", settings.get("client_rack"))
    assignor = StreamsAssignor(topology, application_id=group_id, topologies=topologies, **own)
    defaults = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    try:
        return StreamsConsumer(
            assignor,
            assignor.source_topics,
            group_id=group_id,
            bootstrap_servers=bootstrap_servers,
            partition_assignment_strategy=[assignor],
            **defaults | settings,
        )
    except BaseException:
        assignor.close()
        raise
