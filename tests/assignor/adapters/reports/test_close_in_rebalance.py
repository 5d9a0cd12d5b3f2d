"""`close` while a rebalance waits for a member that works, as in public reports."""

import asyncio
import threading

import pytest

from assignor.adapters import aiokafka, kafka_python
from assignor.adapters.aiokafka import consumer as aiokafka_consumer
from assignor.adapters.kafka_python import consumer as kafka_python_consumer
from tests.assignor.adapters.reports.logs import (
    GROUP,
    LIMIT_S,
    SESSION,
    TOPOLOGY,
    filled,
    until,
)

pytestmark = pytest.mark.usefixtures("clock")


def close_kafka_python(broker, joins, is_closed):
    servers = broker.bootstrap_servers
    consumer = kafka_python.streams_consumer(
        TOPOLOGY, group_id=GROUP, bootstrap_servers=servers, **SESSION
    )
    while not joins():
        consumer.poll(timeout_ms=50)
    consumer.close()
    is_closed.set()


def stop_aiokafka(broker, joins, is_closed):
    async def run():
        servers = broker.bootstrap_servers
        consumer = aiokafka.streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=servers,
            # aiokafka sends no LeaveGroup request before its first generation.
            session_timeout_ms=1000,
            heartbeat_interval_ms=200,
        )
        await consumer.start()
        async for _ in aiokafka.polled(consumer, timeout_ms=50):
            if joins():
                break
        await consumer.stop()

    asyncio.run(run())
    is_closed.set()


@pytest.mark.parametrize("close", [close_kafka_python, stop_aiokafka])
def test_confluent_kafka_go_767_close_does_not_wait_for_a_member_that_works(close, monkeypatch):
    monkeypatch.setattr(kafka_python_consumer, "_LEAVE_MS", 300)
    monkeypatch.setattr(aiokafka_consumer, "_JOIN_S", 0.3)
    is_closed = threading.Event()
    with (
        filled(5, 4) as broker,
        kafka_python.streams_consumer(
            TOPOLOGY, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
        ) as working,
    ):
        until(lambda: working.poll(timeout_ms=100) or working.assignment())

        def has_joined():
            return len(broker.groups()[GROUP].members) == 2

        thread = threading.Thread(target=close, args=(broker, has_joined, is_closed))
        thread.start()
        assert is_closed.wait(LIMIT_S), "it waits for the poll below"
        thread.join()
        until(lambda: (working.poll(timeout_ms=50), len(working.assignment()) == 4)[1])
