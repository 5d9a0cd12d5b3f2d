"""Listeners that raise, seek or commit, and more members than tasks, as in public reports."""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import aiokafka as aiokafka_client
import kafka
import pytest

from assignor import TasksListener
from assignor.adapters import aiokafka, confluent, kafka_python
from assignor.embedding import ListenerFailed
from tests.assignor.adapters.reports.logs import (
    GROUP,
    LIMIT_S,
    LOOPS,
    SESSION,
    TOPOLOGY,
    Seen,
    committed,
    filled,
    until,
    write,
)

pytestmark = pytest.mark.usefixtures("clock")


class Failing(TasksListener):
    """Cannot open what the tasks need."""

    def on_tasks_assigned(self, active, standby):
        if active:
            raise ConnectionError("the database is down")


def poll_confluent(broker, seen, listener):
    config = {"bootstrap.servers": ",".join(broker.bootstrap_servers), "group.id": GROUP}
    config |= {"auto.offset.reset": "earliest", "session.timeout.ms": 60_000}
    with confluent.Consumer(config, topology=TOPOLOGY, listener=listener) as consumer:
        consumer.subscribe(["in"])
        while not seen.is_enough:
            message = consumer.poll(0.2)
            if message is not None:
                seen.records.append((message.partition(), message.offset()))


@pytest.mark.parametrize("client", sorted(LOOPS))
def test_kafka_python_917_a_listener_that_raises_ends_the_loop_before_a_record_comes(client):
    poll, seen = {**LOOPS, "confluent": poll_confluent}[client], Seen(until=1)
    with filled(5, 2) as broker:
        with pytest.raises(ListenerFailed, match="in on_tasks_assigned") as raised:
            poll(broker, seen, listener=Failing())
        assert isinstance(raised.value.__cause__, ConnectionError)
        assert not seen.records
        assert not committed(broker)


def read_kafka_python(broker, seen, listener, *, fails=False):
    servers = broker.bootstrap_servers
    with kafka_python.streams_consumer(
        TOPOLOGY, group_id=GROUP, bootstrap_servers=servers, listener=listener, **SESSION
    ) as listener.consumer:
        if fails:
            with pytest.raises(ListenerFailed):
                list(kafka_python.polled(listener.consumer, timeout_ms=200))
        for batch in kafka_python.polled(listener.consumer, timeout_ms=200):
            seen.take(batch)
            if seen.is_enough:
                return


def read_aiokafka(broker, seen, listener, *, fails=False):
    async def run():
        servers = broker.bootstrap_servers
        async with aiokafka.streams_consumer(
            TOPOLOGY, group_id=GROUP, bootstrap_servers=servers, listener=listener, **SESSION
        ) as listener.consumer:
            if fails:
                with pytest.raises(ListenerFailed):
                    [batch async for batch in aiokafka.polled(listener.consumer, timeout_ms=200)]
            async for batch in aiokafka.polled(listener.consumer, timeout_ms=200):
                seen.take(batch)
                if seen.is_enough:
                    return

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))


READS = {kafka: read_kafka_python, aiokafka_client: read_aiokafka}
clients = pytest.mark.parametrize("client", READS, ids=lambda client: client.__name__)


@clients
def test_a_loop_after_the_error_of_a_listener_begins_with_the_first_record(client):
    seen = Seen(until=10)
    with filled(5, 2) as broker:
        READS[client](broker, seen, Failing(), fails=True)
    assert sorted(seen.records) == [(p, offset) for p in (0, 1) for offset in range(5)]


class Again(Seen):
    """Enough once a record came twice, or the test is over."""

    def __init__(self, is_over):
        super().__init__()
        self.is_over = is_over

    @property
    def is_enough(self):
        return len(self.records) > len(set(self.records)) or self.is_over.is_set()


@clients
@pytest.mark.parametrize("begin", [0, 2])
def test_what_a_listener_drops_when_tasks_are_revoked_comes_again_in_an_eager_group(client, begin):
    """kafka-python 3 keeps the positions; as other clients, a loop begins at the commits."""
    is_over = threading.Event()
    first, second = Again(is_over), Again(is_over)
    read = 2 * (5 - begin)
    with filled(5, 2) as broker, ThreadPoolExecutor(2) as threads:
        if begin:
            partitions = [kafka.TopicPartition("in", number) for number in (0, 1)]
            config = {"group_id": GROUP, "bootstrap_servers": broker.bootstrap_servers}
            with contextlib.closing(kafka.KafkaConsumer(**config)) as former:
                former.assign(partitions)
                former.commit(dict.fromkeys(partitions, kafka.OffsetAndMetadata(begin, "", -1)))
        with contextlib.ExitStack() as stack:
            stack.callback(is_over.set)
            threads.submit(READS[client], broker, first, TasksListener())
            until(lambda: len(first.records) == read)
            threads.submit(READS[client], broker, second, TasksListener())
            until(lambda: len(first.records) > read)
        assert first.records[read][1] == begin


