"""Ways to hold the aiokafka adapter wrong: each is an error at once, in one sentence.

aiokafka turns what an assignor raises while a consumer starts into a `KafkaError` with its text.
"""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from assignor import ConfigError
from assignor.adapters.aiokafka import StreamsAssignor, polled
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.rebalance.groups import TOPOLOGY

LIMIT_S = 120
GROUP = "app"


@pytest.fixture(scope="module")
def servers(clock):
    with running_broker(BrokerConfig(topics={"lines": 2})) as broker:
        yield broker.bootstrap_servers


@asynccontextmanager
async def consumer(servers, *assignors, group_id=GROUP):
    made = AIOKafkaConsumer(
        "lines",
        bootstrap_servers=servers,
        group_id=group_id,
        partition_assignment_strategy=assignors,
        heartbeat_interval_ms=100,
    )
    try:
        yield made
    finally:
        await made.stop()
        for assignor in assignors:
            if isinstance(assignor, StreamsAssignor):
                await asyncio.to_thread(assignor.close)


def run(work):
    return asyncio.run(asyncio.wait_for(work, LIMIT_S))


async def poll_until(member, condition):
    while not condition():
        await member.getmany(timeout_ms=100)


def test_a_forgotten_attach_is_raised_by_start(servers):
    async def work():
        async with consumer(servers, StreamsAssignor(TOPOLOGY)) as member:
            with pytest.raises(KafkaError, match=r"attach\(consumer\) was not called"):
                await member.start()

    run(work())


def test_a_forgotten_attach_is_raised_by_polled_even_without_a_group(servers):
    async def work():
        async with consumer(servers, StreamsAssignor(TOPOLOGY), group_id=None) as member:
            await member.start()
            with pytest.raises(ConfigError, match=r"attach\(consumer\) was not called"):
                await anext(polled(member))

    run(work())


def test_a_consumer_without_a_group_is_refused_by_attach(servers):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY)
        async with consumer(servers, assignor, group_id=None) as member:
            with pytest.raises(TypeError, match="group_id"):
                assignor.attach(member)

    run(work())


def test_an_application_id_unlike_the_group_id_is_refused_by_attach(servers):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY, application_id="other")
        async with consumer(servers, assignor) as member:
            with pytest.raises(ConfigError, match="application_id='other' is unlike"):
                assignor.attach(member)

    run(work())


def test_the_application_id_is_the_group_id(servers):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY)
        async with consumer(servers, assignor, group_id="of-the-group") as member:
            assignor.attach(member)
            await member.start()
            await poll_until(member, lambda: assignor.tasks.active)
            assert "of-the-group-counts-changelog" in await member.topics()

    run(work())


@pytest.mark.parametrize("before", [True, False])
def test_other_assignors_are_refused_by_attach_wherever_they_stand(servers, before):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY)
        listed = (
            [RangePartitionAssignor, assignor] if before else [assignor, RangePartitionAssignor]
        )
        why = "RangePartitionAssignor comes before" if before else "has 2 assignors"
        async with consumer(servers, *listed) as member:
            with pytest.raises(ConfigError, match=why):
                assignor.attach(member)

    run(work())


def test_an_assignor_in_two_consumers_is_refused_by_the_second_attach(servers):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY)
        async with consumer(servers, assignor) as first, consumer(servers, assignor) as second:
            assignor.attach(first)
            with pytest.raises(ConfigError, match="attached to another consumer"):
                assignor.attach(second)

    run(work())


@pytest.mark.parametrize("is_started", [True, False])
def test_an_assignor_in_two_consumers_is_refused_by_the_second_ones_start(servers, is_started):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY)
        async with consumer(servers, assignor) as first, consumer(servers, assignor) as second:
            assignor.attach(first)
            if is_started:
                await first.start()
            with pytest.raises(KafkaError, match="attached to another consumer"):
                await second.start()
            with pytest.raises(ConfigError, match="attached to another consumer"):
                await anext(polled(second, assignor))

    run(work())


def test_an_assignor_that_the_consumer_was_not_made_with_is_refused_by_attach(servers):
    async def work():
        listed, other = StreamsAssignor(TOPOLOGY), StreamsAssignor(TOPOLOGY)
        async with consumer(servers, listed) as member:
            with pytest.raises(ConfigError, match="not with this instance"):
                other.attach(member)

    run(work())


def test_what_is_no_consumer_or_no_event_is_refused_and_so_is_a_closed_assignor(servers):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY)
        with pytest.raises(TypeError, match="NoneType is in no group"):
            assignor.attach(None)
        async with consumer(servers, assignor) as member:
            assignor.attach(member)
            with pytest.raises(ConfigError, match=r"is refused; give an asyncio\.Event"):
                await anext(polled(member, stop=threading.Event()))
            assignor.close()
            with pytest.raises(ConfigError, match="this StreamsAssignor is closed"):
                assignor.attach(member)

    run(work())


def test_a_second_attach_of_the_same_consumer_changes_nothing(servers):
    async def work():
        assignor = StreamsAssignor(TOPOLOGY)
        async with consumer(servers, assignor) as member:
            assignor.attach(member)
            membership, timer = assignor._driver, assignor._driver.timer
            assignor.attach(member)
            assert assignor._driver is membership
            assert membership.timer is timer
            await member.start()
            await poll_until(member, lambda: assignor.tasks.active)

    run(work())
