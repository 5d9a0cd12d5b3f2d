"""Stock kafka-python against the embedded broker."""

import threading
import time
from contextlib import closing, contextmanager

import pytest
from kafka import KafkaAdminClient, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewPartitions, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError

from system_tests.broker import BrokerConfig, Fault, running_broker
from system_tests.coordinator import CoordinatorConfig, EventKind, OffsetKey
from system_tests.support.stock_consumer import StockConsumer

pytestmark = [
    pytest.mark.usefixtures("clock"),
    # kafka-python leaves the sockets of connections that broke to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

IN = [TopicPartition("in", number) for number in range(4)]


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"in": 4}, nodes=2)) as running:
        yield running


def consumer(broker, *topics, **config):
    settings = {
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 60_000,
        "heartbeat_interval_ms": 100,
        "enable_auto_commit": False,
    }
    servers = broker.bootstrap_servers
    return StockConsumer(*(topics or ("in",)), bootstrap_servers=servers, **{**settings, **config})


def produce(broker, values, **config):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config)
    for number, value in enumerate(values):
        producer.send("in", value, partition=number % len(IN))
    producer.flush()
    producer.close()


def poll_until(client, condition, polls=1_200):
    for _ in range(polls):
        if condition():
            return
        client.poll(timeout_ms=100)
    pytest.fail("not in time")


class Member(threading.Thread):
    """A consumer that polls in a thread, so that groups of several can settle."""

    def __init__(self, broker, **config):
        super().__init__(daemon=True)
        self.consumer = consumer(broker, **config)
        self.records = []
        self.error = None
        self._stop_asked = threading.Event()
        self.start()

    def run(self):
        try:
            while not self._stop_asked.is_set():
                for records in self.consumer.poll(timeout_ms=100).values():
                    self.records += records
        except KafkaError as error:
            self.error = error

    @property
    def owned(self):
        return frozenset(self.consumer.assignment())

    def freeze(self):
        """Stop polling without leaving the group."""
        self._stop_asked.set()
        self.join()

    def leave(self):
        self.freeze()
        self.consumer.close()


@contextmanager
def members(broker, count, **config):
    group = [Member(broker, client_id=f"c{number}", **config) for number in range(count)]
    try:
        yield group
    finally:
        for member in group:
            member._stop_asked.set()
        for member in group:
            member.leave()


def wait_until(condition, timeout_s=120):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def share_evenly(group):
    owned = [member.owned for member in group]
    everything = frozenset().union(*owned)
    return everything == frozenset(IN) and sum(map(len, owned)) == len(IN) and all(owned)


@pytest.mark.parametrize("codec", [None, "gzip", "lz4"])
def test_everything_produced_is_consumed_in_order(broker, codec):
    values = [b"%d" % number for number in range(400)]
    produce(broker, values, compression_type=codec)
    assert sum(broker.end_offsets().values()) == 400
    client = consumer(broker)
    got = {tp: [] for tp in IN}
    while sum(map(len, got.values())) < 400:
        for tp, records in client.poll(timeout_ms=100).items():
            got[tp] += records
    client.close()
    for tp, records in got.items():
        assert [r.offset for r in records] == list(range(100))
        assert [r.value for r in records] == values[tp.partition :: 4]


def test_repeated_produce_request_of_an_idempotent_producer_is_stored_once(broker):
    broker.inject(Fault(api="Produce", lose_answer=True))
    produce(broker, [b"a"] * 4, retry_backoff_ms=20)
    assert sum(broker.end_offsets().values()) == 4
    assert len(broker.requests("Produce")) > len({r.node_id for r in broker.requests("Produce")})


def test_consumer_goes_on_where_its_group_has_committed(broker):
    produce(broker, [b"%d" % number for number in range(40)])
    first = consumer(broker)
    while not first.assignment():
        first.poll(timeout_ms=100)
    for tp in IN:
        first.seek(tp, 6)
    first.commit({tp: OffsetAndMetadata(6, "half way", -1) for tp in IN})
    first.close()
    assert broker.committed("g")[OffsetKey("in", 2)][::2] == (6, "half way")
    second = consumer(broker)
    records = []
    while len(records) < 16:
        records += [r for rs in second.poll(timeout_ms=100).values() for r in rs]
    second.close()
    assert sorted({r.offset for r in records}) == [6, 7, 8, 9]


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, CooperativeStickyAssignor])
def test_every_stock_assignor_settles_when_members_come_and_go(broker, assignor):
    with members(broker, 2, partition_assignment_strategy=[assignor]) as group:
        wait_until(lambda: share_evenly(group))
        group.pop().leave()
        wait_until(lambda: group[0].owned == frozenset(IN))


def test_member_that_crashes_is_expired_and_the_other_takes_over(broker):
    with members(broker, 2, session_timeout_ms=2_000) as group:
        wait_until(lambda: share_evenly(group))
        broker.inject(Fault(client_id="c1", drop=True, times=1_000_000))
        wait_until(lambda: group[0].owned == frozenset(IN))
        expired = {e.member_id for e in broker.events if e.kind is EventKind.MEMBER_EXPIRED}
        assert any(member_id.startswith("c1-") for member_id in expired)
        broker.clear_faults()


def test_static_member_that_restarts_keeps_its_generation_and_partitions(broker):
    first = consumer(broker, group_instance_id="i")
    while not first.assignment():
        first.poll(timeout_ms=100)
    wait_until(lambda: broker.groups()["g"].state == "Stable")
    first.poll(timeout_ms=100)
    before = broker.groups()["g"]
    first.close(autocommit=False)
    second = consumer(broker, group_instance_id="i")
    while not second.assignment():
        second.poll(timeout_ms=100)
    after = broker.groups()["g"]
    second.close()
    assert after.generation == before.generation
    assert after.members[0].member_id != before.members[0].member_id
    assert after.members[0].assignment == before.members[0].assignment


