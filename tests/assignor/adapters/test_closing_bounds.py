"""`close` of every client while no broker answers: within the bound that docs/clients.md gives."""

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from kafka.errors import KafkaTimeoutError

from assignor import JSON, TEXT, DictStore, Topology
from assignor.adapters import aiokafka
from assignor.adapters.confluent import Consumer
from assignor.adapters.kafka_python import StreamsApplication, commit_next, streams_consumer
from tests.assignor.adapters.connections import broker_process
from tests.assignor.embedding.clusters import LIMIT_S, until
from tests.costs import Ticks

REQUEST_S = 2
# In seconds of `Ticks`: the request that is waited for, and the threads of the assignor.
BOUND_S = REQUEST_S + 10
TOPOLOGY = (
    Topology()
    .add_source("read", topics=["words"])
    .add_processor("count", parents=["read"])
    .add_state_store("counts", processors=["count"])
)
COUNTS = DictStore("counts", key=TEXT, value=JSON)
SHORT = {"request_timeout_ms": REQUEST_S * 1000, "heartbeat_interval_ms": 500}


@pytest.fixture
def broker(clock):
    with broker_process("words:4") as process:
        yield process


def taken(ticks, call):
    begin_s = ticks.seconds()
    call()
    return ticks.seconds() - begin_s


def aiokafka_member(servers, ticks, has_tasks, closes, took):
    async def run():
        consumer = aiokafka.streams_consumer(
            TOPOLOGY, group_id="a", bootstrap_servers=servers, **SHORT
        )
        await consumer.start()
        while not consumer.assignor.tasks.active:
            await consumer.getmany(timeout_ms=100)
        has_tasks.set()
        while not closes.is_set():  # noqa: ASYNC110 set by another thread
            await asyncio.sleep(0.05)
        begin_s = ticks.seconds()
        await consumer.stop()
        took["aiokafka"] = ticks.seconds() - begin_s

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_close_returns_while_no_broker_answers(broker, how):
    settings = {"bootstrap_servers": broker.servers, **SHORT}
    took, stop, closes, has_tasks = {}, threading.Event(), threading.Event(), threading.Event()
    with ExitStack() as resources:
        ticks = resources.enter_context(Ticks())
        threads = resources.enter_context(ThreadPoolExecutor(5))
        resources.callback(closes.set)
        resources.callback(stop.set)
        consumer = resources.enter_context(streams_consumer(TOPOLOGY, group_id="k", **settings))
        until(lambda: consumer.assignor.tasks.active, lambda: consumer.poll(timeout_ms=100))
        facade = resources.enter_context(
            Consumer(
                {
                    "bootstrap.servers": broker.servers,
                    "group.id": "c",
                    "socket.timeout.ms": REQUEST_S * 1000,
                    "log_level": 0,
                },
                topology=TOPOLOGY,
            )
        )
        facade.subscribe(["words"])
        until(lambda: facade.assignor.tasks.active, lambda: facade.poll(0.1))
        application = resources.enter_context(
            StreamsApplication(TOPOLOGY, print, stores=[COUNTS], group_id="s", **settings)
        )
        running = threads.submit(application.run, stop)
        until(lambda: application.stores.active and not application.stores.waiting)
        other = threads.submit(aiokafka_member, broker.servers, ticks, has_tasks, closes, took)
        assert has_tasks.wait(LIMIT_S)
        offsets = dict.fromkeys(consumer.assignment(), 0)
        broker.send_signal(how)
        if how is signal.SIGSTOP:
            with pytest.raises(KafkaTimeoutError, match=r"no broker of .* has answered a metadata"):
                consumer.partitions_for_topic("unknown")
            assert not commit_next(consumer, offsets)
        stop.set()
        closes.set()
        closing = {
            "kafka-python": threads.submit(taken, ticks, consumer.close),
            "confluent": threads.submit(taken, ticks, facade.close),
            "application": threads.submit(
                taken, ticks, lambda: (running.result(LIMIT_S), application.close())
            ),
        }
        took |= {name: each.result(LIMIT_S) for name, each in closing.items()}
        other.result(LIMIT_S)
    assert max(took.values()) < BOUND_S + 1, took  # a thread ends a moment after its bound
    assert len(took) == 4
