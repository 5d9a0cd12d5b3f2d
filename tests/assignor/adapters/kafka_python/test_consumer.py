"""`streams_consumer` of kafka-python: a consumer that is ready to poll."""

import inspect
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from filelock import FileLock, Timeout
from kafka import KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import IllegalStateError, KafkaError
from kafka.serializer import Deserializer

from assignor import ConfigError, Topology, TopologyError
from assignor.adapters.consumer_options import consumer_options
from assignor.adapters.kafka_python import (
    StreamsAssignor,
    StreamsConsumer,
    commit_next,
    polled,
    streams_consumer,
)
from assignor.adapters.kafka_python.consumer import CLIENT_SETTINGS
from assignor.adapters.kafka_python.settings import ConsumerSettings
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.adapters.wrong_options import WRONG_OPTIONS
from tests.assignor.embedding.clusters import until
from tests.assignor.rebalance.groups import TOPOLOGY

LIMIT_S = 120
OWN_PARAMETERS = {"bootstrap_servers", "group_id", "partition_assignment_strategy"}
TWO_STEPS = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("split", parents=["lines"])
    .add_sink("words", topic="words", parents=["split"])
    .add_repartition_topic("words")
    .add_source("again", topics=["words"])
    .add_processor("count", parents=["again"])
    .add_state_store("counts", processors=["count"])
)


class SimpleDeserializer(Deserializer):
    def deserialize(self, topic, headers, data):
        return data


@pytest.fixture(scope="module")
def broker(clock):
    config = BrokerConfig(topics={"lines": 3, "more": 3}, auto_create_topics=True)
    with running_broker(config) as running:
        with KafkaProducer(bootstrap_servers=running.bootstrap_servers) as producer:
            for partition in range(3):
                producer.send("lines", b"hello", partition=partition).get(LIMIT_S)
        yield running


@pytest.fixture
def made(broker):
    consumers = []

    def make(topology=TOPOLOGY, **options):
        given = {"heartbeat_interval_ms": 100, "group_id": "app"} | options
        servers = broker.bootstrap_servers
        consumers.append(streams_consumer(topology, bootstrap_servers=servers, **given))
        return consumers[-1]

    yield make
    for consumer in consumers:
        consumer.close()


def read_until(consumer, condition):
    """Poll until the condition holds for all records so far; return their values."""
    end, seen = time.monotonic() + LIMIT_S, []
    for batch in polled(consumer, timeout_ms=100):
        seen += [record.value for records in batch.values() for record in records]
        if condition(seen):
            break
        assert time.monotonic() < end
    return seen


def test_it_is_a_consumer_with_its_assignor_that_gets_tasks_and_old_records(made):
    consumer = made(group_id="ready")
    assert isinstance(consumer, KafkaConsumer)
    assert isinstance(consumer, StreamsConsumer)
    assert isinstance(consumer.assignor, StreamsAssignor)
    assert read_until(consumer, lambda seen: len(seen) == 3) == [b"hello"] * 3
    assert len(consumer.assignor.tasks.active) == 3


def test_nothing_is_committed_before_the_application_says_so(made):
    consumer = made(group_id="commits", auto_commit_interval_ms=1)
    read_until(consumer, lambda seen: len(seen) == 3)
    consumer.poll(timeout_ms=100)
    partitions = consumer.assignment()
    assert {consumer.committed(each) for each in partitions} == {None}
    assert commit_next(consumer)
    assert {consumer.committed(each) for each in partitions} == {1}


def test_repartition_topics_are_subscribed_to_and_made_by_the_leader(made):
    consumer = made(TWO_STEPS, group_id="two")
    assert consumer.subscription() == {"lines", "two-words-repartition"}
    read_until(consumer, lambda _: len(consumer.assignor.tasks.active) == 6)
    assert consumer.assignor.failures == []
    assert len(consumer.partitions_for_topic("two-words-repartition")) == 3


