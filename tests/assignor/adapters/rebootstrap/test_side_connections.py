"""Connections of a member besides its consumer: levels, facts of the cluster, changelogs."""

import asyncio
import contextlib
import time

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from kafka.errors import KafkaError

from assignor.adapters.admin import BrokerError, GroupLevels
from assignor.adapters.aiokafka.cluster_access import AIOKafkaAccess
from assignor.adapters.kafka_python import ChangelogReader
from assignor.adapters.kafka_python.cluster_access import KafkaAdminAccess, admin_settings
from assignor.adapters.rebootstrap import aiokafka, kafka_python
from assignor.cli import main
from assignor.embedding import ClusterUnavailable, InternalTopic
from encoding import TopicPartition
from probing.features import ASSIGNMENT_PROTOCOL
from probing.rebootstrap import RebootstrapConfigError
from system_tests.broker import Fault
from tests.assignor.adapters.rebootstrap import aiokafka_clients as aio
from tests.assignor.adapters.rebootstrap.clusters import (
    PARTITIONS,
    TOPIC,
    Member,
    until,
)
from tests.costs import Ticks

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
GROUP = "g"
CHANGELOG = f"{GROUP}-counts-changelog"
LEVEL = 101
NAME = "side"
REBOOTSTRAP = {"metadata_recovery_strategy": "rebootstrap"}
SETTINGS = {"client_id": NAME, "metadata_max_age_ms": 500, "reconnect_backoff_max_ms": 300}


def opened(library, broker):
    """`ClusterAccess` of a member, with clients that refresh metadata often."""
    settings = SETTINGS | {"bootstrap_servers": broker.bootstrap_servers}
    if library == "kafka-python":
        return KafkaAdminAccess(admin_settings(settings) | {"client_id": NAME}, group_id=GROUP)
    del settings["reconnect_backoff_max_ms"]  # aiokafka has no such setting
    return AIOKafkaAccess(settings, group_id=GROUP)


def asks_everything(access, round_):
    """Send every request that a member sends; return whether all are answered."""
    topic = InternalTopic(name=f"made-{round_}", partitions=1, configs={}, compacted=False)
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    try:
        return (
            access.partition_counts([TOPIC]) == {TOPIC: PARTITIONS}
            # Settings that could not be read are left out, not raised.
            and access.topic_configs([TOPIC]).get(TOPIC, {}).get("cleanup.policy") == "delete"
            and access.create_topics([topic], replication_factor=-1) == {}
            and len(access.end_offsets(partitions)) == PARTITIONS
            and len(access.committed(partitions)) == PARTITIONS
        )
    except ClusterUnavailable:
        return False


libraries = pytest.mark.parametrize("library", ["kafka-python", "aiokafka"])


@pytest.mark.kip("1102-10", "loop")
@libraries
def test_questions_to_the_cluster_are_answered_again_without_a_new_client(broker, library):
    access = opened(library, broker)
    assert asks_everything(access, 1)
    broker.replace_nodes()
    until(lambda: asks_everything(access, 2), "the same clients answer")
    access.close()


@pytest.mark.kip("1102-10", "loop")
@libraries
def test_a_demand_of_the_server_is_followed_by_side_connections_too(broker, library):
    access = opened(library, broker)
    assert asks_everything(access, 1)
    broker.demand_rebootstrap()
    since_ms = broker.call(lambda inner: inner.cluster.now_ms())

    def begun_again():
        asks_everything(access, 2)
        return [
            request
            for request in broker.requests("Metadata")
            if request.client_id == NAME and request.node_id == 0 and request.at_ms > since_ms
        ]

    until(begun_again, "the bootstrap servers are asked")
    broker.demand_rebootstrap([])
    until(lambda: asks_everything(access, 3), "and the cluster answers")
    access.close()


class Store:
    """A store into which a changelog is restored."""

    def __init__(self):
        self.changelog, self.position = TopicPartition(TOPIC, 0), 0
        self.values = []

    needs_check = False

    def check_range(self, start, end, topic_id, asked_ms):
        assert start <= self.position <= end

    def restore(self, records):
        self.values += [record.value for record in records]
        self.position = records[-1].offset + 1


def followed(reader, store):
    with contextlib.suppress(KafkaError):
        reader.read([store])
    return store.values[-1:]


@pytest.mark.kip("1102-10", "loop")
def test_a_changelog_is_followed_on_unless_the_strategy_is_none(broker):
    settings = {"bootstrap_servers": broker.bootstrap_servers, "reconnect_backoff_max_ms": 300}
    producer = KafkaProducer(**settings)
    supervisor = kafka_python.supervise(producer)
    reader = ChangelogReader(settings)
    other = ChangelogReader(settings | {"metadata_recovery_strategy": "none"})
    store, stale = Store(), Store()
    producer.send(TOPIC, value=b"before", partition=0).get(60)
    until(lambda: followed(reader, store) == [b"before"], "the standby follows")
    until(lambda: followed(other, stale) == [b"before"], "the other one follows")
    broker.replace_nodes()
    producer.send(TOPIC, value=b"after", partition=0).get(60)
    until(lambda: followed(reader, store) == [b"after"], "the standby follows on")
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert followed(other, stale) == [b"before"]
    with pytest.raises(RebootstrapConfigError, match="set one of rebootstrap, none"):
        ChangelogReader(settings | {"metadata_recovery_strategy": "sometimes"})
    for resource in (reader, other, supervisor, producer):
        resource.close()


