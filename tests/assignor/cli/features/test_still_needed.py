"""`assignor features still-needed` on real brokers' answers and real members' subscriptions."""

import json

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.cli import main
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.embedding.clusters import until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def broker(clock):
    with running_broker(BrokerConfig(nodes=2, topics={"in": 2}, metadata_version=14)) as running:
        yield running


def still_needed(broker, *options):
    where = ("--bootstrap-server", broker.bootstrap_servers[0], "--timeout", "120")
    found = CliRunner().invoke(main, ["features", "still-needed", *where, *options])
    return found.exit_code, found.stdout, found.stderr


@pytest.mark.kip("584-15", "loop")
def test_every_broker_is_asked_and_each_that_needs_old_levels_is_named(broker):
    broker.call(lambda inner: inner.cluster.features.set_release(2, "3.6"))
    status, out, _ = still_needed(broker, "--metadata", "3.7")
    assert status == 1
    assert "broker 2 at 127.0.0.1" in out
    assert "supports metadata.version 1..14, which is below 19" in out
    assert "broker 1 at" not in out
    assert "the cluster of 2 brokers has metadata.version finalized at 14 (3.6-IV2)" in out
    status, out, _ = still_needed(broker, "--metadata", "3.6", "--format", "json")
    assert (status, json.loads(out)["features"]["metadata.version"]["needed_by"]) == (0, [])


@pytest.mark.kip("584-15", "loop")
def test_every_member_of_a_group_is_read_and_the_old_one_is_named(broker):
    def member(name, release):
        topology = Topology().add_source("in", topics=["in"]).add_processor("p", parents=["in"])
        assignor = StreamsAssignor(
            topology, application_id="g", release=release, internal_topics=None
        )
        consumer = KafkaConsumer(
            "in",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            client_id=name,
            partition_assignment_strategy=[assignor],
            session_timeout_ms=60_000,
            heartbeat_interval_ms=100,
        )
        assignor.attach(consumer)
        return assignor, consumer

    group = [member("old-one", "3.1"), member("new-one", "native")]
    try:
        asked = ("--group", "g", "--feature", "assignment.protocol=11")

        def is_given():
            for _, consumer in group:
                consumer.poll(timeout_ms=100)
            # The command waits for the end of a rebalance, which ends by these polls only.
            if str(broker.groups()["g"].state) != "Stable":
                return False
            _, out, _ = still_needed(broker, *asked, "--format", "json")
            return "does not report" not in out and "2 members" in out

        until(is_given)
        status, out, _ = still_needed(broker, *asked)
        assert status == 1
        assert "member old-one supports assignment.protocol 1..10, which is below 11" in out
        assert "new-one supports" not in out
        status, out, _ = still_needed(broker, "--group", "g", "--feature", "assignment.protocol=9")
        assert (status, "are not needed" in out) == (0, True)
    finally:
        for assignor, consumer in group:
            consumer.close(autocommit=False)
            assignor.close()


@pytest.mark.usefixtures("clock")
def test_without_an_answer_nothing_is_printed():
    where = ("--bootstrap-server", "127.0.0.1:1", "--metadata", "3.9")
    found = CliRunner().invoke(main, ["features", "still-needed", *where])
    assert (found.exit_code, found.stdout) == (3, "")
