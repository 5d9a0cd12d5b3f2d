"""Tests of confluent-kafka-python (Apache License 2.0), run with this package's consumer.

From `tests/test_Consumer.py` of its version 2.15. Names are kept. What is changed: a topology is
given, no broker answers at the configured address, and topics are those of the topology.
"""

import gc
from contextlib import suppress
from functools import partial

import confluent_kafka
import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from packaging.version import Version

from assignor import Topology
from assignor.adapters.confluent import Consumer
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.confluent.harness import LIMIT_S, fill, servers_of
from tests.assignor.embedding.clusters import until

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
BEFORE_2_13 = Version(confluent_kafka.__version__) < Version("2.13")
TOPOLOGY = Topology().add_source("test", topics=["test"])


@pytest.fixture(autouse=True)
def _closed():
    """Consumers here are closed by their tests, or forgotten and closed in the background."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def broker(clock):
    """A broker, where the original has none: without one a member takes long to close."""
    with running_broker(BrokerConfig(topics={"test": 1})) as running:
        yield running


@pytest.fixture(scope="module")
def common(broker):
    """Settings of consumers that find the broker."""
    return {"log_level": 0, "bootstrap.servers": servers_of(broker)}


@pytest.fixture(scope="module")
def test_msg(broker, common):
    """A record of the topic; below 2.13 only librdkafka makes a `Message`."""
    fill(broker, 1, topic="test", partitions=1)
    reader = confluent_kafka.Consumer(common | {"group.id": "reader"})
    reader.assign([TopicPartition("test", 0, 0)])
    record = reader.poll(LIMIT_S)
    reader.close()
    assert record.error() is None
    return record


@pytest.fixture(scope="module")
def consumer_of(common):
    return lambda config: Consumer(common | config, topology=TOPOLOGY)


@pytest.fixture
def lonely_consumer_of(clock):
    """A consumer that finds no broker; the tests close it."""
    return lambda config: Consumer(NOWHERE | config, topology=TOPOLOGY)


def test_basic_api(lonely_consumer_of):
    with pytest.raises(TypeError, match="expected configuration dict"):
        Consumer(topology=TOPOLOGY)
    kc = lonely_consumer_of(
        {
            "group.id": "test",
            "socket.timeout.ms": "100",
            "session.timeout.ms": 1000,
            "on_commit": lambda *_: None,
        }
    )
    kc.subscribe(["test"])
    kc.unsubscribe()
    kc.subscribe(["test"], on_assign=lambda *_: None, on_revoke=lambda *_: None)
    kc.unsubscribe()
    msg = kc.poll(timeout=0.001)
    assert msg is None or msg.error()
    if msg is not None:
        assert msg.timestamp() == (TIMESTAMP_NOT_AVAILABLE, -1)
    assert len(kc.consume(num_messages=10, timeout=0.001)) == 0
    for number in (-100, 1000001):
        with pytest.raises(ValueError, match="num_messages must be between 0 and 1000000"):
            kc.consume(number)
    partitions = [TopicPartition("test", part) for part in range(0, 100, 3)]
    kc.assign(partitions)
    assert partitions == kc.assignment()
    kc.pause(partitions)
    kc.resume(partitions)
    assert kc.get_watermark_offsets(partitions[0], cached=True) == (OFFSET_INVALID, OFFSET_INVALID)
    with pytest.raises(KafkaException) as ex:
        kc.get_watermark_offsets(partitions[0], timeout=0.5, cached=False)
    assert ex.value.args[0].code() in (
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
    )
    kc.unassign()
    kc.commit(asynchronous=True)
    with pytest.raises(KafkaException) as ex:
        kc.commit(asynchronous=False)
    assert ex.value.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._NO_OFFSET)
    kc.position(partitions)
    assert len([p for p in partitions if p.offset == OFFSET_INVALID]) == len(partitions)
    with pytest.raises(KafkaException) as ex:
        kc.committed(partitions, timeout=0.001)
    assert ex.value.args[0].code() == KafkaError._TIMED_OUT
    for arguments in ({"timeout": 0.2}, {"topic": "hi", "timeout": 0.1}):
        with pytest.raises(KafkaException) as ex:
            kc.list_topics(**arguments)
        assert ex.value.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    kc.close()


STORES = {
    "group.id": "test",
    "enable.auto.commit": True,
    "enable.auto.offset.store": False,
    "socket.timeout.ms": 50,
    "session.timeout.ms": 100,
}


def test_store_offsets(consumer_of):
    c = consumer_of(STORES)
    c.subscribe(["test"])
    with pytest.raises(KafkaException) as ex:
        c.store_offsets(offsets=[TopicPartition("test", 0, 42)])
    assert ex.value.args[0].code() in (KafkaError._UNKNOWN_PARTITION, KafkaError._STATE)
    c.unsubscribe()
    c.close()


def test_store_offsets_params(consumer_of, test_msg):
    c = consumer_of(STORES)
    test_tp = TopicPartition("test", 0, -1)
    c.assign([test_tp])
    c.store_offsets(message=test_msg)
    c.store_offsets(offsets=[test_tp])
    c.store_offsets(message=test_msg, offsets=None)
    c.store_offsets(message=None, offsets=[test_tp])
    with pytest.raises(ValueError, match="mutually exclusive"):
        c.store_offsets(message=test_msg, offsets=[test_tp])
    for arguments in ({}, {"message": None}, {"offsets": None}, {"message": None, "offsets": None}):
        with pytest.raises(ValueError, match="expected either message or offsets"):
            c.store_offsets(**arguments)
    c.close()


def test_on_commit(consumer_of):
    """Of a synchronous commit, on_commit is not called (issue #71)."""
    calls = []
    c = consumer_of(
        {
            "group.id": "x",
            "enable.auto.commit": False,
            "socket.timeout.ms": 50,
            "session.timeout.ms": 100,
            "on_commit": lambda err, ps: calls.append((err, ps)),
        }
    )
    c.assign([TopicPartition("test", 2)])
    for _ in range(2):
        c.poll(0.1)
        with pytest.raises(KafkaException) as ex:
            c.commit(asynchronous=False)
        assert ex.value.args[0].code() == KafkaError._NO_OFFSET
    c.close()
    assert calls == []


def test_commit_params(consumer_of, test_msg):
    c = consumer_of({"group.id": "x", "enable.auto.commit": False})
    test_tp = TopicPartition("test", 0)
    c.assign([test_tp])
    c.commit(message=None)
    c.commit(offsets=None)
    c.commit(message=None, offsets=None)
    c.commit(**{"async": True})
    c.commit(asynchronous=True)
    c.commit()
    c.commit(message=None, offsets=None, asynchronous=True)
    c.commit(message=None, offsets=[test_tp])
    c.commit(offsets=[test_tp])
    c.commit(message=test_msg, offsets=None)
    c.commit(message=test_msg)
    with pytest.raises(ValueError, match="mutually exclusive"):
        c.commit(message=test_msg, offsets=[])
    c.close()


def test_subclassing(common):
    class SubConsumer(Consumer):
        def poll(self, somearg):
            assert isinstance(somearg, str)
            super().poll(timeout=0.0001)

    sc = SubConsumer(common | {"group.id": "test", "session.timeout.ms": "90"}, topology=TOPOLOGY)
    sc.poll("astring")
    sc.close()


def test_offsets_for_times(lonely_consumer_of):
    c = lonely_consumer_of(STORES)
    with pytest.raises(KafkaException) as ex:
        c.offsets_for_times([TopicPartition("test", 0, 100)], timeout=0.1)
    assert ex.value.args[0].code() in (
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
    )
    c.close()


def test_multiple_close_does_not_throw_exception(consumer_of):
    c = consumer_of(STORES)
    c.subscribe(["test"])
    c.unsubscribe()
    c.close()
    c.close()


def closed_methods(c):
    test = TopicPartition("test", 0, 42)
    return {
        "subscribe": lambda: c.subscribe(["test"]),
        "unsubscribe": c.unsubscribe,
        "poll": c.poll,
        "consume": c.consume,
        "assign": lambda: c.assign([test]),
        "unassign": c.unassign,
        "incremental_assign": lambda: c.incremental_assign([test]),
        "incremental_unassign": lambda: c.incremental_unassign([test]),
        "assignment": c.assignment,
        "commit": c.commit,
        "committed": lambda: c.committed([test]),
        "position": lambda: c.position([test]),
        "seek": lambda: c.seek(test),
        "pause": lambda: c.pause([test]),
        "resume": lambda: c.resume([test]),
        "memberid": c.memberid,
        "get_watermark_offsets": lambda: c.get_watermark_offsets(test),
        "store_offsets": lambda: c.store_offsets(offsets=[test]),
        "offsets_for_times": lambda: c.offsets_for_times([test]),
        "consumer_group_metadata": c.consumer_group_metadata,
        "list_topics": c.list_topics,
        "set_sasl_credentials": lambda: c.set_sasl_credentials("user", "password"),
    }


@pytest.fixture(scope="module")
def closed_consumer(consumer_of):
    c = consumer_of(STORES)
    c.subscribe(["test"])
    c.unsubscribe()
    c.close()
    return c


@pytest.mark.parametrize("name", sorted(closed_methods(Consumer)))
def test_any_method_after_close_throws_exception(closed_consumer, name):
    with pytest.raises(RuntimeError, match="Consumer closed"):
        closed_methods(closed_consumer)[name]()


@pytest.mark.parametrize("name", sorted(closed_methods(Consumer)))
def test_uninitialized_consumer_methods(name):
    class UninitializedConsumer(Consumer):
        def __init__(self, config):
            pass

    consumer = UninitializedConsumer({"group.id": "test"})
    with pytest.raises(RuntimeError, match="Consumer closed"):
        closed_methods(consumer)[name]()
    consumer.close()


def test_consumer_without_groupid():
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        Consumer({"bootstrap.servers": "mybroker:9092"}, topology=TOPOLOGY)


@pytest.mark.parametrize("error", [ValueError, RuntimeError, KafkaException])
def test_callback_exception_no_system_error(lonely_consumer_of, error):
    def raises(given):
        raise error("from the callback")

    settings = {"group.id": "test", "socket.timeout.ms": 100, "session.timeout.ms": 1000}
    for callback in ({"error_cb": raises}, {"stats_cb": raises, "statistics.interval.ms": 50}):
        consumer = lonely_consumer_of(settings | callback)
        consumer.subscribe(["test"])
        with pytest.raises((error, SystemError)) as raised:
            until(partial(consumer.consume, timeout=0.1))
        found = raised.value
        if BEFORE_2_13:  # several callbacks in one poll
            while isinstance(found, SystemError):
                found = found.__cause__
        assert isinstance(found, error)
        assert "from the callback" in str(found)
        with suppress(error, SystemError):  # the callback once more
            consumer.close()


def test_consumer_context_manager_basic(common):
    config = common | {"group.id": "test", "socket.timeout.ms": 10, "session.timeout.ms": 100}
    consumer = Consumer(config, topology=TOPOLOGY)
    assert consumer.__enter__() is consumer
    assert consumer.__exit__(None, None, None) is None
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.subscribe(["test"])
    consumer = Consumer(config, topology=TOPOLOGY)
    with pytest.raises(TypeError, match="expected list"), consumer:
        consumer.subscribe("test")
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll()
    consumer.close()
    assert consumer.__enter__() is consumer
    assert consumer.__exit__(None, None, None) is None
