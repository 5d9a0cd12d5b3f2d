"""Loops of all clients on a thread of their own, until the test has seen what it waits for."""

import asyncio
import threading
from contextlib import contextmanager, suppress

from confluent_kafka import KafkaException

from assignor import TaskStores
from assignor.adapters import aiokafka, confluent, kafka_python
from system_tests.broker.transactions import control_batch, transactional_batch
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    SESSION,
    TOPOLOGY,
    Seen,
    confluent_config,
    confluent_member,
)

COMMITTED = "read_committed"


def plain_kafka_python(broker, seen, stop, settings):
    with kafka_python.streams_consumer(
        TOPOLOGY, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION | settings
    ) as consumer:
        for batch in kafka_python.polled(consumer, timeout_ms=100, stop=stop):
            seen.take(batch)
            kafka_python.commit_next(consumer)


def application(broker, seen, stop, settings):
    def handle(record, state):
        state[COUNTS].put(str(record.offset), record.partition)
        seen.records.append((record.partition, record.offset))

    with kafka_python.StreamsApplication(
        COUNTING,
        handle,
        stores=[COUNTS],
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        **SESSION | settings,
    ) as app:
        app.run(stop)


async def _aiokafka(broker, stop, settings, topology, work, *, unread=dict, **options):
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait():
        stop.wait()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait).start()
    async with aiokafka.streams_consumer(
        topology,
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        **SESSION | settings | options,
    ) as consumer:
        async for batch in aiokafka.polled(consumer, timeout_ms=100, stop=ended):
            await aiokafka.commit_next(consumer, await work(batch))
            for partition, offset in unread().items():
                consumer.seek(partition, offset)


def plain_aiokafka(broker, seen, stop, settings):
    async def work(batch):
        seen.take(batch)

    asyncio.run(_aiokafka(broker, stop, settings, TOPOLOGY, work))


def stores_of_aiokafka(broker, seen, stop, settings):
    def handle(record, state):
        state[COUNTS].put(str(record.offset), record.partition)
        seen.records.append((record.partition, record.offset))

    access = kafka_python.KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)
    with TaskStores(COUNTING, [COUNTS], application_id=GROUP, access=access) as stores:

        async def work(batch):
            return await asyncio.to_thread(stores.process, batch, handle)

        options = {"listener": stores, "unread": stores.unread}
        asyncio.run(_aiokafka(broker, stop, settings, COUNTING, work, **options))


def stores_of_confluent(broker, seen, stop, settings):
    def handle(message, state):
        state[COUNTS].put(str(message.offset()), message.partition())
        seen.records.append((message.partition(), message.offset()))

    given = {name.replace("_", "."): value for name, value in settings.items()}
    with confluent_member(broker, **given) as (consumer, stores):
        confluent.run_tasks(consumer, stores, handle, timeout=0.1, stop=stop)


def plain_confluent(broker, seen, stop, settings):
    """A loop of the facade's own methods, with commits of what is returned."""
    config = confluent_config(broker, **settings)
    with confluent.Consumer(config, topology=TOPOLOGY) as consumer:
        consumer.subscribe(["in"])
        while not stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen.records.append((message.partition(), message.offset()))
            with suppress(KafkaException):  # nothing is new
                consumer.commit(asynchronous=False)


PLAIN = {
    "kafka_python": plain_kafka_python,
    "aiokafka": plain_aiokafka,
    "confluent": plain_confluent,
}
STORES = {
    "application": application,
    "aiokafka_stores": stores_of_aiokafka,
    "confluent_stores": stores_of_confluent,
}
ALL = PLAIN | STORES


@contextmanager
def running(client, broker, **settings):
    """Yield what a loop has seen so far; it ends with the block."""
    seen, stop, failures = Seen(), threading.Event(), []

    def run():
        try:
            ALL[client](broker, seen, stop, settings)
        except Exception as error:  # noqa: BLE001 the test raises it
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]


def log_of(embedded, topic="in", partition=0):
    return embedded.cluster.catalog.log(topic, partition)


def transaction(broker, values, *, is_commit, producer_id):
    """Append a transaction and its marker to the input."""

    def go(embedded):
        log = log_of(embedded)
        log.append(transactional_batch(values, producer_id=producer_id))
        log.append(control_batch(producer_id=producer_id, is_commit=is_commit))
        embedded.cluster.announce_append()
        return log.end_offset

    return broker.call(go)


def make_anew(broker, partitions=1, topic="in"):
    """Delete a topic and create it again between two requests."""

    def go(embedded):
        embedded.cluster.delete_topic(topic)
        embedded.cluster.create_topic(topic, partitions)

    broker.call(go)
