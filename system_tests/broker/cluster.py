"""What all nodes of an embedded cluster share: topics, groups, faults, the clock.

Everything here runs on one event loop. A group request is handed to the sans-IO coordinator with
a future as its token; whenever the coordinator answers, in this call or in a later one, the future
is resolved and the connection that waits for it writes the response.
"""

import asyncio
import contextlib
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from system_tests.broker.catalog import Catalog, Topic, spread
from system_tests.broker.config import BrokerConfig
from system_tests.broker.faults import Faults, RequestRecord
from system_tests.broker.features import ClusterFeatures
from system_tests.coordinator import (
    CommittedOffset,
    Coordinator,
    Effects,
    ErrorCode,
    GroupDescription,
    GroupEvent,
    OffsetKey,
    Request,
    Response,
)

logger = logging.getLogger(__name__)


class Cluster:
    """The shared half of an embedded broker; use it on its event loop only."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.catalog = Catalog(config.max_batch_bytes)
        self.faults = Faults()
        self.features = ClusterFeatures(
            config.kafka_release, metadata_version=config.metadata_version
        )
        self.requests = RequestRecord(config.requests_kept)
        self.events: deque[GroupEvent] = deque(maxlen=config.events_kept)
        self.address_by_node: dict[int, tuple[str, int]] = {}
        self.rebootstrap_demanded: frozenset[int] = frozenset()
        self.coordinator = Coordinator(config.coordinator, _new_member_id)
        self._node_by_group: dict[str, int] = {}
        self._subscribers: list[Callable[[GroupEvent], None]] = []
        self._waiting: set[asyncio.Future[Response]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._appended = asyncio.Event()
        self._producer_ids = 0

    @staticmethod
    def now_ms() -> int:
        """Milliseconds of the monotonic clock, which every event and request is stamped with."""
        return time.monotonic_ns() // 1_000_000

    @property
    def live(self) -> list[int]:
        """Ids of the nodes that run, in order."""
        return sorted(self.address_by_node)

    @property
    def controller_id(self) -> int:
        """The node that passes for the controller; -1 if none runs."""
        return self.live[0] if self.address_by_node else -1

    # -- groups

    def coordinator_of(self, group_id: str) -> int:
        """The node that coordinates a group; it keeps a group as long as it runs."""
        node_id = self._node_by_group.get(group_id)
        if node_id not in self.address_by_node:
            node_id = spread(group_id, 0, self.live)
            self._node_by_group[group_id] = node_id
        return node_id

    def move_coordinator(self, group_id: str, node_id: int) -> None:
        """Let another node coordinate the group; what was stored of it survives.

        Raises:
            ValueError: the node does not run.
        """
        if node_id not in self.address_by_node:
            raise ValueError(f"node {node_id} does not run; running nodes are {self.live}")
        if self.coordinator_of(group_id) != node_id:
            self._node_by_group[group_id] = node_id
            self._apply(self.coordinator.reload(group_id, now_ms=self.now_ms()))

    async def ask(self, request: Request) -> Response:
        """Hand a request to the group coordinator and wait for its answer."""
        waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            self._apply(self.coordinator.handle(request, token=waiting, now_ms=self.now_ms()))
            return await waiting
        finally:
            self._waiting.discard(waiting)

    def delete_group(self, group_id: str) -> ErrorCode:
        """Delete a group without members."""
        error, effects = self.coordinator.delete_group(group_id, now_ms=self.now_ms())
        self._apply(effects)
        return error

    def subscribe(self, callback: Callable[[GroupEvent], None]) -> None:
        """Call `callback` on the broker's loop with every event of the coordinator from now on."""
        self._subscribers.append(callback)

    def groups(self) -> Mapping[str, GroupDescription]:
        """Every known group."""
        return {name: self.coordinator.describe(name) for name in self.coordinator.group_ids()}

    def committed(self, group_id: str) -> Mapping[OffsetKey, CommittedOffset]:
        """Everything that a group has committed."""
        return dict(self.coordinator.fetch_offsets(group_id))

    # -- topics

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
        replicas: int = 1,
    ) -> Topic:
        """Create a topic.

        Raises:
            ValueError: the name is taken or not allowed, or a number makes no sense.
        """
        count = self.config.default_partitions if partitions is None else partitions
        error, sentence = self.catalog.check(name, count, replicas, max(len(self.live), 1), configs)
        if error:
            raise ValueError(f"cannot create topic: {sentence}")
        return self.catalog.create(name, count, self.live, configs or {}, replicas)

    def delete_topic(self, name: str) -> bool:
        """Delete a topic with all that was committed for it; False if it is unknown."""
        self.coordinator.forget_topic(name)
        return self.catalog.delete(name)

    def end_offsets(self) -> Mapping[OffsetKey, int]:
        """Next offset of every partition."""
        return {
            OffsetKey(name, number): log.end_offset
            for name in self.catalog.names()
            if (topic := self.catalog.topic(name)) is not None
            for number, log in enumerate(topic.partitions)
        }

    def next_producer_id(self) -> int:
        """A producer id that was never given out."""
        self._producer_ids += 1
        return 1_000 + self._producer_ids

    def announce_append(self) -> None:
        """Wake everybody who waits for records."""
        self._appended.set()
        self._appended = asyncio.Event()

    async def wait_for_append(self, timeout_s: float) -> None:
        """Wait until any partition has grown, or the time is over."""
        # Not `wait_for`: before Python 3.12 it forgets that it was cancelled when a record comes in
        # the same step, and the node that stops waits for this connection for ever.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._appended.wait()

    # -- nodes

    def node_started(self, node_id: int, address: tuple[str, int]) -> None:
        """A node listens: it may lead partitions that had no leader."""
        self.address_by_node[node_id] = address
        self.catalog.elect_leaders(self.live)

    def node_stopped(self, node_id: int) -> None:
        """A node is gone: its partitions and its groups move to the others."""
        orphans = [
            group_id
            for group_id in self.coordinator.group_ids()
            if self.coordinator_of(group_id) == node_id
        ]
        self.address_by_node.pop(node_id, None)
        self.catalog.elect_leaders(self.live)
        for group_id in orphans:
            self._apply(self.coordinator.reload(group_id, now_ms=self.now_ms()))

    def close(self) -> None:
        """Stop the clock and let nobody wait any longer."""
        if self._timer is not None:
            self._timer.cancel()
        for waiting in self._waiting:
            waiting.cancel()

    def _apply(self, effects: Effects) -> None:
        for event in effects.events:
            self.events.append(event)
            for callback in self._subscribers:
                try:
                    callback(event)
                except Exception:
                    # A subscriber's bug is its own; the group must not stand still for it.
                    logger.exception("a subscriber failed on %s", event)
        for token, response in effects.answers:
            if isinstance(token, asyncio.Future) and not token.done():
                token.set_result(response)
        self._arm()

    def _arm(self) -> None:
        """Wake up for the coordinator's next deadline."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self.coordinator.next_deadline_ms()
        if deadline_ms is not None:
            wait_s = max(deadline_ms - self.now_ms(), 0) / 1_000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._apply(self.coordinator.tick(self.now_ms()))


def _new_member_id(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4()}"


def replica_nodes(topic: Topic, partition: int, live: Sequence[int]) -> list[int]:
    """The nodes said to hold a partition, its leader first; records are in memory only once."""
    leader = topic.leaders[partition]
    if leader < 0:
        return []
    return [leader, *(node for node in live if node != leader)][: topic.replicas]
