"""aiokafka in virtual time: its consumer and fetcher, without a network.

Scripted are the answers of a broker, and the group; commits go through aiokafka's own loop.
"""

import asyncio
from types import SimpleNamespace

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import KafkaConnectionError, for_code
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from tests.assignor.adapters.contract.cluster import TOPIC, Selector

_NODE = 0
_EARLIEST = -2
_VERSION = 4
_REFUSAL_S = 0.2


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual."""

    def __init__(self, clock):
        self._scripted_clock = clock
        super().__init__(Selector(clock))

    def time(self):
        return self._scripted_clock.monotonic()

    def run_in_executor(self, executor, call, *arguments):
        """Call it on this thread: no time of other threads is virtual."""
        done = self.create_future()
        try:
            done.set_result(call(*arguments))
        except BaseException as error:  # noqa: BLE001 it is that of the future
            done.set_exception(error)
        return done


class _Client:
    """What the fetcher and the hooks of the adapter ask of a client."""

    def __init__(self, client: AIOKafkaClient, cluster):
        self._scripted = cluster
        self._loop, self._topics = asyncio.get_running_loop(), {TOPIC}
        self._metadata_max_age_ms = 300_000
        self._request_timeout_ms = client._request_timeout_ms
        self.api_version = (2, 8)
        self._known = cluster.partitions()
        self.cluster = SimpleNamespace(
            leader_for_partition=self._leader,
            broker_metadata=lambda node: node,
            partitions_for_topic=lambda _: set(self._known) or None,
        )

    def _leader(self, partition):
        return _NODE if partition.partition in self._known else None

    def add_topic(self, topic):
        return self.force_metadata_update()

    set_topics = add_topic

    async def _maybe_wait_metadata(self):
        await asyncio.sleep(0)

    def force_metadata_update(self):
        future = self._loop.create_future()

        def updated():
            self._known = self._scripted.partitions()
            if not future.done():
                future.set_result(True)

        # aiokafka asks again at once while a leader is unknown.
        delay = 0.001 if self._scripted.exists else _REFUSAL_S
        self._scripted.clock.later(delay, updated)
        return future

    async def send(self, node_id, request):
        scripted = self._scripted
        await asyncio.sleep(0.001)
        if scripted.fetch_failures:
            raise KafkaConnectionError(str(scripted.fetch_failures.pop(0)))
        parts = [part for _, found in request.topics for part in found]
        if not any(self._is_ready(*part) for part in parts):
            ready = self._loop.create_future()
            scripted.waiters.append(lambda: ready.done() or ready.set_result(None))
            await asyncio.wait([ready], timeout=0.5)
        if any(number in scripted.fetch_errors for number, *_ in parts) or not scripted.exists:
            await asyncio.sleep(_REFUSAL_S)  # aiokafka asks again at once
        rows = []
        for number, offset, size in parts:
            error, end, data = scripted.fetch(number, offset, size)
            rows.append((number, error, end, end, None, data))
        return SimpleNamespace(API_VERSION=_VERSION, topics=[(TOPIC, rows)])

    def _is_ready(self, number, offset, size):
        error, _, end = self._scripted.range_of(number)
        return error or number in self._scripted.fetch_errors or offset != end

    async def close(self):
        """There are no connections."""


class _Fetcher(Fetcher):
    async def _proc_offset_request(self, node_id, topic_data):
        await asyncio.sleep(0.001)
        found = {}
        for topic, parts in topic_data.items():
            for number, timestamp in parts:
                error, start, end = self._client._scripted.range_of(number)
                if error:
                    raise for_code(error)(TopicPartition(topic, number))
                at = start if timestamp == _EARLIEST else end
                found[TopicPartition(topic, number)] = at, -1
        return found


class _Coordinator(GroupCoordinator):
    """A member of a scripted group."""

    def __init__(self, consumer, cluster, note):
        self._scripted, self._note = cluster, note
        self._loop = asyncio.get_running_loop()
        self._subscription, self._client = consumer._subscription, consumer._client
        self.group_id, self.generation, self.member_id = "app", 1, "member"
        self._commit_lock, self._commit_refresh_task = asyncio.Lock(), None
        self._retry_backoff_ms, self._session_timeout_ms = 100, 60_000
        self._coordination_task = self._loop.create_future()
        self._error_consumed_fut = self._pending_exception = None
        self._rejoin_needed_fut, self._performed_join_prepare = self._loop.create_future(), False

    async def ensure_coordinator_known(self):
        while self._scripted.is_silent:  # noqa: ASYNC110 as aiokafka does
            await asyncio.sleep(0.1)

    async def _do_commit_offsets(self, assignment, offsets):
        wanted = {tuple(each): found.offset for each, found in offsets.items()}
        await asyncio.sleep(0.001)
        while (codes := self._scripted.commit(wanted, self._note)) is None:
            await asyncio.sleep(self._client._request_timeout_ms / 1000)
            raise for_code(7)
        for each, code in codes.items():
            if code:
                raise for_code(code)(each)

    async def _do_fetch_commit_offsets(self, partitions):
        await self.ensure_coordinator_known()
        await asyncio.sleep(0.001)
        known = self._scripted.committed
        return {p: OffsetAndMetadata(known[p], "") for p in partitions if tuple(p) in known}

    async def close(self):
        await self._stop_commit_offsets_refresh_task()

    async def _maybe_leave_group(self):
        """There is no broker."""


async def join(consumer, cluster, note=lambda _: None, *, subscribes=True, **settings):
    """Start a consumer as a member of a scripted group; `settings` are those of its fetcher."""
    before = consumer._client
    consumer._client = _Client(before, cluster)
    await before.close()
    consumer._coordinator = _Coordinator(consumer, cluster, note)
    consumer._fetcher = _Fetcher(consumer._client, consumer._subscription, **settings)
    if subscribes:
        consumer._subscription.subscribe({TOPIC})


class _InOrder(frozenset):
    """A set in the same order in each process: the fetcher shuffles what it iterates."""

    def __iter__(self):
        return iter(sorted(super().__iter__()))


def assign(consumer, partitions):
    """Assign partitions, as the answer of a leader does: all begin at committed offsets."""
    consumer._subscription.begin_reassignment()
    consumer._subscription.assign_from_subscribed({TopicPartition(*p) for p in partitions})
    assignment = consumer._subscription.subscription.assignment
    assignment._topic_partitions = _InOrder(assignment._topic_partitions)
    consumer._coordinator.start_commit_offsets_refresh_task(assignment)
