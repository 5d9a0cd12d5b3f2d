"""Shared state of all nodes of an embedded cluster: topics, groups, faults, time.

All code runs on one event loop. A group request is passed to the sans-IO coordinator with a future
as its token. When the coordinator answers, in this call or a later one, the future is resolved, and
the connection that waits for it writes the response.
"""

import asyncio
import contextlib
import logging
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
    """The shared state of an embedded broker; use it on its event loop only."""

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
        """Return the loop's clock in milliseconds, the time of all events and requests.

        It is the monotonic clock, unless a test runs a loop with a clock of its own.
        """
        return int(asyncio.get_running_loop().time() * 1_000)

    @property
    def live(self) -> list[int]:
        """Ids of the nodes that run, in order."""
        return sorted(self.address_by_node)

    @property
    def controller_id(self) -> int:
        """The node that is reported as controller; -1 if none runs."""
        return self.live[0] if self.address_by_node else -1

    # -- groups

    def coordinator_of(self, group_id: str) -> int:
        """Return the node that coordinates a group; it changes only if the node stops."""
        node_id = self._node_by_group.get(group_id)
        if node_id not in self.address_by_node:
            node_id = spread(group_id, 0, self.live)
            self._node_by_group[group_id] = node_id
        return node_id

    def move_coordinator(self, group_id: str, node_id: int) -> None:
        """Let another node coordinate the group; the stored record of the group is kept.

        Raises:
            ValueError: the node does not run.
        """
        if node_id not in self.address_by_node:
            raise ValueError(f"node {node_id} does not run; running nodes are {self.live}")
        if self.coordinator_of(group_id) != node_id:
            self._node_by_group[group_id] = node_id
            self._apply(self.coordinator.reload(group_id, now_ms=self.now_ms()))

    async def ask(self, request: Request) -> Response:
        """Pass a request to the group coordinator and return its response."""
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
            ValueError: the name exists or is invalid, or a number is out of range.
        """
        count = self.config.default_partitions if partitions is None else partitions
        error, sentence = self.catalog.check(name, count, replicas, max(len(self.live), 1), configs)
        if error:
            raise ValueError(f"cannot create topic: {sentence}")
        return self.catalog.create(name, count, self.live, configs or {}, replicas)

    def delete_topic(self, name: str) -> bool:
        """Delete a topic and the offsets committed for it; return False if it is unknown."""
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
        """Return a new producer id."""
        self._producer_ids += 1
        return 1_000 + self._producer_ids

    def announce_append(self) -> None:
        """Wake all requests that wait for records."""
        self._appended.set()
        self._appended = asyncio.Event()

    async def wait_for_append(self, timeout_s: float) -> None:
        """Wait until any partition gets a record, or the timeout."""
        # Not `wait_for`: before Python 3.12 it loses a cancellation if a record arrives in the same
        # step; then the stop of the node waits for this connection for ever.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._appended.wait()

    # -- nodes

    def node_started(self, node_id: int, address: tuple[str, int]) -> None:
        """Register a node that listens, and elect leaders for partitions without one."""
        self.address_by_node[node_id] = address
        self.catalog.elect_leaders(self.live)

    def node_stopped(self, node_id: int) -> None:
        """Remove a node; its partitions and groups move to other nodes."""
        moving = [
            group_id
            for group_id in self.coordinator.group_ids()
            if self.coordinator_of(group_id) == node_id
        ]
        self.address_by_node.pop(node_id, None)
        self.catalog.elect_leaders(self.live)
        for group_id in moving:
            self._apply(self.coordinator.reload(group_id, now_ms=self.now_ms()))

    def close(self) -> None:
        """Stop the timer and cancel all pending requests."""
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
                    # An error of a subscriber must not stop the group.
                    logger.exception("a subscriber failed on %s", event)
        for token, response in effects.answers:
            if isinstance(token, asyncio.Future) and not token.done():
                token.set_result(response)
        self._arm()

    def _arm(self) -> None:
        """Set the timer for the coordinator's next deadline."""
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
    """Return the reported replicas of a partition, leader first; records are stored only once."""
    leader = topic.leaders[partition]
    if leader < 0:
        return []
    return [leader, *(node for node in live if node != leader)][: topic.replicas]