def test_a_program_with_two_versions_reads_the_topics_of_both(made):
    first = Topology().add_source("lines", topics=["lines"]).add_processor("n", parents=["lines"])
    second = Topology(version=2).add_source("lines", topics=["lines"])
    second.add_source("more", topics=["more"]).add_processor("n", parents=["lines", "more"])
    consumer = made(topology=None, topologies=[first, second], group_id="versions")
    assert consumer.subscription() == {"lines", "more"}
    read_until(consumer, lambda _: len(consumer.assignor.tasks.active) == 3)
    assert consumer.assignor.topology_versions(0) == (2,)
    assert consumer.assignor.topology_versions(1) == (1,)


def test_closing_the_consumer_closes_the_assignor(made, tmp_path):
    with made(state_dir=tmp_path) as consumer:
        assert not is_free(tmp_path)
        consumer.close()
        assert is_free(tmp_path)
    consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.subscribe(["lines"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"fallback_assignors": [RangePartitionAssignor], "rebalance_protocol": "cooperative"}, ()),
        ({"fetch_max_wait_ms": 60_000}, ()),
        ({"topology": Topology()}, TopologyError),
    ],
)
def test_what_fails_leaves_no_lock_behind(made, tmp_path, options, error):
    with pytest.raises(error or KafkaError):
        made(state_dir=tmp_path, **options)
    assert is_free(tmp_path)


def is_free(directory):
    lock = FileLock(directory / "process.lock")
    with suppress(Timeout):
        lock.acquire(timeout=0)
    was_free = lock.is_locked
    lock.release()
    return was_free


def test_given_settings_go_before_its_own_defaults_and_the_rack_is_one(made):
    consumer = made(auto_offset_reset="latest", enable_auto_commit=True, client_rack="a")
    assert consumer.config["auto_offset_reset"] == "latest"
    assert consumer.config["enable_auto_commit"]
    assert consumer.config["allow_auto_create_topics"] is False
    assert consumer.assignor._driver.member.identity.rack == "a"
    other = made(client_rack="a", rack="b", group_id="other")
    assert other.assignor._driver.member.identity.rack == "b"


@pytest.mark.parametrize(
    ("options", "interval_ms"),
    [
        ({"session_timeout_ms": 6000}, 2000),
        ({"session_timeout_ms": 2}, 1),
        ({"session_timeout_ms": 60_000}, 3000),
        ({"session_timeout_ms": 6000, "heartbeat_interval_ms": 3000}, 3000),
        ({}, None),
    ],
)
def test_heartbeats_are_as_frequent_as_a_session_timeout_needs(options, interval_ms):
    given = consumer_options(
        options, CLIENT_SETTINGS, group_id="app", bootstrap_servers="127.0.0.1:1"
    )
    assert given.client.get("heartbeat_interval_ms") == interval_ms


@pytest.mark.parametrize(
    ("options", "why"),
    [
        *WRONG_OPTIONS,
        ({"listner": None}, "did you mean listener"),
        ({"partition_assignment_strategy": []}, "give further assignors as fallback_assignors"),
        ({"session_timeout_ms": 1}, "heartbeat_interval_ms=1 is not below session_timeout_ms=1"),
        ({"heartbeat_interval_ms": 50_000}, "is not below session_timeout_ms=45000; give at most"),
        ({"ssl_cafile": "/no/ca.pem"}, "ssl_cafile='/no/ca.pem' is refused; give the path of a f"),
        ({"group_instance_id": "a\udcff"}, r"'a\\udcff' is refused; give a text that UTF-8 can"),
        ({"acks": "all"}, "unknown setting acks; known: "),
        (
            {"max_poll_interval_ms": 1},
            "interval_ms=1 is below heartbeat_interval_ms=3000; give the",
        ),
        ({"fallback_assignors": [StreamsAssignor]}, r"own assignors, such as"),
        ({"fallback_assignors": [StreamsAssignor(TOPOLOGY)]}, r"own assignors, such as"),
        ({"fallback_assignors": 5}, "fallback_assignors=5 is refused; give a list"),
        ({"fallback_assignors": [5]}, r"such as \[RangePartitionAssignor\]"),
        ({"fallback_assignors": "range"}, r"such as \[RangePartitionAssignor\]"),
        ({"group_id": ""}, "by default it is the group id"),
    ],
)
def test_a_wrong_option_is_refused_before_a_broker_is_asked(options, why):
    with pytest.raises(ConfigError, match=why):
        streams_consumer(
            TOPOLOGY, **{"bootstrap_servers": "127.0.0.1:1", "group_id": "app"} | options
        )


