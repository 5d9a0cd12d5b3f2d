"""A seek past a record that cannot be read leaves it out, also within its batch."""

import threading

import pytest
from kafka import KafkaProducer
from kafka.serializer import Deserializer

from assignor import UnreadableRecord
from assignor.adapters.kafka_python import StreamsApplication
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    LOOPS,
    SESSION,
    Seen,
    filled,
    write,
)

pytestmark = pytest.mark.usefixtures("clock")


class Function(Deserializer):
    """A deserializer of both clients."""

    def __init__(self, function):
        self.function = function

    def __call__(self, value):
        return self.function(value)

    def deserialize(self, topic, headers, data):
        return self(data)


def read(value):
    if value in {b"1", b"3"}:
        raise ValueError("not understood")
    return value


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_a_seek_past_a_record_leaves_it_out_also_within_its_batch(client):
    """A broker sends the whole batch again, with what is before the position."""
    seen, later = Seen(until=3), Seen(until=1)
    with filled(0) as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=5000) as producer:
            for number in range(5):
                producer.send("in", b"%d" % number)
            producer.flush()
        assert len(broker.call(lambda each: each.cluster.catalog.log("in", 0)._batches)) == 1
        deserializer = Function(read)
        LOOPS[client](broker, seen, skip=True, value_deserializer=deserializer)
        assert seen.records == [(0, 0), (0, 2), (0, 4)]
        write(broker, [5])
        LOOPS[client](broker, later, value_deserializer=deserializer)
        assert later.records == [(0, 5)]


def test_a_seek_in_an_application_leaves_a_record_out():
    stop, seen = threading.Event(), []

    def handle(record, state):
        seen.append(record.offset)
        if record.offset == 4:
            stop.set()

    with filled(0) as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=5000) as producer:
            for number in range(5):
                producer.send("in", b"%d" % number)
        with StreamsApplication(
            COUNTING,
            handle,
            stores=[COUNTS],
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            value_deserializer=Function(read),
            **SESSION,
        ) as app:
            while not stop.is_set():
                try:
                    app.run(stop)
                except UnreadableRecord as error:
                    [partition] = app.consumer.assignment()
                    app.consumer.seek(partition, error.offset + 1)
        assert seen == [0, 2, 4]
