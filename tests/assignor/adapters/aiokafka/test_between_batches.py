"""A member on aiokafka joins between two batches; its event loop waits for no batch."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from assignor import MemberStopped, TaskStores
from assignor.adapters import aiokafka, kafka_python
from system_tests.coordinator import GroupState
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    SESSION,
    TOPOLOGY,
    committed,
    filled,
)

LIMIT_S = 60
EACH = 20

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def broker():
    with filled(EACH, 2) as running:
        yield running


def consumer(broker, topology=TOPOLOGY, **options):
    return aiokafka.streams_consumer(
        topology, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION | options
    )


async def until(holds):
    async with asyncio.timeout(LIMIT_S):
        while not holds():  # noqa: ASYNC110 the broker has no events
            await asyncio.sleep(0.02)


@asynccontextmanager
async def another(broker, topology=TOPOLOGY):
    """A second member joins, and runs until the end of the block."""
    async with consumer(broker, topology) as second:
        stop = asyncio.Event()

        async def poll():
            async for _ in aiokafka.polled(second, timeout_ms=100, stop=stop):
                await aiokafka.commit_next(second)

        polling = asyncio.ensure_future(poll())
        try:
            yield
        finally:
            stop.set()
            await polling


def is_rebalancing(broker):
    return broker.groups()[GROUP].state is GroupState.PREPARING_REBALANCE


def test_a_function_on_a_thread_may_wait_for_the_event_loop_while_another_member_joins(broker):
    """Before, the event loop waited for the batch, and the batch for the event loop."""
    seen = []

    async def run():
        loop = asyncio.get_running_loop()
        joining = asyncio.Event()

        def handle(record, state):
            seen.append((record.partition, record.offset))
            if len(seen) == EACH // 2:
                loop.call_soon_threadsafe(joining.set)
            if len(seen) >= EACH // 2:
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0.02), loop).result()

        async def join_then():
            await joining.wait()
            async with another(broker, COUNTING):
                await until(lambda: sum(committed(broker).values()) == 2 * EACH)

        access = await asyncio.to_thread(
            kafka_python.KafkaChangelogs, bootstrap_servers=broker.bootstrap_servers
        )
        with TaskStores(COUNTING, [COUNTS], application_id=GROUP, access=access) as stores:
            async with consumer(broker, COUNTING, listener=stores) as first:
                stop = asyncio.Event()
                ends = asyncio.ensure_future(join_then())
                ends.add_done_callback(lambda _: stop.set())
                async for batch in aiokafka.polled(first, timeout_ms=100, stop=stop):
                    done = await asyncio.to_thread(stores.process, batch, handle)
                    await aiokafka.commit_next(first, done)
                    waiting = {each for each in first.assignment() if each in stores.waiting}
                    first.pause(*waiting)
                    first.resume(*(first.paused() - waiting))
                await ends

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))
    assert len(set(seen)) == len(seen)


def test_what_is_processed_is_committed_before_the_member_joins(broker):
    """As with Kafka's client; before, the commit was refused, and others processed it again."""
    outcomes, states = [], []

    async def run():
        async with consumer(broker, max_poll_records=5) as first, asyncio.TaskGroup() as tasks:
            leave = asyncio.Event()

            async def join():
                async with another(broker):
                    await leave.wait()

            async for batch in aiokafka.polled(first, timeout_ms=100):
                if not any(batch.values()):
                    continue
                if not states:
                    tasks.create_task(join())
                    await until(lambda: is_rebalancing(broker))
                    await asyncio.sleep(1)  # time for several heartbeats, which say so
                states.append(is_rebalancing(broker))
                outcomes.append(await aiokafka.commit_next(first))
                if len(outcomes) > 1:
                    break
            leave.set()

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))
    assert states[0]
    assert outcomes[0]


@pytest.mark.parametrize("error", [None, ValueError("of a deserializer that nobody catches")])
def test_aiokafka_983_a_loop_ends_when_the_client_fetches_no_more(broker, error):
    async def run():
        async with consumer(broker) as first:
            async for batch in aiokafka.polled(first, timeout_ms=100):
                if any(batch.values()):
                    fetcher = first._fetcher
                    fetcher._fetch_task.cancel()
                    if error is not None:
                        fetcher._fetch_task = asyncio.get_running_loop().create_future()
                        fetcher._fetch_task.set_exception(error)

    with pytest.raises(MemberStopped, match="ended the task that fetches records"):
        asyncio.run(asyncio.wait_for(run(), LIMIT_S))


def test_a_consumer_is_stopped_within_a_batch_while_another_member_joins(broker):
    async def run():
        first = consumer(broker)
        await first.start()
        async for batch in aiokafka.polled(first, timeout_ms=100):
            if any(batch.values()):
                async with another(broker):
                    await until(lambda: is_rebalancing(broker))
                    await asyncio.sleep(1)  # time for several heartbeats, which say so
                    await first.stop()
                    await until(lambda: len(broker.groups()[GROUP].members) == 1)
                break

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))