def test_a_version_that_was_not_tested_has_side_connections_without_a_supervisor(
    broker, monkeypatch
):
    for module in (kafka_python.kafka, aiokafka.aiokafka):
        monkeypatch.setattr(module, "__version__", "9.9.9")
    for library in ("kafka-python", "aiokafka"):
        access = opened(library, broker)
        assert asks_everything(access, library)
        access.close()


class Looks:
    """A member's level source; records the result of each poll."""

    def __init__(self, servers):
        self.source = GroupLevels(",".join(servers), GROUP, timeout_ms=3_000)
        self.failed = 0

    def __call__(self):
        try:
            return self.source()
        except Exception:
            self.failed += 1
            raise


def askers(broker):
    """Libraries whose side connections have sent requests to the running brokers.

    Of any kind: metadata may all come from the bootstrap listener, offsets come from leaders.
    """
    running = broker.addresses
    return {
        request.client_id.partition("-")[0]
        for request in broker.requests()
        if request.client_id.endswith("-admin") and request.node_id in running
    }


def embedding(looks):
    """A member with all side connections."""
    return {"level_source": looks, "level_poll_s": 0.5}


def raise_level(servers):
    """Raise the level with `assignor features`, as an operator does."""
    words = ["features", "upgrade", "--bootstrap-server", ",".join(servers), "--group", GROUP]
    result = CliRunner().invoke(main, [*words, "--feature", f"assignment.protocol={LEVEL}"])
    assert result.exit_code == 0, result.output


def test_a_look_for_levels_that_gets_stuck_ends_in_its_own_time_and_the_next_one_sees(broker):
    servers = broker.bootstrap_servers
    raise_level(servers)
    looks = Looks(servers)
    for node_id in broker.addresses:
        broker.inject(Fault(api="ListOffsets", node_id=node_id, delay_ms=3_600_000, times=10**6))
    with Ticks() as ticks, pytest.raises(BrokerError, match="could not read topic g-feature-lev"):
        looks()
    assert ticks.seconds() < 15  # the client's own time is 30 s
    broker.replace_nodes()
    assert looks().level_of(ASSIGNMENT_PROTOCOL) == LEVEL


async def all_away(broker, looks):
    """Stop every broker until each member has polled without success, then start others."""
    old = list(broker.addresses)
    for node_id in old:
        await asyncio.to_thread(broker.stop_node, node_id)
    before = [look.failed for look in looks]
    await aio.until(
        lambda: all(look.failed > n for look, n in zip(looks, before, strict=True)), "looks fail"
    )
    for node_id in old:
        await asyncio.to_thread(broker.start_node, node_id + len(old), port=0)


@pytest.mark.kip("1102-10", "loop")
@pytest.mark.parametrize("leader", ["kafka-python", "aiokafka"])
def test_every_member_sees_a_level_that_is_raised_after_all_brokers_were_replaced(broker, leader):
    async def play():
        servers = broker.bootstrap_servers
        looks = Looks(servers), Looks(servers)

        async def threaded_member():
            member = await asyncio.to_thread(
                lambda: Member(servers, GROUP, embedding=embedding(looks[0]), **REBOOTSTRAP)
            )
            await aio.until(lambda: member.partitions, "the first member settles")
            return member

        async def looping_member():
            member = await aio.Member.started(
                servers, GROUP, embedding=embedding(looks[1]), **REBOOTSTRAP
            )
            await aio.until(lambda: member.partitions, "the first member settles")
            return member

        if leader == "kafka-python":
            threaded = await threaded_member()
            looping = await looping_member()
        else:
            looping = await looping_member()
            threaded = await threaded_member()
        members = threaded, looping
        await aio.until(lambda: aio.settled(*members), "both have something")
        has_changelog = lambda: CHANGELOG in broker.call(lambda b: b.cluster.catalog.names())  # noqa: E731
        await aio.until(has_changelog, "the leader makes the changelog")

        await all_away(broker, looks)
        await asyncio.to_thread(raise_level, servers)
        await aio.until(
            lambda: all(m.assignor.levels.level_of(ASSIGNMENT_PROTOCOL) == LEVEL for m in members),
            "every member goes by the level",
        )
        await aio.until(
            lambda: askers(broker) == {"aiokafka", "kafka"}, "the new brokers are asked for facts"
        )
        await asyncio.to_thread(threaded.stop)
        await looping.stop()

    asyncio.run(play())