def test_second_client_with_the_same_instance_id_fences_the_first(broker):
    with members(broker, 1, group_instance_id="i") as group:
        (first,) = group
        wait_until(lambda: first.owned)
        # A member that joins again is fenced in its JoinGroup request, and sends no heartbeats.
        first.freeze()
        poll_until(first.consumer, lambda: not first.consumer._coordinator.need_rejoin())
        with members(broker, 1, group_instance_id="i") as others:
            wait_until(lambda: others[0].owned == frozenset(IN))
            wait_until(lambda: "heartbeat of" in " ".join(fenced_requests(broker)))
            with pytest.raises(FencedInstanceIdError):
                first.consumer.commit({IN[0]: OffsetAndMetadata(0, "", -1)})
            assert others[0].error is None


def fenced_requests(broker):
    return [e.reason for e in broker.events if e.kind is EventKind.MEMBER_FENCED]


def test_group_survives_the_move_of_its_coordinator(broker):
    with members(broker, 2) as group:
        wait_until(lambda: share_evenly(group))
        generation = broker.groups()["g"].generation
        old = broker.coordinator_of("g")
        broker.move_coordinator("g", 3 - old)
        since = len(broker.requests())
        wait_until(
            lambda: len([r for r in broker.requests("Heartbeat") if r.node_id == 3 - old]) > 3
        )
        assert len(broker.requests()) > since
        assert broker.groups()["g"].generation == generation
        assert share_evenly(group)


def test_group_survives_the_loss_of_a_node(broker):
    produce(broker, [b"before"] * 40)
    with members(broker, 1) as group:
        wait_until(lambda: len(group[0].records) == 40)
        broker.stop_node(broker.coordinator_of("g"))
        produce(broker, [b"after"] * 40)
        wait_until(lambda: len(group[0].records) == 80)


def test_generation_over_the_record_limit_fails_in_the_client_as_on_a_real_broker():
    config = BrokerConfig(
        topics={"in": 4},
        coordinator=CoordinatorConfig(
            initial_rebalance_delay_ms=0, min_session_timeout_ms=100, group_record_limit=300
        ),
    )
    with running_broker(config) as broker:
        client = consumer(broker)
        with closing(client), pytest.raises(KafkaError, match="Unknown"):
            poll_until(client, lambda: False)
        assert EventKind.STORE_FAILED in {e.kind for e in broker.events}


def test_idle_consumer_polls_long_and_is_woken_by_a_record():
    with running_broker(BrokerConfig(topics={"in": 4}, max_fetch_wait_ms=300_000)) as broker:
        client = consumer(broker, fetch_max_wait_ms=300_000, request_timeout_ms=400_000)
        while not client.assignment():
            client.poll(timeout_ms=100)
        client.poll(timeout_ms=300)
        before = len(broker.requests("Fetch"))
        client.poll(timeout_ms=500)
        assert len(broker.requests("Fetch")) - before <= 1
        produce(broker, [b"wake up"])
        # Without the record, the broker would answer only after the wait.
        assert any(client.poll(timeout_ms=120_000).values())
        client.close()


def test_administration_of_topics(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([NewTopic("new", 2, 1)])
    assert sorted(admin.list_topics()) == ["in", "new"]
    with pytest.raises(KafkaError, match="already exists"):
        admin.create_topics([NewTopic("new", 2, 1)])
    with pytest.raises(KafkaError, match="topic name"):
        admin.create_topics([NewTopic("no spaces", 2, 1)])
    admin.create_partitions({"new": NewPartitions(5)})
    assert len(admin.describe_topics(["new"])[0]["partitions"]) == 5
    admin.delete_topics(["new"])
    assert admin.list_topics() == ["in"]
    described = admin.describe_cluster()
    assert [b["broker_id"] for b in described["brokers"]] == [1, 2]
    admin.close()


def test_a_topic_with_a_limit_keeps_new_records_and_reports_its_first_offset(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    with pytest.raises(KafkaError, match="give bytes, or -1"):
        admin.create_topics([NewTopic("wrong", 1, 1, topic_configs={"retention.bytes": "much"})])
    admin.create_topics([NewTopic("short", 1, 1, topic_configs={"retention.bytes": "1000"})])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=0)
    for number in range(100):
        producer.send("short", b"%d" % number, partition=0).get(timeout=120)
    producer.close()
    client = consumer(broker, "short")
    where = TopicPartition("short", 0)
    values = []
    while not values or values[-1] != b"99":
        values += [record.value for record in client.poll(timeout_ms=2_000).get(where, ())]
    (begins,) = client.beginning_offsets([where]).values()
    client.close()
    assert values == [b"%d" % number for number in range(begins, 100)]
    assert 80 < begins < 95


def test_administration_of_groups(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    with members(broker, 1) as group:
        wait_until(lambda: group[0].owned)
        group[0].consumer.commit({IN[0]: OffsetAndMetadata(0, "", -1)})
        assert [(g["group_id"], g["group_state"]) for g in admin.list_groups()] == [("g", "Stable")]
        described = admin.describe_groups(["g"])["g"]
        assert (described["group_state"], len(described["members"])) == ("Stable", 1)
        assert admin.delete_groups(["g"]) == {"g": "NonEmptyGroupError"}
    assert admin.list_group_offsets(["g"])["g"][IN[0]].offset == 0
    assert admin.delete_groups(["g"]) == {"g": "OK"}
    assert admin.list_groups() == []
    admin.close()
