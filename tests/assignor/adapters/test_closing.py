"""`close` and `stop` where they cannot work, and while their caller is cancelled."""

import asyncio

import pytest
from kafka import KafkaConsumer

from assignor import TasksListener, Topology
from assignor.adapters import aiokafka
from assignor.adapters.kafka_python import StreamsAssignor, streams_consumer
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.embedding.clusters import LIMIT_S, until

TOPOLOGY = Topology().add_source("read", topics=["words"])


@pytest.fixture(scope="module")
def broker(clock):
    with running_broker(BrokerConfig(topics={"words": 2})) as started:
        yield started


class ClosesItself(TasksListener):
    """Calls `close` of the consumer as soon as it has tasks."""

    def __init__(self):
        self.consumer, self.raised = None, None

    def on_tasks_assigned(self, active, standby):
        if active and self.raised is None:
            try:
                self.consumer.close()
            except RuntimeError as error:
                self.raised = str(error)


def in_one_step(servers, listener):
    return streams_consumer(
        TOPOLOGY, group_id="one-step", bootstrap_servers=servers, listener=listener
    )


def in_two_steps(servers, listener):
    assignor = StreamsAssignor(TOPOLOGY, listener=listener)
    consumer = KafkaConsumer(
        "words",
        group_id="two-steps",
        bootstrap_servers=servers,
        partition_assignment_strategy=[assignor],
    )
    assignor.attach(consumer)
    return consumer


@pytest.mark.parametrize("make", [in_one_step, in_two_steps])
def test_close_in_a_listener_is_refused_and_closes_nothing(broker, make):
    listener = ClosesItself()
    listener.consumer = consumer = make(broker.bootstrap_servers, listener)
    try:
        until(lambda: listener.raised is not None, lambda: consumer.poll(timeout_ms=50))
        assert "call it where poll is called" in listener.raised
        consumer.poll(timeout_ms=50)
    finally:
        consumer.close()
    assert broker.groups()[consumer.config["group_id"]].members == ()
    for assignor in consumer.config["partition_assignment_strategy"]:
        assignor.close()


async def started(servers):
    consumer = aiokafka.streams_consumer(TOPOLOGY, group_id="aio", bootstrap_servers=servers)
    await consumer.start()
    while not consumer.assignor.tasks.active:
        await consumer.getmany(timeout_ms=50)
    return consumer


@pytest.mark.parametrize("pause_s", [0, 0.002])
def test_a_cancelled_stop_goes_on_and_another_waits_for_its_end(broker, pause_s):
    async def work():
        before = asyncio.all_tasks()
        consumer = await started(broker.bootstrap_servers)
        broker.inject(Fault(api="LeaveGroup", delay_ms=600_000))
        stopping = asyncio.create_task(consumer.stop())
        await asyncio.sleep(pause_s)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        broker.clear_faults()
        await consumer.stop()
        assert broker.groups()["aio"].members == ()
        while asyncio.all_tasks() > before:  # noqa: ASYNC110 no event tells it
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(work(), LIMIT_S))


def test_stop_on_another_event_loop_is_refused(broker):
    async def work():
        consumer = await started(broker.bootstrap_servers)
        stopped_elsewhere = asyncio.to_thread(asyncio.run, consumer.stop())
        with pytest.raises(RuntimeError, match="stop was called on another event loop"):
            await stopped_elsewhere
        assert len(broker.groups()["aio"].members) == 1
        await consumer.stop()

    asyncio.run(asyncio.wait_for(work(), LIMIT_S))
