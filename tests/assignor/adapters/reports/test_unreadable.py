"""Records that cannot be read, as in public reports: named, not committed, no endless loop."""

import signal
import threading
from collections import deque
from types import SimpleNamespace

import pytest
from kafka import KafkaProducer
from kafka.serializer import Deserializer

from assignor import UnreadableRecord
from assignor.adapters.kafka_python import (
    KafkaChangelogs,
    StreamsApplication,
    commit_next,
    polled,
    streams_consumer,
)
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    LIMIT_S,
    LOOPS,
    SESSION,
    TOPOLOGY,
    Seen,
    change_batch,
    committed,
    compress,
    filled,
    spoil,
)

pytestmark = pytest.mark.usefixtures("clock")


def where(error):
    return error.topic, error.partition, error.offset


def check_committed(broker, seen):
    """Nothing is committed that was not delivered."""
    for partition, end in committed(broker).items():
        assert {(partition, offset) for offset in range(end)} <= set(seen.records)


class Function(Deserializer):
    """A deserializer of both clients."""

    def __init__(self, function):
        self.function = function

    def __call__(self, value):
        return self.function(value)

    def deserialize(self, topic, headers, data):
        return self(data)


class Registry(Function):
    """A deserializer that asks a schema registry, which cannot be reached for one record."""

    def __init__(self, *failing, error=ConnectionError):
        self.failing, self.error = set(failing), error

    def __call__(self, value):
        if value in self.failing:
            self.failing.discard(value)
            raise self.error("registry: connection refused")
        return value


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_confluent_kafka_python_1334_one_connection_error_in_a_deserializer_loses_nothing(client):
    seen, registry = Seen(until=60), Registry(b"7")
    with filled(20, 3) as broker:
        with pytest.raises(UnreadableRecord) as raised:
            LOOPS[client](broker, seen, value_deserializer=registry)
        assert isinstance(raised.value.__cause__, ConnectionError)
        assert where(raised.value)[::2] == ("in", 7)
        check_committed(broker, seen)
        assert len(set(seen.records)) < 60
        # The next member reads all others.
        LOOPS[client](broker, seen, value_deserializer=registry)
        assert len(set(seen.records)) == 60
        check_committed(broker, seen)


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_kafka_python_545_a_stop_iteration_of_a_deserializer_is_an_error_as_any_other(client):
    seen, registry = Seen(until=20), Registry(b"7", error=StopIteration)
    with filled(20) as broker:
        with pytest.raises(UnreadableRecord) as raised:
            LOOPS[client](broker, seen, value_deserializer=registry)
        assert where(raised.value) == ("in", 0, 7)
        assert seen.records == [(0, offset) for offset in range(7)]
        check_committed(broker, seen)


@pytest.mark.parametrize("client", sorted(LOOPS))
@pytest.mark.parametrize("damage", [spoil, compress])
def test_kafka_python_1033_and_aiokafka_922_one_batch_that_cannot_be_read_ends_the_loop(
    client, damage
):
    seen = Seen()
    with filled(5, 2) as broker:
        change_batch(broker, 2, damage)
        for _ in range(2):
            with pytest.raises(UnreadableRecord) as raised:
                LOOPS[client](broker, seen)
            assert where(raised.value) == ("in", 0, 2)
            assert {offset for partition, offset in seen.records if partition == 0} <= {0, 1}
            check_committed(broker, seen)


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_aiokafka_321_and_kafka_5630_a_batch_can_be_passed_over_by_a_seek(client):
    seen = Seen(until=9)
    with filled(5, 2) as broker:
        change_batch(broker, 2, spoil)
        LOOPS[client](broker, seen, skip=True)
        assert set(seen.records) == {(p, o) for p in (0, 1) for o in range(5)} - {(0, 2)}
        assert committed(broker) == {0: 5, 1: 5}


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_kafka_12906_the_offset_is_that_of_the_record_also_behind_a_compacted_gap(client):
    """The position is at the gap; the record that cannot be read is behind it."""

    def compact(embedded):
        log = embedded.cluster.catalog.log("in", 0)
        del log._batches[3:6]
        del log._last_offsets[3:6]

    seen = Seen(until=7)
    with filled(10) as broker:
        broker.call(compact)
        with pytest.raises(UnreadableRecord) as raised:
            LOOPS[client](broker, seen, value_deserializer=Registry(b"6"))
        assert where(raised.value) == ("in", 0, 6)
        assert seen.records == [(0, 0), (0, 1), (0, 2)]