@pytest.mark.parametrize(
    "options",
    [
        {"consumer_timeout_ms": -1},
        {"consumer_timeout_ms": math.inf},
        {"value_deserializer": bytes.decode, "key_deserializer": SimpleDeserializer()},
        {"bootstrap_servers": "PLAINTEXT://a:1, [::1]:9092,b,::1,"},
        {"bootstrap_servers": ("a:1", "b")},
    ],
)
def test_what_the_client_can_use_is_accepted(options):
    consumer_options(
        {name: value for name, value in options.items() if name != "bootstrap_servers"},
        CLIENT_SETTINGS,
        group_id="app",
        bootstrap_servers=options.get("bootstrap_servers", "a:1"),
    )


def test_a_group_id_of_none_is_refused():
    with pytest.raises(TypeError, match="group_id=None"):
        streams_consumer(TOPOLOGY, bootstrap_servers="127.0.0.1:1", group_id=None)


def test_every_default_of_the_client_can_be_given():
    for name in ConsumerSettings.__annotations__:
        given = {name: KafkaConsumer.DEFAULT_CONFIG[name]}
        consumer_options(given, CLIENT_SETTINGS, group_id="app", bootstrap_servers="127.0.0.1:1")


def test_typed_settings_are_those_of_the_client():
    typed = ConsumerSettings.__annotations__.keys()
    assert typed == KafkaConsumer.DEFAULT_CONFIG.keys() - OWN_PARAMETERS


def test_its_signature_names_every_option_of_the_assignor():
    names = list(inspect.signature(streams_consumer).parameters)
    first = ["topology", "group_id", "bootstrap_servers", "topologies", "fallback_assignors"]
    assert names[:5] == first
    assert names[-1] == "options"
    own = {"topology", "application_id", "topologies"}
    assert set(names[5:-1]) == set(inspect.signature(StreamsAssignor).parameters) - own


def in_two_steps(**options):
    assignor = StreamsAssignor(TOPOLOGY)
    options["auto_offset_reset"] = "earliest"
    consumer = KafkaConsumer("lines", **options, partition_assignment_strategy=[assignor])
    assignor.attach(consumer)
    return consumer, assignor


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("steps", [1, 2])
def test_a_second_polling_thread_and_a_forked_process_are_refused(made, broker, steps):
    with ExitStack() as resources:
        if steps == 1:
            consumer = made()
        else:
            servers = broker.bootstrap_servers
            consumer, assignor = in_two_steps(bootstrap_servers=servers, group_id="steps")
            resources.callback(assignor.close)
            resources.callback(consumer.close)
        check_guards(broker, consumer)


def check_guards(broker, consumer):
    receive, send = os.pipe()
    broker.inject(Fault(api="JoinGroup", delay_ms=600_000))
    with ThreadPoolExecutor(1) as other:
        polled_there = other.submit(consumer.poll, timeout_ms=LIMIT_S * 1000)
        until(lambda: consumer._polling.is_busy)
        with pytest.raises(RuntimeError, match="another thread polls this consumer"):
            consumer.poll(timeout_ms=10)
        broker.clear_faults()
        assert polled_there.result(LIMIT_S)
        consumer.poll(timeout_ms=10)  # one after the other may
    child = os.fork()
    if child == 0:
        refusals = 0
        for call in (consumer.poll, consumer.commit):
            try:
                call()
            except RuntimeError as error:
                refusals += "before this process was forked" in str(error)
        consumer.close()
        os.write(send, bytes([refusals]))
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as refused:
        assert refused.read() == bytes([2])
    os.waitpid(child, 0)
