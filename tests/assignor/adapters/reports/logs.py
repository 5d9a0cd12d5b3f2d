"""An embedded broker with input that may be unreadable, and loops that keep what they get."""

import asyncio
import dataclasses
import struct
import threading
import time
from contextlib import contextmanager, suppress

from aiokafka import TopicPartition
from confluent_kafka import KafkaException
from kafka import KafkaProducer
from kafka.record.util import calc_crc32c

from assignor import JSON, TEXT, ClusterUnavailable, DictStore, TaskStores, Topology
from assignor.adapters import aiokafka, confluent, kafka_python
from system_tests.broker import BrokerConfig, running_broker

LIMIT_S = 120
GROUP = "app"
TOPOLOGY = Topology().add_source("s", topics=["in"])
COUNTING = (
    Topology()
    .add_source("s", topics=["in"])
    .add_processor("p", parents=["s"])
    .add_state_store("counts", processors=["p"])
)
COUNTS = DictStore("counts", key=TEXT, value=JSON)
# A rebalance that no test is about would come with shorter ones.
SESSION = {"session_timeout_ms": 60_000, "heartbeat_interval_ms": 200}
_CODEC, _CHECKSUM, _CHECKED = 22, 17, 21
_SNAPPY = 2


@contextmanager
def filled(records, partitions=1, *, topics=("in",), batch_size=0):
    """A broker whose topics have so many records in each partition, each a batch of its own."""
    with running_broker(BrokerConfig(topics=dict.fromkeys(topics, partitions))) as broker:
        write(broker, range(records), partitions, topics=topics, batch_size=batch_size)
        yield broker


def write(broker, numbers, partitions=1, *, topics=("in",), batch_size=0):
    servers = broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, batch_size=batch_size) as producer:
        for topic in topics:
            for number in numbers:
                for partition in range(partitions):
                    producer.send(topic, b"%d" % number, partition=partition)


def change_batch(broker, number, change, partition=0):
    """Change the bytes of a batch on the broker."""

    def go(embedded):
        batches = embedded.cluster.catalog.log("in", partition)._batches
        data = bytearray(batches[number].data)
        change(data)
        batches[number] = dataclasses.replace(batches[number], data=bytes(data))

    broker.call(go)


def spoil(data):
    """The checksum of the batch is wrong."""
    data[-3] ^= 1


def compress(data):
    """The batch says that it has a codec, and has not: libraries that lack it say so first."""
    data[_CODEC] |= _SNAPPY
    struct.pack_into(">I", data, _CHECKSUM, calc_crc32c(bytes(data[_CHECKED:])))


def committed(broker, topic="in"):
    """Return partition -> committed offset of a topic."""
    found = broker.committed(GROUP).items()
    return {key.partition: at.offset for key, at in found if key.topic == topic}


def until(holds):
    end_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end_s, "the condition never held"
        time.sleep(0.02)


class Seen:
    """Records that a loop delivered.

    Attributes:
        records: (partition, offset), in order; committed: whether each commit succeeded.
    """

    def __init__(self, *, until=None):
        self.records, self.committed, self.until = [], [], until

    def take(self, batch):
        for partition, records in batch.items():
            self.records += [(partition.partition, record.offset) for record in records]

    @property
    def is_enough(self):
        return self.until is not None and len(set(self.records)) >= self.until


def poll_kafka_python(broker, seen, skip=None, **settings):
    """Poll and commit until it is enough, or an error ends the loop."""
    with kafka_python.streams_consumer(
        TOPOLOGY,
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        **SESSION | settings,
    ) as consumer:
        skip_error = None
        while skip_error is None or skip is not None:
            try:
                for batch in kafka_python.polled(consumer, timeout_ms=200):
                    seen.take(batch)
                    seen.committed.append(kafka_python.commit_next(consumer))
                    if seen.is_enough:
                        return
            except Exception as error:
                if skip is None:
                    raise
                skip_error = error
                partition = next(p for p in consumer.assignment() if p.partition == error.partition)
                consumer.seek(partition, error.offset + 1)


def poll_aiokafka(broker, seen, skip=None, **settings):
    """The same with aiokafka."""

    async def run():
        async with aiokafka.streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            **SESSION | settings,
        ) as consumer:
            while True:
                try:
                    async for batch in aiokafka.polled(consumer, timeout_ms=200):
                        seen.take(batch)
                        seen.committed.append(await aiokafka.commit_next(consumer))
                        if seen.is_enough:
                            return
                except Exception as error:
                    if skip is None:
                        raise
                    partition = next(
                        p for p in consumer.assignment() if p.partition == error.partition
                    )
                    consumer.seek(partition, error.offset + 1)

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))


def confluent_config(broker, **settings):
    """Settings of the facade for the group; names of further ones have dots or underscores."""
    return {
        "bootstrap.servers": ",".join(broker.bootstrap_servers),
        "group.id": GROUP,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    } | {name.replace("_", "."): value for name, value in settings.items()}


@contextmanager
def confluent_member(broker, **settings):
    """A consumer of the facade with state stores."""
    checked = {"check.crcs": True}
    config = confluent_config(broker, **SESSION) | checked | settings
    access = kafka_python.KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)
    with (
        TaskStores(COUNTING, [COUNTS], application_id=GROUP, access=access) as stores,
        confluent.Consumer(config, topology=COUNTING, listener=stores) as consumer,
    ):
        # librdkafka waits half a second with partitions whose leader it does not know yet.
        with suppress(KafkaException):
            consumer.list_topics("in", timeout=1)
        yield consumer, stores


def run_confluent(broker, seen, **settings):
    """Process records into state stores with confluent-kafka, until it is enough."""
    stop = threading.Event()

    def handle(message, _):
        seen.records.append((message.partition(), message.offset()))
        if seen.is_enough:
            stop.set()

    with confluent_member(broker, **settings) as (consumer, stores):
        confluent.run_tasks(consumer, stores, handle, timeout=0.2, stop=stop)


async def process_with_aiokafka(consumer, stores, handle, stop):
    """Process records into state stores until `stop` is set."""
    async for batch in aiokafka.polled(consumer, timeout_ms=200):
        try:
            done = await asyncio.to_thread(stores.process, batch, handle)
            await aiokafka.commit_next(consumer, done)
        except ClusterUnavailable:
            pass
        if stop.is_set():
            return
        waiting = {TopicPartition(*each) for each in stores.waiting}
        consumer.pause(*waiting & consumer.assignment())
        consumer.resume(*(consumer.paused() - waiting))


LOOPS = {
    "kafka_python": poll_kafka_python,
    "aiokafka": poll_aiokafka,
    "confluent": run_confluent,
}
