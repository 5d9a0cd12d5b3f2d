"""Heartbeats, coordinators, partitions and offsets that change, as in public reports."""

import threading
import time

import confluent_kafka
import pytest
from kafka.admin import KafkaAdminClient

from assignor.adapters import confluent, kafka_python
from assignor.embedding import MemberStopped
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    LIMIT_S,
    LOOPS,
    SESSION,
    TOPOLOGY,
    Seen,
    committed,
    confluent_config,
    confluent_member,
    filled,
    until,
    write,
)

pytestmark = pytest.mark.usefixtures("clock")
CLIENTS = sorted(LOOPS)
COUNTERS = ["kafka_python", "confluent"]
METADATA = {
    "kafka_python": {"metadata_max_age_ms": 300},
    "aiokafka": {"metadata_max_age_ms": 300},
    "confluent": {"topic.metadata.refresh.interval.ms": 300, "metadata.max.age.ms": 300},
}


class Looping:
    """A loop over a client on a thread, which ends with `records` different records."""

    def __init__(self, client, broker, records, **settings):
        self.seen, self.errors = Seen(until=records), []
        self._run = lambda: LOOPS[client](broker, self.seen, **settings)
        self.thread = threading.Thread(target=self._go, daemon=True)
        self.thread.start()

    def _go(self):
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 the test looks at it
            self.errors.append(error)

    def has(self, records):
        until(lambda: len(set(self.seen.records)) >= records or self.errors)
        assert not self.errors

    def end(self):
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()
        assert not self.errors
        assert len(self.seen.records) == len(set(self.seen.records)), "a record came twice"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("error", [-1, 16])
def test_kafka_14729_heartbeats_go_on_after_one_that_fails(client, error):
    """With an error that the client does not know, or as the broker is not the coordinator (16)."""
    with filled(5) as broker:
        loop = Looping(client, broker, 10)
        loop.has(5)
        generation, sent = broker.groups()[GROUP].generation, len(broker.requests("Heartbeat"))
        broker.inject(Fault(api="Heartbeat", error=error))
        until(lambda: len(broker.requests("Heartbeat")) >= sent + 4)
        assert broker.groups()[GROUP].generation == generation
        write(broker, range(5))
        loop.end()
        assert committed(broker) == {0: 10}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("does_stop", [True, False])
def test_kafka_python_1310_and_aiokafka_44_another_broker_becomes_the_coordinator(
    client, does_stop
):
    with running_broker(BrokerConfig(nodes=3, topics={"in": 3})) as broker:
        write(broker, range(5), 3)
        loop = Looping(client, broker, 30)
        loop.has(15)
        node = broker.coordinator_of(GROUP)
        if does_stop:
            broker.stop_node(node)
        else:
            broker.move_coordinator(GROUP, node % 3 + 1)
        assert broker.coordinator_of(GROUP) != node
        write(broker, range(5), 3)
        loop.end()
        assert committed(broker) == {0: 10, 1: 10, 2: 10}


def poll_confluent(broker, seen, **settings):
    with confluent.Consumer(confluent_config(broker, **settings), topology=TOPOLOGY) as consumer:
        consumer.subscribe(["in"])
        while not seen.is_enough:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                seen.records.append((message.partition(), message.offset()))
                consumer.commit(message, asynchronous=False)


@pytest.mark.parametrize("client", CLIENTS)
def test_librdkafka_461_and_confluent_kafka_go_713_new_partitions_are_read(client, monkeypatch):
    monkeypatch.setitem(LOOPS, "confluent", poll_confluent)  # a state would have to be reset
    with filled(5, 2) as broker:
        loop = Looping(client, broker, 30, **METADATA[client])
        loop.has(10)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_partitions({"in": 4})
        admin.close()
        write(broker, range(5), 4)
        loop.end()
        assert committed(broker) == {0: 10, 1: 10, 2: 5, 3: 5}


def value_of(field):
    return field() if callable(field) else field


def run_counting(client, broker, handle, stop, **settings):
    """Process records into state stores."""
    if client == "kafka_python":
        servers, given = broker.bootstrap_servers, SESSION | settings
        with kafka_python.StreamsApplication(
            COUNTING, handle, stores=[COUNTS], group_id=GROUP, bootstrap_servers=servers, **given
        ) as application:
            application.run(stop)
        return
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    with confluent_member(broker, **dotted) as (consumer, stores):
        confluent.run_tasks(consumer, stores, handle, timeout=0.2, stop=stop)


class Counts:
    """Counts the records of each partition in its state, until there are enough records."""

    def __init__(self, records):
        self.records, self.stop = records, threading.Event()
        self.counts, self.handled = {}, 0

    def __call__(self, record, state):
        partition, store = value_of(record.partition), state[COUNTS]
        self.counts[partition] = store.get(str(partition), 0) + 1
        store.put(str(partition), self.counts[partition])
        self.handled += 1
        if self.handled >= self.records:
            self.stop.set()


