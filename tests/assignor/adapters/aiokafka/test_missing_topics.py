"""A leader's client asks for the metadata of a source topic until the topic exists (again)."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError

from assignor.adapters.aiokafka import polling
from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.port import AiokafkaPort
from tests.assignor.adapters.members import AnyConsumer, cluster
from tests.assignor.rebalance.groups import TOPOLOGY


class Client:
    """What the port uses of aiokafka's client."""

    def __init__(self, **partitions):
        self._topics = {"words", "lines"}
        self.partitions = {"words": {0}, "lines": set()} | partitions
        self.cluster = SimpleNamespace(partitions_for_topic=self.partitions.get)
        self.asked = 0

    def force_metadata_update(self):
        self.asked += 1


@pytest.fixture
def timers():
    return []


def port_of(client, timers):
    consumer = AnyConsumer(_client=client, _closed=False)
    port = AiokafkaPort(consumer)

    def start(delay_s, call):
        timers.append((delay_s, call))
        return SimpleNamespace(cancel=lambda: timers.remove((delay_s, call)))

    port.start_timer = start
    return port, consumer


def fire(timers):
    [(delay_s, call)] = timers
    call()
    return delay_s


def test_a_missing_topic_is_asked_for_every_five_seconds_until_it_exists(timers):
    client = Client()
    port, consumer = port_of(client, timers)
    port.ask_for_topics()
    assert [fire(timers) for _ in range(3)] == [5.0, 5.0, 5.0]
    assert client.asked == 4
    client.partitions["lines"] = {0, 1}
    fire(timers)
    assert (client.asked, timers) == (4, [])
    assert not consumer._closed


def test_topics_that_exist_are_not_asked_for(timers):
    client = Client(lines={0})
    port, _consumer = port_of(client, timers)
    port.ask_for_topics()
    assert (client.asked, timers) == (0, [])


def test_each_rebalance_of_the_leader_leaves_one_timer(timers):
    client = Client()
    port, _consumer = port_of(client, timers)
    port.ask_for_topics()
    port.ask_for_topics()
    assert len(timers) == 1


def test_a_consumer_that_is_closed_or_dropped_asks_no_more(timers):
    client = Client()
    port, consumer = port_of(client, timers)
    port.ask_for_topics()
    consumer._closed = True
    fire(timers)
    assert (client.asked, timers) == (1, [])
    port, consumer = port_of(client, timers)
    port.ask_for_topics()
    del consumer
    fire(timers)
    assert (client.asked, timers) == (2, [])


def test_the_leader_asks_when_it_assigns():
    leader = StreamsAssignor(TOPOLOGY, application_id="app")
    consumer = AnyConsumer(
        _client=Client(),
        _coordinator=None,
        _group_id="app",
        _group_instance_id=None,
        _partition_assignment_strategy=[leader],
    )
    leader.attach(consumer)
    leader.assign(cluster(lines=2), {})
    assert consumer._client.asked == 1


@pytest.mark.usefixtures("clock")
def test_offsets_of_a_deleted_topic_are_not_waited_for(monkeypatch):
    """aiokafka asks for them until `request_timeout_ms` is over, and the loop polls nothing."""
    monkeypatch.setattr(polling, "_RANGES_S", 0)
    gone = TopicPartition("gone", 0)

    async def ask(_partitions):
        await asyncio.Event().wait()

    client = SimpleNamespace(beginning_offsets=ask, end_offsets=ask)
    loop = polling.ConsumerLoop(client, SimpleNamespace(), 1000, {}, "earliest")
    with pytest.raises(KafkaTimeoutError, match=r"the offsets of gone \[0\] are not known within"):
        asyncio.run(loop.ranges([gone]))
