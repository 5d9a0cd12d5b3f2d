"""What the log says while a group starts as it should: no warning, and no long line."""

import asyncio
import logging
import threading

import pytest

from assignor.adapters import aiokafka, kafka_python
from assignor.adapters.membership.lasting import LastingWarnings
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.embedding.clusters import LIMIT_S, until
from tests.assignor.rebalance.groups import TOPOLOGY
from tests.log_records import records_of

LONGEST_LINE = 160


@pytest.fixture
def servers(clock):
    with running_broker(BrokerConfig(topics={"lines": 4})) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def records(caplog, monkeypatch):
    # However slow the machine is, nothing lasts so long that it becomes a warning.
    monkeypatch.setitem(LastingWarnings.__init__.__kwdefaults__, "after_s", 3600.0)
    caplog.set_level(logging.INFO, "assignor")
    return lambda: records_of(caplog)


def settings(servers):
    return {
        "group_id": "app",
        "bootstrap_servers": servers,
        "num_standby_replicas": 1,
        "heartbeat_interval_ms": 100,
    }


def is_settled(assignors):
    """Whether two members have two tasks and two standbys each."""
    held = [(len(each.tasks.active), len(each.tasks.standby)) for each in assignors]
    return held == [(2, 2)] * 2


def check(records):
    assert [each.getMessage() for each in records if each.levelno >= logging.WARNING] == []
    lines = [each.getMessage() for each in records]
    assert [line for line in lines if len(line) > LONGEST_LINE] == []
    assert len([line for line in lines if "standby replica is configured" in line]) == 1


def test_two_members_of_kafka_python_start_without_a_warning(servers, records):
    assignors, done = [], threading.Event()

    def run():
        with kafka_python.streams_consumer(TOPOLOGY, **settings(servers)) as consumer:
            assignors.append(consumer.assignor)
            for _ in kafka_python.polled(consumer, timeout_ms=100, stop=done):
                pass

    threads = [threading.Thread(target=run) for _ in range(2)]
    threads[0].start()
    try:
        until(lambda: assignors and len(assignors[0].tasks.active) == 4)
        threads[1].start()
        until(lambda: is_settled(assignors))
        check(records())
    finally:
        done.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def test_two_members_of_aiokafka_start_without_a_warning(servers, records):
    async def work():
        consumers, done = [], asyncio.Event()

        async def run():
            async with aiokafka.streams_consumer(TOPOLOGY, **settings(servers)) as consumer:
                consumers.append(consumer)
                async for _ in aiokafka.polled(consumer, timeout_ms=100, stop=done):
                    pass

        tasks = [asyncio.create_task(run())]
        while not (consumers and len(consumers[0].assignor.tasks.active) == 4):  # noqa: ASYNC110 tasks have no event
            await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(run()))
        while not (len(consumers) == 2 and is_settled([each.assignor for each in consumers])):  # noqa: ASYNC110 as above
            await asyncio.sleep(0.01)
        found = records()
        done.set()
        await asyncio.gather(*tasks)
        check(found)

    asyncio.run(asyncio.wait_for(work(), LIMIT_S))
