"""`StreamsApplication` of aiokafka: what its coroutines add, and what the event loop still does."""

import asyncio
import threading

import pytest
from aiokafka.errors import KafkaConnectionError
from kafka import KafkaProducer

from assignor import ConfigError, DictStore, MemberStopped, TaskStores
from assignor.adapters import aiokafka
from assignor.embedding import JSON, TEXT
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.applications.word_count import (
    COUNTS,
    LIMIT_S,
    TOPOLOGY,
    count,
    made,
    until,
)
from tests.assignor.embedding.state_stores.logs import Access


@pytest.fixture
def servers(clock):
    with running_broker(BrokerConfig(topics={"words": 1})) as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for _ in range(3):
                producer.send("words", key=b"to")
        yield broker.bootstrap_servers


def application(servers, state_dir, handle=count, **options):
    options = {"bootstrap_servers": servers, "state_dir": state_dir, **options}
    return made("aiokafka", handle, **options)


def test_a_rebalance_waits_for_a_record_on_a_thread_and_heartbeats_go_on(servers, tmp_path):
    """In `on_tasks_revoked` itself the event loop would wait for the record: it joins after it."""

    async def run():
        loop, stop, pauses = asyncio.get_running_loop(), asyncio.Event(), []

        def pause():
            pauses.append(asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01), loop))
            pauses[-1].result(LIMIT_S)

        def handle(record, state):
            count(record, state)
            if record.offset == 0:
                loop.call_soon_threadsafe(app.consumer._coordinator.request_rejoin)
                port = app.assignor.driver.port
                while not port.joins_soon:
                    pause()
                for _ in range(20):
                    pause()
            if record.offset == 2:
                loop.call_soon_threadsafe(stop.set)

        async with application(servers, tmp_path, handle) as app:
            await app.run(stop)
            return dict(app.stores.local_state(COUNTS, 0)[COUNTS].items())

    assert asyncio.run(run()) == {"to": 3}


def test_a_cancelled_run_finishes_its_record_and_another_run_continues(servers, tmp_path):
    begun, may_end, offsets = threading.Event(), threading.Event(), []

    def handle(record, state):
        count(record, state)
        begun.set()
        assert may_end.wait(LIMIT_S)
        offsets.append(record.offset)

    async def run():
        async with application(servers, tmp_path, handle) as app:
            task = asyncio.create_task(app.run())
            assert await asyncio.to_thread(begun.wait, LIMIT_S)
            task.cancel()
            await asyncio.sleep(0.1)
            assert not task.done()
            with pytest.raises(RuntimeError, match="another task runs this application"):
                await app.run()
            task.cancel()
            may_end.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert offsets == [0]
            stop = asyncio.Event()
            again = asyncio.create_task(app.run(stop))
            await asyncio.to_thread(until, lambda: len(offsets) == 3)
            stop.set()
            await again
            return dict(app.stores.local_state(COUNTS, 0)[COUNTS].items())

    assert asyncio.run(run()) == {"to": 3}
    assert offsets == [0, 1, 2]


def test_it_has_no_state_before_start_and_starts_once(servers, tmp_path):
    async def run():
        app = application(servers, tmp_path)
        for name in ("stores", "consumer", "assignor"):
            with pytest.raises(AttributeError, match=f"'{name}'; this application may not be star"):
                getattr(app, name)
        with pytest.raises(TypeError, match="use `async with`"), app:
            pass
        with pytest.raises(ConfigError, match="stop=<threading"):
            await app.run(threading.Event())
        async with app:
            with pytest.raises(MemberStopped, match="started already"):
                await app.start()
        await app.close()
        with pytest.raises(MemberStopped, match="closed"):
            await app.start()

    asyncio.run(run())


def test_what_fails_in_start_leaves_nothing_open(servers, tmp_path, monkeypatch):
    async def failing(_):
        raise KafkaConnectionError("no broker")

    async def run():
        app = application(servers, tmp_path)
        with pytest.raises(KafkaConnectionError, match="no broker"):
            await app.start()

    monkeypatch.setattr(aiokafka.StreamsConsumer, "start", failing)
    asyncio.run(run())
    access = Access(None, lambda _: None)
    given = {"application_id": "app", "access": access, "state_dir": tmp_path}
    with TaskStores(TOPOLOGY, [COUNTS], **given):
        pass  # no other has the directory


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"enable_auto_commit": True}, "set enable_auto_commit=False"),
        ({"group_id": "other"}, "give both the same"),
    ],
)
def test_run_tasks_refuses_a_consumer_that_does_not_fit_the_stores(servers, options, why):
    async def run():
        counts = DictStore("counts", key=TEXT, value=JSON)
        with TaskStores(
            TOPOLOGY, [counts], application_id="app", access=Access(None, lambda _: None)
        ) as stores:
            given = {"group_id": "app", "listener": stores, "bootstrap_servers": servers}
            async with aiokafka.streams_consumer(TOPOLOGY, **given | options) as consumer:
                with pytest.raises(ConfigError, match=why):
                    await aiokafka.run_tasks(consumer, stores, count)

    asyncio.run(run())
