"""`streams_consumer` of aiokafka: a consumer that is ready to start."""

import asyncio
import inspect

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import ConsumerStoppedError

from assignor import ConfigError, Topology
from assignor.adapters.aiokafka import (
    StreamsAssignor,
    StreamsConsumer,
    commit_next,
    polled,
    streams_consumer,
)
from assignor.adapters.aiokafka.settings import ConsumerSettings
from assignor.embedding import ProcessDirectory
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.wrong_options import WRONG_OPTIONS
from tests.assignor.rebalance.groups import TOPOLOGY

LIMIT_S = 120
OWN_PARAMETERS = {"bootstrap_servers", "group_id", "partition_assignment_strategy"}
DEPRECATED = {"loop", "api_version"}
TWO_STEPS = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("split", parents=["lines"])
    .add_sink("words", topic="words", parents=["split"])
    .add_repartition_topic("words")
    .add_source("again", topics=["words"])
)


@pytest.fixture(scope="module")
def servers(clock):
    with running_broker(BrokerConfig(topics={"lines": 3, "more": 3})) as broker:
        yield broker.bootstrap_servers


def made(servers, topology=TOPOLOGY, **options):
    given = {"heartbeat_interval_ms": 100, "group_id": "app"} | options
    return streams_consumer(topology, bootstrap_servers=servers, **given)


def run(work):
    return asyncio.run(asyncio.wait_for(work, LIMIT_S))


def test_it_is_a_consumer_with_its_assignor_that_gets_tasks_and_old_records(servers):
    async def work():
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for partition in range(3):
                await producer.send_and_wait("lines", b"hello", partition=partition)
        seen = []
        async with made(servers) as consumer:
            assert isinstance(consumer, AIOKafkaConsumer)
            assert isinstance(consumer, StreamsConsumer)
            async for batch in polled(consumer, timeout_ms=100):
                seen += [record.value for records in batch.values() for record in records]
                if len(seen) == 3:
                    break
            partitions = consumer.assignment()
            assert {await consumer.committed(each) for each in partitions} == {None}
            assert await commit_next(consumer)
            assert {await consumer.committed(each) for each in partitions} == {1}
            assert len(consumer.assignor.tasks.active) == 3
        assert seen == [b"hello"] * 3

    run(work())


def test_repartition_topics_are_subscribed_to_and_made_by_the_leader(servers):
    async def work():
        async with made(servers, TWO_STEPS, group_id="two") as consumer:
            assert consumer.subscription() == {"lines", "two-words-repartition"}
            while len(consumer.assignor.tasks.active) < 6:
                await consumer.getmany(timeout_ms=100)
            assert consumer.assignor.failures == []

    run(work())


def is_locked(path):
    """Whether another directory object of this process holds the lock; they share one."""
    directory = ProcessDirectory(path)
    count = directory._lock.lock_counter
    directory.close()
    return count > 1


def test_stopping_the_consumer_closes_the_assignor(servers, tmp_path):
    async def work():
        async with made(servers, state_dir=tmp_path) as consumer:
            assert is_locked(tmp_path)
        assert not is_locked(tmp_path)
        with pytest.raises(ConsumerStoppedError):
            consumer.subscribe(["lines"])

    run(work())


def test_a_program_with_two_versions_reads_the_topics_of_both(servers):
    first = Topology().add_source("lines", topics=["lines"]).add_processor("n", parents=["lines"])
    second = Topology(version=2).add_source("lines", topics=["lines"])
    second.add_source("more", topics=["more"]).add_processor("n", parents=["lines", "more"])

    async def work():
        async with made(servers, None, topologies=[first, second], group_id="both") as consumer:
            assert consumer.subscription() == {"lines", "more"}
            async for _ in polled(consumer, timeout_ms=100):
                if len(consumer.assignor.tasks.active) == 3:
                    break
            assert consumer.assignor.topology_versions(0) == (2,)
            assert consumer.assignor.topology_versions(1) == (1,)

    run(work())


def test_what_fails_leaves_no_lock_behind(tmp_path):
    async def work():
        wrong = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "FOO"}
        with pytest.raises(ValueError, match="sasl_mechanism"):
            made("127.0.0.1:1", state_dir=tmp_path, **wrong)
        assert not is_locked(tmp_path)

    run(work())


@pytest.mark.usefixtures("clock")  # `stop` closes the assignor on a thread
def test_given_settings_go_before_its_own_defaults_and_the_rack_is_one():
    async def work():
        given = {"auto_offset_reset": "latest", "client_rack": "a", "internal_topics": None}
        consumer = made("127.0.0.1:1", **given)
        assert consumer._auto_offset_reset == "latest"
        assert not consumer._enable_auto_commit
        assert consumer.assignor._driver.member.identity.rack == "a"
        await consumer.stop()

    run(work())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        *WRONG_OPTIONS,
        ({"partition_assignment_strategy": []}, "aiokafka joins once"),
        (
            {"max_poll_interval_ms": 1},
            "interval_ms=1 is below heartbeat_interval_ms=100; give the l",
        ),
        ({"bootstrap_servers": "PLAINTEXT://a:1"}, "bootstrap_servers='PLAINTEXT://a:1' is"),
        ({"rebalance_protocol": "cooperative"}, "eagerly"),
    ],
)
def test_a_wrong_option_is_refused_before_a_broker_is_asked(options, why):
    with pytest.raises(ConfigError, match=why):
        made(
            **{"servers": "127.0.0.1:1"}
            | {
                "servers" if name == "bootstrap_servers" else name: value
                for name, value in options.items()
            }
        )


def test_typed_settings_are_those_of_the_client():
    names = set(inspect.signature(AIOKafkaConsumer).parameters) - {"topics"}
    assert ConsumerSettings.__annotations__.keys() == names - OWN_PARAMETERS - DEPRECATED


def test_its_signature_names_every_option_of_the_assignor():
    names = list(inspect.signature(streams_consumer).parameters)
    assert names[:3] == ["topology", "group_id", "bootstrap_servers"]
    assert names[3] == "topologies"
    own = {"topology", "application_id", "topologies"}
    assert set(names[4:-1]) == set(inspect.signature(StreamsAssignor).parameters) - own