@pytest.mark.parametrize("client", COUNTERS)
def test_librdkafka_1442_and_kafka_python_612_no_record_counts_twice_if_offsets_expire(client):
    with filled(5, 2) as broker:
        run_counting(client, broker, (first := Counts(10)), first.stop)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.delete_groups([GROUP])
        admin.close()
        assert not committed(broker)
        write(broker, range(2), 2)
        run_counting(client, broker, (second := Counts(4)), second.stop)
        assert second.counts == {0: 7, 1: 7}
        assert committed(broker) == {0: 7, 1: 7}


@pytest.mark.parametrize("client", COUNTERS)
def test_librdkafka_2635_of_two_with_one_instance_id_the_older_ends_and_nothing_counts_twice(
    client,
):
    outcomes = []
    settings = {"group_instance_id": "same", "session_timeout_ms": 6000}

    def run(counts):
        try:
            run_counting(client, broker, counts, counts.stop, **settings)
        except MemberStopped as error:
            outcomes.append(str(error))

    with filled(5, 2) as broker:
        older, younger = Counts(100), Counts(10)
        first = threading.Thread(target=run, args=(older,))
        first.start()
        until(lambda: older.handled == 10)
        second = threading.Thread(target=run, args=(younger,))
        second.start()
        first.join(LIMIT_S)
        write(broker, range(5), 2)
        second.join(LIMIT_S)
        assert "another process has joined with this group.instance.id" in outcomes[0]
        assert len(outcomes) == 1
        assert younger.counts == {0: 10, 1: 10}


@pytest.mark.parametrize("client", COUNTERS)
def test_streamiz_331_a_restore_that_takes_longer_than_the_poll_interval_keeps_the_member(
    client, monkeypatch
):
    interval_ms, reads = 2400, []
    with filled(50, batch_size=16_384) as broker:
        run_counting(client, broker, (written := Counts(50)), written.stop)
        write(broker, range(1))
        read = kafka_python.KafkaChangelogs.read

        def slowly(self, replicas, **options):
            reads.append(broker.groups()[GROUP].generation)
            time.sleep(interval_ms / 1000 / 4)
            return len(reads) > 6 and read(self, replicas, **options)

        monkeypatch.setattr(kafka_python.KafkaChangelogs, "read", slowly)
        restored = Counts(1)
        names = ("max_poll_interval_ms", "session_timeout_ms")
        limits = dict.fromkeys(names, interval_ms) | {"heartbeat_interval_ms": 100}
        run_counting(client, broker, restored, restored.stop, **limits)
        assert restored.counts == {0: 51}
        # More than one interval in one generation.
        assert len(reads) > 6
        assert len(set(reads[-6:])) == 1


NULLS = [
    (None, None, []),
    (None, b"v", [("a", b"1"), ("b", None)]),
    (b"k", None, []),
    (b"", b"", []),
]


@pytest.mark.parametrize("client", COUNTERS)
def test_faststream_1459_and_1967_records_without_key_value_or_headers_are_records(client):
    got, stop = [], threading.Event()

    def handle(record, state):
        headers = list(value_of(record.headers) or ())
        got.append((value_of(record.key), value_of(record.value), headers))
        state[COUNTS].put("n", len(got))
        if len(got) == len(NULLS):
            stop.set()

    with running_broker(BrokerConfig(topics={"in": 1})) as broker:
        servers = ",".join(broker.bootstrap_servers)
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 0})
        for key, value, headers in NULLS:
            producer.produce("in", value, key=key, headers=headers)
        assert producer.flush(LIMIT_S) == 0
        run_counting(client, broker, handle, stop)
        assert committed(broker) == {0: len(NULLS)}
    assert got == NULLS


def test_confluent_kafka_python_581_the_end_of_a_partition_is_no_warning(caplog):
    counts = Counts(10)
    with (
        filled(5, 2) as broker,
        confluent_member(broker, **{"enable.partition.eof": True}) as (consumer, stores),
    ):
        for counts.records in (10, 12):
            counts.stop.clear()
            confluent.run_tasks(consumer, stores, counts, timeout=0.2, stop=counts.stop)
            write(broker, range(1), 2)
        assert committed(broker) == {0: 6, 1: 6}
    assert "end of partition" not in caplog.text


@pytest.mark.parametrize("skew_s", [86_400, -86_400])
def test_kafka_4051_members_settle_after_the_wall_clock_was_set(skew_s, monkeypatch):
    """Only time that passes decides who is a member, and how long a member waits."""
    now, skew = time.time, [0]
    monkeypatch.setattr(time, "time", lambda: now() + skew[0])
    settings = {"session_timeout_ms": 6000, "num_standby_replicas": 1}
    with filled(5, 4) as broker:
        first, second = Counts(10**6), Counts(10**6)
        threads = []
        for counts in (first, second):
            arguments = ("kafka_python", broker, counts, counts.stop)
            threads.append(threading.Thread(target=run_counting, args=arguments, kwargs=settings))
            threads[-1].start()
            until(lambda: first.handled >= 20)
            skew[0] += skew_s
        until(lambda: len(broker.groups()[GROUP].members) == 2)
        write(broker, range(5), 4)
        until(lambda: {**first.counts, **second.counts} == dict.fromkeys(range(4), 10))
        for counts, thread in zip((first, second), threads, strict=True):
            counts.stop.set()
            thread.join(LIMIT_S)
        assert committed(broker) == dict.fromkeys(range(4), 10)
