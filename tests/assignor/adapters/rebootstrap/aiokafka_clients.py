"""Members and waiting on an event loop, for tests of the aiokafka supervisor."""

import asyncio
import contextlib
import time
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.rebootstrap.aiokafka import supervise
from system_tests.broker import EmbeddedBroker
from tests.assignor.adapters.rebootstrap.clusters import (
    ALONE,
    BEHIND_ONE_ADDRESS,
    LIMIT_S,
    PARTITIONS,
    SESSION_MS,
    TOPIC,
    topology,
)


async def until(condition, what):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        await asyncio.sleep(0.02)


class Member:
    """A consumer with a native assignor that reads and commits in a separate task."""

    def __init__(self, servers, group, release, embedding):
        self.assignor = StreamsAssignor(
            topology(),
            application_id=group,
            release=release,
            process_id=uuid4(),
            **embedding,
        )
        self.consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=100,
            partition_assignment_strategy=[self.assignor],
        )
        self.assignor.attach(self.consumer)
        self.supervisor = None
        self.seen = set()
        self.problems = []

    @classmethod
    async def started(cls, servers, group, *, release="native", embedding=ALONE, **supervision):
        member = cls(servers, group, release, embedding)
        await member.consumer.start()
        if supervision:
            member.supervisor = supervise(member.consumer, **supervision)
        member.task = asyncio.ensure_future(member.read())
        return member

    async def read(self):
        while True:
            try:
                for records in (await self.consumer.getmany(timeout_ms=200)).values():
                    self.seen.update(record.value for record in records)
                    await self.consumer.commit()
            except KafkaError as error:
                self.problems.append(error)

    @property
    def identity(self):
        coordinator = self.consumer._coordinator
        return coordinator.member_id, coordinator.generation

    @property
    def version(self):
        return self.assignor._driver.member.state.used_version

    @property
    def partitions(self):
        return sorted(p.partition for p in self.consumer.assignment())

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        # In a task of its own: aiokafka ends it with a CancelledError if a broker has gone.
        stopping = asyncio.ensure_future(self.consumer.stop())
        await asyncio.wait({stopping})
        if not stopping.cancelled():
            stopping.result()
        self.supervisor.close()
        self.assignor.close()

    async def rescued(self, values):
        """Add a supervisor that rebootstraps, and wait until the values were read."""
        if self.supervisor is not None:
            self.supervisor.close()
        self.supervisor = supervise(self.consumer)
        await until(lambda: values <= self.seen, "a late supervisor helps too")


def settled(*members):
    held = [p for member in members for p in member.partitions]
    return sorted(held) == list(range(PARTITIONS)) and all(m.partitions for m in members)


def calm(*members):
    coordinators = [member.consumer._coordinator for member in members]
    return (
        settled(*members)
        and not any(c._rejoin_needed_fut.done() for c in coordinators)
        and len({c.generation for c in coordinators}) == 1
    )


async def write(producer, prefix):
    values = {f"{prefix}-{partition}".encode() for partition in range(PARTITIONS)}
    for partition, value in enumerate(sorted(values)):
        await producer.send_and_wait(TOPIC, value, partition=partition)
    return values


@contextlib.asynccontextmanager
async def broker_and_producer():
    """A broker, its address, and a supervised producer."""
    async with EmbeddedBroker(BEHIND_ONE_ADDRESS) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        supervisor = supervise(producer)
        try:
            yield broker, broker.bootstrap_servers, producer
        finally:
            supervisor.close()
            await producer.stop()