def application(broker, seen, **settings):
    def handle(record, state):
        counts = state[COUNTS]
        counts.put("n", counts.get("n", 0) + 1)
        seen.records.append((record.partition, record.offset))
        if seen.is_enough:
            seen.stop.set()

    seen.stop = threading.Event()
    return StreamsApplication(
        COUNTING,
        handle,
        stores=[COUNTS],
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        **SESSION | settings,
    )


def test_kafka_python_1141_and_aiokafka_744_a_poison_record_is_named_and_a_second_run_ends():
    seen = Seen(until=10)

    def deserialize(value):
        return None if value is None else int(value)

    with filled(5) as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("in", b"poison", partition=0)
            for number in range(4):
                producer.send("in", b"%d" % number, partition=0)
        with application(broker, seen, value_deserializer=Function(deserialize)) as poisoned:
            for _ in range(3):
                with pytest.raises(UnreadableRecord, match="invalid literal for int") as raised:
                    poisoned.run(seen.stop)
                assert where(raised.value) == ("in", 0, 5)
            assert seen.records == [(0, offset) for offset in range(5)]
            assert committed(broker) == {0: 5}

        def safe(value):
            return deserialize(value) if value.isdigit() else None

        with application(broker, seen, value_deserializer=Function(safe)) as corrected:
            corrected.run(seen.stop)
            assert corrected.stores.local_state(COUNTS, 0)[COUNTS].get("n") == 10
        assert seen.records == [(0, offset) for offset in range(10)]


def test_a_changelog_that_cannot_be_read_ends_the_restoration_with_its_record():
    with filled(5) as broker:
        change_batch(broker, 2, compress)
        store = SimpleNamespace(
            changelog=SimpleNamespace(topic="in", partition=0),
            position=0,
            needs_check=False,
            check_range=lambda *_: None,
        )
        store.restore = lambda records: setattr(store, "position", records[-1].offset + 1)
        changelogs = KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)
        reads, failures = iter(range(LIMIT_S)), []
        while len(failures) < 2:
            next(reads)
            try:
                changelogs.read([store], wait_s=1.0)
            except UnreadableRecord as error:
                failures.append(where(error))
        changelogs.close()
    assert failures == [("in", 0, 2)] * 2
    assert store.position == 2


class Stopped(Exception):
    """What an application's handler of a signal raises."""


def stop_kindly(signum, frame):
    raise Stopped


def stop_once(signum, frame):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    del signum
    raise TimeoutError("the job has ended")


class Application:
    def stop(self, *_):
        raise Stopped


def stop_without_arguments(signum, frame):
    del signum, frame
    raise Stopped


HANDLERS = [stop_kindly, stop_once, Application().stop, stop_without_arguments]


class Terminated(Function):
    """A deserializer in which a signal comes, once, at a value of a partition."""

    def __init__(self, value):
        self.value = value

    def __call__(self, value):
        if value == self.value:
            self.value = None
            signal.raise_signal(signal.SIGTERM)
        return value


@pytest.fixture(params=HANDLERS)
def _handler(request, alone):
    before = signal.signal(signal.SIGTERM, request.param)
    yield
    signal.signal(signal.SIGTERM, before)


def run_application(broker, seen, **settings):
    with application(broker, seen, **settings) as app:
        app.run(seen.stop)


@pytest.mark.usefixtures("_handler")
@pytest.mark.parametrize("loop", [LOOPS["kafka_python"], LOOPS["aiokafka"], run_application])
@pytest.mark.parametrize("value", [b"0", b"7"])
def test_what_a_handler_of_a_signal_raises_while_a_record_is_read_is_no_error_of_it(loop, value):
    seen, terminated = Seen(until=20), Terminated(value)
    with filled(20) as broker:
        with pytest.raises((Stopped, TimeoutError)):
            loop(broker, seen, value_deserializer=terminated)
        assert len(seen.records) < 20
        check_committed(broker, seen)
        loop(broker, seen, value_deserializer=terminated)
        assert seen.records == [(0, offset) for offset in range(20)]
        check_committed(broker, seen)


class Interrupting(Function):
    """A deserializer in which the user presses Ctrl-C, when a value comes for the second time."""

    def __init__(self, value):
        self.value, self.times = value, 0

    def __call__(self, value):
        self.times += value == self.value
        if value == self.value and self.times == 2:
            raise KeyboardInterrupt
        return value


def test_an_interrupt_in_a_poll_costs_no_record_of_other_partitions():
    """kafka-python keeps what it has taken only for errors that are no interrupts."""
    seen = Seen()
    with filled(20, 2) as broker:
        with streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            value_deserializer=Interrupting(b"15"),
            **SESSION,
        ) as consumer:
            with pytest.raises(KeyboardInterrupt):
                deque(map(seen.take, polled(consumer)), maxlen=0)
            assert commit_next(consumer)
        check_committed(broker, seen)
