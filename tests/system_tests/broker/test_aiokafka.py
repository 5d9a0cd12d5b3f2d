"""Stock aiokafka against the embedded broker."""

import asyncio
import contextlib

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from system_tests.broker import BrokerConfig, EmbeddedBroker, Fault
from system_tests.coordinator import EventKind, OffsetKey

pytestmark = pytest.mark.usefixtures("clock")

IN = [TopicPartition("in", number) for number in range(4)]


def on_broker(work):
    async def body():
        config = BrokerConfig(topics={"in": 4}, nodes=2)
        async with EmbeddedBroker(config) as broker, contextlib.AsyncExitStack() as stack:
            await asyncio.wait_for(work(broker, stack), 240)

    asyncio.run(body())


async def start(stack, client):
    await client.start()
    stack.push_async_callback(stop, client)
    return client


async def stop(client):
    # It passes on the end of a fetch that it has cancelled, if that fails in the same moment.
    with contextlib.suppress(asyncio.CancelledError):
        await client.stop()


def consumer(broker, **config):
    settings = {
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 60_000,
        "heartbeat_interval_ms": 100,
        "rebalance_timeout_ms": 60_000,
        "enable_auto_commit": False,
        "partition_assignment_strategy": (RangePartitionAssignor,),
    }
    return AIOKafkaConsumer(
        "in", bootstrap_servers=broker.bootstrap_servers, **{**settings, **config}
    )


async def produce(broker, values, **config):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config) as producer:
        for number, value in enumerate(values):
            await producer.send("in", value, partition=number % len(IN))
        await producer.flush()


async def wait_until(condition):
    while not condition():  # noqa: ASYNC110 - clients have no event to wait for
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_everything_produced_is_consumed_in_order(codec):
    async def work(broker, stack):
        values = [b"%d" % number for number in range(200)]
        await produce(broker, values, compression_type=codec, enable_idempotence=True)
        client = await start(stack, consumer(broker))
        got = {tp: [] for tp in IN}
        while sum(map(len, got.values())) < 200:
            for tp, records in (await client.getmany(timeout_ms=100)).items():
                got[tp] += records
        for tp, records in got.items():
            assert [r.offset for r in records] == list(range(50))
            assert [r.value for r in records] == values[tp.partition :: 4]

    on_broker(work)


def test_consumer_goes_on_where_its_group_has_committed():
    async def work(broker, stack):
        await produce(broker, [b"x"] * 40)
        async with consumer(broker) as first:
            await first.commit(dict.fromkeys(IN, 7))
        assert {c.offset for c in broker.committed("g").values()} == {7}
        second = await start(stack, consumer(broker))
        offsets = set()
        while len(offsets) < 3:
            for records in (await second.getmany(timeout_ms=100)).values():
                offsets |= {r.offset for r in records}
        assert offsets == {7, 8, 9}

    on_broker(work)


def test_members_share_and_take_over_when_one_leaves_or_crashes():
    async def work(broker, stack):
        group = [
            await start(stack, consumer(broker, client_id=f"c{n}", session_timeout_ms=2_000))
            for n in range(3)
        ]
        await wait_until(lambda: sorted(len(c.assignment()) for c in group) == [1, 1, 2])
        await group[0].stop()
        await wait_until(lambda: [len(c.assignment()) for c in group[1:]] == [2, 2])
        broker.inject(Fault(client_id="c1", drop=True, times=1_000_000))
        await wait_until(lambda: group[2].assignment() == set(IN))
        expired = {e.member_id for e in broker.events if e.kind is EventKind.MEMBER_EXPIRED}
        assert any(member_id.startswith("c1-") for member_id in expired)
        broker.clear_faults()

    on_broker(work)


def test_static_member_that_restarts_keeps_its_generation():
    async def work(broker, stack):
        first = await start(stack, consumer(broker, group_instance_id="i"))
        await wait_until(lambda: first.assignment() == set(IN))
        before = broker.groups()["g"]
        await first.stop()
        second = await start(stack, consumer(broker, group_instance_id="i"))
        await wait_until(lambda: second.assignment() == set(IN))
        after = broker.groups()["g"]
        assert after.generation == before.generation
        assert after.members[0].member_id != before.members[0].member_id

    on_broker(work)


def test_group_survives_the_move_of_its_coordinator():
    async def work(broker, stack):
        client = await start(stack, consumer(broker))
        old = broker.coordinator_of("g")
        broker.move_coordinator("g", 3 - old)
        await client.commit({IN[0]: 0})
        assert broker.groups()["g"].generation == 1
        assert {r.node_id for r in broker.requests("OffsetCommit")} == {1, 2}

    on_broker(work)


def test_administration():
    async def work(broker, stack):
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        stack.push_async_callback(admin.close)
        await admin.create_topics([NewTopic("new", 2, 1)])
        await admin.create_partitions({"new": NewPartitions(3)})
        assert sorted(await admin.list_topics()) == ["in", "new"]
        assert OffsetKey("new", 2) in broker.end_offsets()
        await admin.delete_topics(["new"])
        assert await admin.list_topics() == ["in"]
        client = await start(stack, consumer(broker))
        await client.commit({IN[1]: 0})
        assert await admin.list_consumer_groups() == [("g", "consumer")]
        described = (await admin.describe_consumer_groups(["g"]))[0].groups[0]
        assert described[2] == "Stable"
        assert (await admin.list_consumer_group_offsets("g"))[IN[1]].offset == 0

    on_broker(work)
