"""Producers and admin clients of both libraries while all brokers are replaced."""

import asyncio
import contextlib
import threading
import time

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from assignor.adapters.rebootstrap import aiokafka, kafka_python
from tests.assignor.adapters.rebootstrap import aiokafka_clients as aio
from tests.assignor.adapters.rebootstrap.admins import answered, answers, asked_of_aiokafka
from tests.assignor.adapters.rebootstrap.clusters import (
    LIMIT_S,
    PARTITIONS,
    TOPIC,
    close_all,
    consumer_of,
    until,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
AT_LEAST = 20
# The client without a supervisor gets the time of the other one, and this in addition.
WITHOUT_S = 2.0
# Timeout of a call that no broker answers, instead of the client's 30 or 40 s.
CALL_MS = 2_000


def written(broker):
    """Every value of the topic, read by a client that started after the replacement."""
    consumer = consumer_of(broker.bootstrap_servers, None)
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    consumer.seek_to_beginning(*partitions)
    values = []
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        for records in consumer.poll(timeout_ms=200).values():
            values += [record.value for record in records]
    consumer.close()
    return values


class Writer(threading.Thread):
    """A thread that writes records one after the other, without waiting for responses.

    Attributes:
        futures: of kafka-python, by value.
    """

    def __init__(self, producer, name):
        super().__init__(daemon=True)
        self.producer, self.prefix = producer, name
        self.futures = {}
        self.stopping = threading.Event()
        self.start()

    def run(self):
        while not self.stopping.wait(0.01):
            number = len(self.futures)
            value = f"{self.prefix}-{number}".encode()
            partition = number % PARTITIONS
            self.futures[value] = self.producer.send(TOPIC, value=value, partition=partition)

    def acknowledged(self):
        return {v for v, future in list(self.futures.items()) if future.succeeded()}

    def stop(self):
        self.stopping.set()
        self.join(LIMIT_S)
        assert not self.is_alive()

    def close(self):
        """Close the producer; after a failed test it does not wait for what no broker takes."""
        self.stopping.set()
        self.producer.close(timeout=1)


@pytest.mark.kip("1102-9", "loop")
def test_a_client_that_begins_again_has_the_bootstrap_servers_for_brokers(broker, closed):
    producer = closed(KafkaProducer(bootstrap_servers=broker.bootstrap_servers))
    producer.partitions_for(TOPIC)
    supervisor, cluster, seen = kafka_python.supervise(producer), producer._metadata, []
    servers = cluster._generate_bootstrap_brokers()

    def begin_again():
        supervisor._begin_again(servers)
        seen.append({**cluster._brokers})  # before the next metadata, which this loop reads

    assert cluster._brokers != servers
    supervisor._run(begin_again)
    assert seen == [servers]
    supervisor.close()


@pytest.mark.kip("1102-9", "loop")
def test_a_producer_of_kafka_python_goes_on_when_all_brokers_are_replaced(broker, closed):
    servers = broker.bootstrap_servers
    settings = {"bootstrap_servers": servers, "reconnect_backoff_max_ms": 300, "acks": "all"}
    producer, other = (KafkaProducer(**settings) for _ in range(2))
    supervisor = kafka_python.supervise(producer)
    none = kafka_python.supervise(other, metadata_recovery_strategy="none")
    writer, control = closed(Writer(producer, "with")), closed(Writer(other, "none"))
    writers = (writer, control)
    until(lambda: all(len(each.acknowledged()) > AT_LEAST for each in writers), "both write")

    broker.replace_nodes()
    replaced = [set(each.futures) for each in writers]
    until(lambda: len(writer.acknowledged() - replaced[0]) > AT_LEAST, "the producer writes on")
    time.sleep(WITHOUT_S)
    assert not control.acknowledged() - replaced[1]
    assert list(none.rebootstraps) == []
    assert {rebootstrap.rule for rebootstrap in supervisor.rebootstraps} == {"no node is available"}
    none.close()
    rescue = kafka_python.supervise(other)
    until(lambda: control.acknowledged() - replaced[1], "a late supervisor helps too")

    for each in writers:
        each.stop()
        for future in each.futures.values():
            future.get(timeout=LIMIT_S)  # none has failed: the client tried again
        assert each.acknowledged() == set(each.futures)
    values = written(broker)
    assert set(values) == {*writer.futures, *control.futures}
    close_all(supervisor, rescue)


@pytest.mark.kip("1102-9", "loop")
def test_an_admin_client_of_kafka_python_answers_again_when_all_brokers_are_replaced(
    broker, closed
):
    settings = {
        "bootstrap_servers": broker.bootstrap_servers,
        "reconnect_backoff_max_ms": 300,
        "request_timeout_ms": CALL_MS,
    }
    admin, other = (closed(KafkaAdminClient(**settings)) for _ in range(2))
    supervisor = kafka_python.supervise(admin)
    none = kafka_python.supervise(other, metadata_recovery_strategy="none")
    assert answers(admin)
    assert answers(other)

    broker.replace_nodes()
    until(lambda: answers(admin), "the admin client finds the new brokers")
    assert {rebootstrap.rule for rebootstrap in supervisor.rebootstraps} == {"no node is available"}
    end = time.monotonic() + WITHOUT_S
    while time.monotonic() < end:
        with pytest.raises(KafkaError):
            other.list_topics()
    assert list(none.rebootstraps) == []
    none.close()
    rescue = kafka_python.supervise(other)
    until(lambda: answers(other), "a late supervisor helps too")
    close_all(supervisor, rescue)


class AIOWriter:
    """As `Writer`, in a separate task; waits for each response and records it."""

    def __init__(self, producer, name):
        self.producer, self.prefix = producer, name
        self.sent, self.acknowledged = [], set()
        self.stopping = False
        self.task = asyncio.ensure_future(self.run())

    async def run(self):
        while not self.stopping:
            number = len(self.sent)
            self.sent.append(value := f"{self.prefix}-{number}".encode())
            await self.producer.send_and_wait(TOPIC, value, partition=number % PARTITIONS)
            self.acknowledged.add(value)
            await asyncio.sleep(0.01)

    async def stop(self):
        self.stopping = True
        # No call has failed: the client tried again.
        await asyncio.wait_for(self.task, LIMIT_S)


@pytest.mark.kip("1102-9", "loop")
def test_a_producer_of_aiokafka_goes_on_when_all_brokers_are_replaced(broker):
    async def play():
        settings = {"bootstrap_servers": broker.bootstrap_servers, "acks": "all"}
        producer, other = AIOKafkaProducer(**settings), AIOKafkaProducer(**settings)
        for client in (producer, other):
            await client.start()
        supervisor = aiokafka.supervise(producer)
        none = aiokafka.supervise(other, metadata_recovery_strategy="none")
        writer, control = AIOWriter(producer, "with"), AIOWriter(other, "none")
        writers = (writer, control)
        await aio.until(lambda: all(len(w.acknowledged) > AT_LEAST for w in writers), "both write")

        await asyncio.to_thread(broker.replace_nodes)
        replaced = [set(each.sent) for each in writers]
        await aio.until(lambda: len(writer.acknowledged - replaced[0]) > AT_LEAST, "it writes on")
        await asyncio.sleep(WITHOUT_S)
        assert not control.acknowledged - replaced[1]
        assert list(none.rebootstraps) == []
        assert {rebootstrap.rule for rebootstrap in supervisor.rebootstraps} == {
            "no node is available"
        }
        none.close()
        rescue = aiokafka.supervise(other)
        await aio.until(lambda: control.acknowledged - replaced[1], "a late supervisor helps too")

        for each in writers:
            await each.stop()
            assert each.acknowledged == set(each.sent)
        values = await asyncio.to_thread(written, broker)
        assert set(values) == {*writer.sent, *control.sent}
        for each in (supervisor, rescue):
            each.close()
        for client in (producer, other):
            await client.stop()

    asyncio.run(play())


@pytest.mark.kip("1102-9", "loop")
def test_an_admin_client_of_aiokafka_answers_again_when_all_brokers_are_replaced(broker):
    async def play():
        servers = broker.bootstrap_servers
        # No call waits for a stopped controller: it would wait until the end of the test.
        admin = AIOKafkaAdminClient(
            bootstrap_servers=servers, request_timeout_ms=10 * LIMIT_S * 1000
        )
        other = AIOKafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=CALL_MS)
        for client in (admin, other):
            await client.start()
        supervisor = aiokafka.supervise(admin)
        none = aiokafka.supervise(other, metadata_recovery_strategy="none")
        for client in (admin, other):
            assert await asked_of_aiokafka(client)

        await asyncio.to_thread(broker.replace_nodes)
        assert await asyncio.wait_for(answered(admin), LIMIT_S)
        assert {rebootstrap.rule for rebootstrap in supervisor.rebootstraps} == {
            "no node is available"
        }
        with contextlib.suppress(TimeoutError):
            found = await asyncio.wait_for(answered(other), WITHOUT_S + CALL_MS / 1_000)
            pytest.fail(f"with none it answered: {found}")
        assert list(none.rebootstraps) == []
        none.close()
        rescue = aiokafka.supervise(other)
        assert await asyncio.wait_for(answered(other), LIMIT_S)
        for each in (supervisor, rescue):
            each.close()
        for client in (admin, other):
            await client.close()

    asyncio.run(play())
