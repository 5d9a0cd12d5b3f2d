"""Partitions that a loop or the application has paused, as in public reports."""

import threading
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import confluent_kafka
import kafka
import pytest

from assignor.adapters import confluent, kafka_python
from assignor.adapters.confluent.processing import ConsumerLoop
from assignor.adapters.kafka_python.polling import consumer_loop
from assignor.adapters.processing import BlockingLoop
from assignor.embedding.loops import PollLoop
from encoding import TopicPartition
from tests.assignor.adapters.reports.logs import (
    GROUP,
    SESSION,
    TOPOLOGY,
    confluent_config,
    filled,
    until,
    write,
)

pytestmark = pytest.mark.usefixtures("clock")
FIRST, SECOND = TopicPartition("in", 0), TopicPartition("in", 1)
PARTITION_OF = {
    "kafka_python": kafka.TopicPartition,
    "confluent": lambda *which: [confluent_kafka.TopicPartition(*which)],
}


class Stores:
    """Keeps what it gets; `waiting` is what the loop is to pause.

    Attributes:
        records: offsets by partition.
        steps: calls of `process` that have ended.
    """

    has_rest = False

    def __init__(self):
        self.records, self.waiting, self.steps = {FIRST: [], SECOND: []}, frozenset(), 0
        self.work = SimpleNamespace()

    def process(self, batch, handle, *, is_over, **_):
        batch.held()
        done = {}
        for partition, records in batch.items():
            for record in records:
                offset = record.offset() if callable(record.offset) else record.offset
                self.records[TopicPartition(*partition)].append(offset)
                done[partition] = offset + 1
                handle(record, SimpleNamespace(task="0_0"))
        self.steps += 1
        return done

    def unread(self):
        return {}

    def has_polled(self, times=3):
        """Wait for so many further polls."""
        end = self.steps + times
        until(lambda: self.steps >= end)


@contextmanager
def member(client, broker):
    """A consumer whose polls return one record each."""
    if client == "kafka_python":
        with kafka_python.streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            max_poll_records=1,
            **SESSION,
        ) as consumer:
            yield consumer
        return
    with confluent.Consumer(confluent_config(broker, **SESSION), topology=TOPOLOGY) as consumer:
        consumer.subscribe(["in"])
        yield consumer


def loop_over(client, consumer, ended):
    if client == "kafka_python":
        return consumer_loop(consumer, consumer.assignor, 100, ended)
    loop = PollLoop(max_poll_interval_ms=300_000)
    return nullcontext(BlockingLoop(ConsumerLoop(consumer, 0.1, 1), loop, ended))


@contextmanager
def running(client, consumer, stores, handle=lambda *_: None):
    """A loop on a thread; yields a function that ends it and returns what it raised, or None."""
    ended, raised = threading.Event(), []

    def run():
        try:
            with loop_over(client, consumer, ended) as loop:
                loop.run(stores, handle)
        except ZeroDivisionError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def end():
        ended.set()
        thread.join()
        return next(iter(raised), None)

    try:
        yield end
    finally:
        end()


@pytest.mark.parametrize("client", sorted(PARTITION_OF))
def test_reactor_kafka_48_what_the_application_has_paused_is_not_resumed_by_the_loop(client):
    stores, partition = Stores(), PARTITION_OF[client]("in", 0)

    def handle(record, _):
        if stores.records[FIRST]:
            consumer.pause(partition)

    with filled(5, 2) as broker, member(client, broker) as consumer:
        with running(client, consumer, stores, handle):
            until(lambda: stores.records[FIRST] and len(stores.records[SECOND]) == 5)
            stores.has_polled()
            assert stores.records[FIRST] == [0]
        # It has not been paused by the loop, whose own pauses end with it.
        with running(client, consumer, stores):
            stores.has_polled()
            assert stores.records[FIRST] == [0]
            consumer.resume(partition)
            until(lambda: stores.records[FIRST] == list(range(5)))


@pytest.mark.parametrize("client", sorted(PARTITION_OF))
def test_confluent_kafka_go_193_and_python_371_a_paused_partition_that_comes_back_is_read(client):
    stores = Stores()
    with (
        filled(5, 2) as broker,
        member(client, broker) as consumer,
        running(client, consumer, stores),
    ):
        until(lambda: [len(offsets) for offsets in stores.records.values()] == [5, 5])
        stores.waiting = frozenset({FIRST, SECOND})
        stores.has_polled()
        with (
            member("kafka_python", broker) as other,
            running("kafka_python", other, Stores()),
        ):
            until(other.assignment)
            [moved] = other.assignment()
            # Its records wait no more: it is another member's.
            stores.waiting -= {TopicPartition(*moved)}
            stores.has_polled()
        stores.waiting = frozenset()
        write(broker, range(5), 2)
        until(lambda: [len(set(o)) for o in stores.records.values()] == [10, 10])


@pytest.mark.parametrize("client", sorted(PARTITION_OF))
def test_kafka_python_3131_and_quix_streams_1124_no_partition_stands_still_after_a_pause(client):
    """It is paused when a part of a fetch was returned, and the other partition is read to its end.

    kafka-python 3.0.12 never returns the other part.
    """
    stores = Stores()

    def pause(record, _):
        if sum(map(len, stores.records.values())) == 1:
            stores.waiting = frozenset(at for at, offsets in stores.records.items() if offsets)

    with (
        filled(5, 2, batch_size=16_384) as broker,
        member(client, broker) as consumer,
        running(client, consumer, stores, pause),
    ):
        until(lambda: sum(len(offsets) == 5 for offsets in stores.records.values()) == 1)
        stores.has_polled()
        assert sorted(map(len, stores.records.values())) == [1, 5]
        stores.waiting = frozenset()
        until(lambda: all(offsets == list(range(5)) for offsets in stores.records.values()))


@pytest.mark.parametrize("client", sorted(PARTITION_OF))
def test_librdkafka_5111_what_a_loop_has_paused_is_read_by_the_next_one(client):
    stores = Stores()

    def fail(record, _):
        stores.waiting = frozenset({FIRST, SECOND})
        if stores.failing:
            raise ZeroDivisionError

    with filled(5, 2) as broker, member(client, broker) as consumer:
        stores.failing = False
        with running(client, consumer, stores, fail) as end:
            until(lambda: any(stores.records.values()))
            stores.has_polled()
            paused = set(stores.waiting)
            stores.failing = True
            stores.waiting = frozenset()
            until(lambda: sum(map(len, stores.records.values())) > 1)
            assert isinstance(end(), ZeroDivisionError)
        assert paused == {FIRST, SECOND}
        stores.waiting = frozenset()
        with running(client, consumer, stores):
            until(lambda: [len(set(o)) for o in stores.records.values()] == [5, 5])
