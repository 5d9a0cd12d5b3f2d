"""An error of the whole group is not taken for "nothing is committed" (librdkafka 5586)."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition

from assignor import ClusterUnavailable
from assignor.adapters import aiokafka
from assignor.adapters.aiokafka.cluster_access import AIOKafkaAccess
from encoding import TopicPartition as Partition
from system_tests.broker import Fault
from tests.assignor.adapters.reports.logs import GROUP, SESSION, TOPOLOGY, committed, filled, write

LIMIT_S = 60
# Loading, not the coordinator, no stable offsets, any other.
CODES = (14, 16, 88, -1)

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture(scope="module")
def broker(clock):
    with filled(4) as running:
        asyncio.run(asyncio.wait_for(read_and_commit(running, 4), LIMIT_S))
        assert committed(running) == {0: 4}
        write(running, range(4, 8))
        yield running


def streams_consumer(broker):
    return aiokafka.streams_consumer(
        TOPOLOGY, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
    )


def attached_consumer(broker):
    assignor = aiokafka.StreamsAssignor(TOPOLOGY, application_id=GROUP)
    consumer = AIOKafkaConsumer(
        "in",
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        partition_assignment_strategy=[assignor],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **SESSION,
    )
    assignor.attach(consumer)
    return consumer


async def offsets_of(consumer, least):
    """Return the offsets of so many records, or more."""
    offsets = []
    async for batch in aiokafka.polled(consumer, timeout_ms=100):
        offsets += [record.offset for found in batch.values() for record in found]
        if len(offsets) >= least:
            break
    return offsets


async def read_and_commit(broker, least):
    async with streams_consumer(broker) as consumer:
        await offsets_of(consumer, least)
        await aiokafka.commit_next(consumer)


@pytest.mark.parametrize("make", [streams_consumer, attached_consumer])
@pytest.mark.parametrize("code", CODES)
def test_reading_begins_at_what_is_committed_after_an_error_of_the_whole_group(broker, code, make):
    broker.inject(Fault(api="OffsetFetch", times=2, error=code))

    async def first():
        async with make(broker) as consumer:
            return (await offsets_of(consumer, 1))[0]

    assert asyncio.run(asyncio.wait_for(first(), LIMIT_S)) == 4


@pytest.mark.parametrize("code", CODES)
def test_what_is_committed_is_asked_for_again(broker, code):
    async def ask():
        async with streams_consumer(broker) as consumer:
            broker.inject(Fault(api="OffsetFetch", times=2, error=code))
            return await consumer.committed(TopicPartition("in", 0))

    assert asyncio.run(asyncio.wait_for(ask(), LIMIT_S)) == 4


@pytest.mark.parametrize("code", CODES)
def test_the_clients_of_a_leader_do_not_take_an_error_for_nothing_committed(broker, code):
    access = AIOKafkaAccess({"bootstrap_servers": broker.bootstrap_servers}, group_id=GROUP)
    broker.inject(Fault(api="OffsetFetch", times=1, error=code))
    with pytest.raises(ClusterUnavailable, match="committed offsets cannot be read"):
        access.committed([Partition("in", 0)])
    assert access.committed([Partition("in", 0)]) == {Partition("in", 0): 4}
    access.close()
