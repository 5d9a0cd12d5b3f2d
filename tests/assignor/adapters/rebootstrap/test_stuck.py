"""Brokers that accept connections, or not, and never answer: the trigger fires (KIP-1102).

No connection is refused, so only the trigger leads a client to the new brokers.
"""

import asyncio
import contextlib
import time

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.conn import CloseReason
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from assignor.adapters.rebootstrap import aiokafka, kafka_python
from system_tests.broker import Fault
from tests.assignor.adapters.rebootstrap import aiokafka_clients as aio
from tests.assignor.adapters.rebootstrap.admins import answered, answers, asked_of_aiokafka
from tests.assignor.adapters.rebootstrap.clusters import (
    LIMIT_S,
    TOPIC,
    Member,
    calm,
    close_all,
    until,
    write,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
FOR_EVER = 10**6
NEVER_MS = 3_600_000
TRIGGER_MS = 500
TRIGGER = {"metadata_recovery_rebootstrap_trigger_ms": TRIGGER_MS}
# Metadata is refreshed four times a second, instead of every five minutes.
SOON = {"metadata_max_age_ms": 250}
PATIENT = {"reconnect_backoff_max_ms": 300} | SOON
SILENT, HALF_SILENT = "they never answer", "they answer ApiVersions only"
both_ways = pytest.mark.parametrize("way", [SILENT, HALF_SILENT])


def get_stuck(running, way):
    """Move the cluster to new nodes; the old ones still listen and never answer again.

    The bootstrap listener and the new nodes report the new nodes only.
    """

    async def move():
        broker = running._broker
        old = list(broker.live)
        for node_id in old:
            if way == HALF_SILENT:
                broker.inject(Fault(node_id=node_id, api="ApiVersions", times=FOR_EVER))
            broker.inject(Fault(node_id=node_id, delay_ms=NEVER_MS, times=FOR_EVER))
        for node_id in old:
            await broker.start_node(node_id + max(old), port=0)
        for node_id in old:
            broker.cluster.node_stopped(node_id)

    running.run(move())


def fired(supervisor):
    """Whether there was a rebootstrap; its reason must be the trigger."""
    rules = {rebootstrap.rule for rebootstrap in supervisor.rebootstraps}
    assert rules <= {"metadata is overdue"}
    return bool(rules)


def reconnect(manager):
    """Close the connections of a kafka-python client, so that it reconnects and wants metadata."""
    manager.call_soon(lambda: [connection.close() for connection in list(manager._conns.values())])
    manager.cluster.request_update()


@pytest.mark.kip("1102-11", "loop")
@both_ways
def test_a_consumer_of_kafka_python_leaves_brokers_that_are_stuck(broker, way):
    member = Member(broker.bootstrap_servers, "g", **TRIGGER)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    until(lambda: calm(member), "the member has everything")
    first = write(producer, "before")
    until(lambda: first <= member.seen, "all is read")
    producer.close(timeout=1)
    get_stuck(broker, way)
    reconnect(member.consumer._manager)
    until(lambda: fired(member.supervisor), "the trigger fires")
    other = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    second = write(other, "after")
    until(lambda: second <= member.seen, "the member reads on")
    other.close(timeout=1)
    member.stop()


@pytest.mark.kip("1102-11", "loop")
@both_ways
def test_a_producer_of_kafka_python_leaves_brokers_that_are_stuck(broker, way):
    settings = {"bootstrap_servers": broker.bootstrap_servers} | PATIENT
    producer, other = KafkaProducer(**settings), KafkaProducer(**settings)
    supervisor = kafka_python.supervise(producer, **TRIGGER)
    none = kafka_python.supervise(other, metadata_recovery_strategy="none", **TRIGGER)
    write(producer, "before")
    write(other, "other")
    get_stuck(broker, way)
    if way == SILENT:
        reconnect(producer._sender._client._manager)
    sent = producer.send(TOPIC, value=b"after", partition=0)
    stays = other.send(TOPIC, value=b"later", partition=0)
    until(lambda: fired(supervisor), "the trigger fires")
    assert sent.get(timeout=LIMIT_S).topic == TOPIC
    time.sleep(2 * TRIGGER_MS / 1_000)
    assert not stays.is_done
    assert list(none.rebootstraps) == []
    none.close()
    rescue = kafka_python.supervise(other, **TRIGGER)
    assert stays.get(timeout=LIMIT_S).topic == TOPIC
    assert fired(rescue)
    close_all(supervisor, rescue, producer, other)


@pytest.mark.kip("1102-11", "loop")
@both_ways
def test_an_admin_client_of_kafka_python_leaves_brokers_that_are_stuck(broker, way):
    # With the client's 30 s, a call would delay the test.
    settings = {"request_timeout_ms": 2_000, "bootstrap_servers": broker.bootstrap_servers}
    admin = KafkaAdminClient(**settings | PATIENT)
    supervisor = kafka_python.supervise(admin, **TRIGGER)
    assert answers(admin)
    get_stuck(broker, way)
    if way == SILENT:
        reconnect(admin._manager)
    until(lambda: fired(supervisor), "the trigger fires")
    until(lambda: answers(admin), "the admin client answers again")
    close_all(supervisor, admin)


def disconnect(client):
    """Close the connections of an aiokafka client, so that it reconnects."""
    for connection in list(client._conns.values()):
        connection.close(reason=CloseReason.IDLE_DROP)
    client.force_metadata_update()


@pytest.mark.kip("1102-11", "loop")
@both_ways
def test_a_consumer_of_aiokafka_leaves_brokers_that_are_stuck(broker, way):
    async def play():
        servers = broker.bootstrap_servers
        member = await aio.Member.started(servers, "g", **TRIGGER)
        await aio.until(lambda: aio.calm(member), "the member has everything")
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            first = await aio.write(producer, "before")
        await aio.until(lambda: first <= member.seen, "all is read")
        await asyncio.to_thread(get_stuck, broker, way)
        disconnect(member.consumer._client)
        await aio.until(lambda: fired(member.supervisor), "the trigger fires")
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            second = await aio.write(producer, "after")
        await aio.until(lambda: second <= member.seen, "the member reads on")
        await member.stop()

    asyncio.run(play())


@pytest.mark.kip("1102-11", "loop")
@both_ways
def test_a_producer_of_aiokafka_leaves_brokers_that_are_stuck(broker, way):
    async def play():
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, **SOON)
        await producer.start()
        supervisor = aiokafka.supervise(producer, **TRIGGER)
        await aio.write(producer, "before")
        await asyncio.to_thread(get_stuck, broker, way)
        if way == SILENT:
            disconnect(producer.client)
        sent = asyncio.ensure_future(producer.send_and_wait(TOPIC, b"after", partition=0))
        await aio.until(lambda: fired(supervisor), "the trigger fires")
        assert (await asyncio.wait_for(sent, LIMIT_S)).topic == TOPIC
        supervisor.close()
        await producer.stop()

    asyncio.run(play())


@pytest.mark.kip("1102-11", "loop")
@both_ways
def test_an_admin_client_of_aiokafka_leaves_brokers_that_are_stuck(broker, way):
    async def play():
        servers = broker.bootstrap_servers
        admin = AIOKafkaAdminClient(bootstrap_servers=servers, **SOON)
        other = AIOKafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=2_000, **SOON)
        for client in (admin, other):
            await client.start()
        supervisor = aiokafka.supervise(admin, **TRIGGER)
        none = aiokafka.supervise(other, metadata_recovery_strategy="none", **TRIGGER)
        for client in (admin, other):
            assert await asked_of_aiokafka(client)
        await asyncio.to_thread(get_stuck, broker, way)
        if way == SILENT:
            disconnect(admin._client)
        await aio.until(lambda: fired(supervisor), "the trigger fires")
        assert await asyncio.wait_for(answered(admin), LIMIT_S)
        with contextlib.suppress(TimeoutError):
            found = await asyncio.wait_for(answered(other), 2 * TRIGGER_MS / 1_000)
            pytest.fail(f"with none it answered: {found}")
        assert list(none.rebootstraps) == []
        for each in (supervisor, none):
            each.close()
        for client in (admin, other):
            await client.close()

    asyncio.run(play())