class Commits(TasksListener, kafka.ConsumerRebalanceListener):
    """Commits when partitions are revoked, as a listener of the tasks or of the client."""

    consumer = None

    def on_tasks_revoked(self, active, standby):
        kafka_python.commit_next(self.consumer)

    def on_partitions_assigned(self, assigned):
        pass

    def on_partitions_revoked(self, revoked):
        kafka_python.commit_next(self.consumer)


@pytest.mark.parametrize("is_clients", [True, False])
def test_faust_111_a_commit_in_a_listener_of_kafka_python_does_not_wait_for_itself(is_clients):
    """The client calls it at the first join; that of the tasks at the second one."""
    listener = Commits()
    with (
        filled(5, 2) as broker,
        kafka_python.streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            listener=None if is_clients else listener,
            **SESSION,
        ) as consumer,
    ):
        listener.consumer = consumer
        if is_clients:
            consumer.subscribe(["in"], listener=listener)

        def run():
            for batch in kafka_python.polled(consumer, timeout_ms=200):
                if batch:
                    consumer._coordinator.request_rejoin()

        with pytest.raises(ListenerFailed, match="commit each batch before the next poll"):
            run()
        consumer.subscribe(["in"])


class AioCommits(aiokafka_client.ConsumerRebalanceListener):
    def __init__(self, consumer):
        self.consumer, self.committed = consumer, []

    async def on_partitions_revoked(self, revoked):
        self.committed.append(await aiokafka.commit_next(self.consumer))

    async def on_partitions_assigned(self, assigned):
        pass


def test_aiokafka_335_a_commit_in_a_listener_of_aiokafka_counts():
    seen = Seen(until=10)

    async def run():
        async with aiokafka.streams_consumer(
            TOPOLOGY, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
        ) as consumer:
            listener = AioCommits(consumer)
            consumer.subscribe(["in"], listener=listener)
            async for batch in aiokafka.polled(consumer, timeout_ms=200):
                seen.take(batch)
                if len(listener.committed) == 2:  # of the first join, which had nothing, and this
                    return
                if batch and seen.is_enough:
                    consumer._coordinator.request_rejoin()

    with filled(5, 2) as broker:
        asyncio.run(asyncio.wait_for(run(), LIMIT_S))
        assert committed(broker) == {0: 5, 1: 5}


class Seeks(TasksListener):
    """Begins at offset 3 of each partition."""

    def __init__(self, partition):
        self.partition, self.consumer = partition, None

    def on_tasks_assigned(self, active, standby):
        for partitions in active.values():
            for each in partitions:
                self.consumer.seek(self.partition(*each), 3)


@clients
def test_kafka_python_2310_a_seek_in_a_listener_skips_nothing_behind_it(client):
    seen = Seen(until=34)
    with filled(20, 2) as broker:
        READS[client](broker, seen, Seeks(client.TopicPartition))
    assert sorted(seen.records) == [(p, offset) for p in (0, 1) for offset in range(3, 20)]


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_faust_134_more_members_than_partitions_settle_and_each_takes_over(client):
    seen = [Seen(until=5) for _ in range(3)]
    with filled(5) as broker:
        threads = [
            threading.Thread(target=LOOPS[client], args=(broker, each), daemon=True)
            for each in seen
        ]
        for thread in threads:
            thread.start()
        # Each commits, and leaves with its last record; nobody reads what is committed.
        for number in range(1, 4):
            until(lambda n=number: sum(len(each.records) >= 5 for each in seen) >= n)
            until(lambda n=number: len(broker.groups()[GROUP].members) <= 3 - n)
            write(broker, range(5))
        for thread in threads:
            thread.join(LIMIT_S)
        assert sorted(offset for each in seen for _, offset in each.records) == list(range(15))
        assert committed(broker) == {0: 15}
