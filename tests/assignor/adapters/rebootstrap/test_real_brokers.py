"""Both clients under the supervisor on a real Kafka broker that moves to another port."""

import asyncio
import socketserver
import threading
import time
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from socket import create_connection

import pytest
from aiokafka import AIOKafkaConsumer
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from assignor.adapters.rebootstrap.aiokafka import supervise
from system_tests.real import RealBroker, broker_release
from tests.assignor.adapters.rebootstrap.clusters import (
    LIMIT_S,
    PARTITIONS,
    SESSION_MS,
    TOPIC,
    Member,
    calm,
    until,
    write,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


class _Relay(socketserver.BaseRequestHandler):
    """Relays bytes between a client and the current target of the address."""

    def handle(self):
        with suppress(OSError), create_connection(("127.0.0.1", self.server.target)) as target:
            pairs = {self.request: target, target: self.request}
            with DefaultSelector() as selector:
                for sock in pairs:
                    selector.register(sock, EVENT_READ)
                while True:
                    for key, _ in selector.select(timeout=1):
                        data = key.fileobj.recv(65_536)
                        if not data:
                            return
                        pairs[key.fileobj].sendall(data)


class _Address(socketserver.ThreadingTCPServer):
    daemon_threads = True
    target = 0


@contextmanager
def one_address():
    """The bootstrap address, independent of the brokers behind it."""
    with _Address(("127.0.0.1", 0), _Relay) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.kip("1102-7", "real")
@pytest.mark.parametrize("name", ["kafka:3.9", "kafka:4"])
def test_consumers_go_on_when_a_real_broker_is_replaced_by_one_on_another_port(name):
    broker = RealBroker(broker_release(name))
    try:
        broker.start()
        with one_address() as address:
            address.target = broker.port
            _play(broker, address)
    finally:
        broker.close()


def _play(broker, address):
    servers = f"127.0.0.1:{address.server_address[1]}"
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    admin.close()
    supervised = Member(servers, "supervised", metadata_recovery_strategy="rebootstrap")
    alone = Member(servers, "alone")
    loop, aio = _Loop(), None
    try:
        aio = loop.run(_Aio.started(servers, "aio"))
        aio_alone = loop.run(_Aio.started(servers, "aio-alone", is_supervised=False))
        all_members = (supervised, alone, aio, aio_alone)
        first = _written(servers, "before")
        until(
            lambda: all(first <= member.seen for member in all_members),
            "all_members reads",
        )
        until(lambda: calm(supervised), "no member joins any more")
        known = supervised.identity, aio.member_id

        broker.move()
        address.target = broker.port
        second = _written(servers, "after")

        until(lambda: second <= supervised.seen, "kafka-python reads on")
        until(lambda: second <= aio.seen, "aiokafka reads on")
        assert supervised.supervisor.rebootstraps
        assert aio.supervisor.rebootstraps
        assert supervised.problems == []
        assert (supervised.identity, aio.member_id) == known
        time.sleep(2)
        assert not second & (alone.seen | aio_alone.seen)
        alone.rescued(second)
        aio_alone.supervisor = loop.call(lambda: supervise(aio_alone.consumer))
        until(lambda: second <= aio_alone.seen, "a late supervisor helps too")
        for member in (aio, aio_alone):
            loop.run(member.stop())
        for member in (supervised, alone):
            member.stop()
    finally:
        loop.stop()


def _written(servers, prefix):
    producer = KafkaProducer(bootstrap_servers=servers)
    values = write(producer, prefix)
    producer.close()
    return values


class _Loop:
    """An event loop on a thread."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * LIMIT_S)

    def call(self, work):
        async def body():
            return work()

        return self.run(body())

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Aio:
    """An aiokafka consumer that reads in a separate task."""

    def __init__(self, servers, group):
        self.consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
        )
        self.supervisor = None
        self.seen = set()

    @classmethod
    async def started(cls, servers, group, *, is_supervised=True):
        member = cls(servers, group)
        await member.consumer.start()
        if is_supervised:
            member.supervisor = supervise(member.consumer)
        member.task = asyncio.ensure_future(member.read())
        return member

    async def read(self):
        async for record in self.consumer:
            self.seen.add(record.value)

    @property
    def member_id(self):
        return self.consumer._coordinator.member_id

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.consumer.stop()
        self.supervisor.close()
