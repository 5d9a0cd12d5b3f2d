"""Clients that are dropped without `close`: they warn, leave the group, and end their threads."""

import asyncio
import gc
import os
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

from assignor import JSON, TEXT, SqliteStore, Topology
from assignor.adapters import aiokafka
from assignor.adapters.confluent import Consumer
from assignor.adapters.dropped import release_if_dropped
from assignor.adapters.kafka_python import KafkaChangelogs, StreamsApplication, streams_consumer
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.embedding.clusters import LIMIT_S, until

TOPOLOGY = (
    Topology()
    .add_source("read", topics=["words"])
    .add_processor("count", parents=["read"])
    .add_state_store("counts", processors=["count"])
)
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)


@pytest.fixture(scope="module")
def servers(clock):
    with running_broker(BrokerConfig(topics={"words": 2})) as broker:
        # Loads what each client loads once.
        streams_consumer(
            TOPOLOGY, group_id="first", bootstrap_servers=",".join(broker.bootstrap_servers)
        ).close()
        yield ",".join(broker.bootstrap_servers)


def sockets():
    return sum(name.startswith("socket:") for name in descriptors())


def descriptors():
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield str(each.readlink())


def is_released(before):
    gc.collect()
    return threading.active_count() <= before[0] and sockets() <= before[1]


def used():
    return threading.active_count(), sockets()


def kafka_python(servers, tmp_path):
    consumer = streams_consumer(TOPOLOGY, group_id="a", bootstrap_servers=servers)
    until(lambda: consumer.assignor.tasks.active, lambda: consumer.poll(timeout_ms=100))


def confluent(servers, tmp_path):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "b"}, topology=TOPOLOGY)
    consumer.subscribe(["words"])
    until(lambda: consumer.assignor.tasks.active, lambda: consumer.poll(0.1))


def changelogs(servers, tmp_path):
    KafkaChangelogs(bootstrap_servers=servers)


def application(servers, tmp_path):
    stop = threading.Event()
    app = StreamsApplication(
        TOPOLOGY,
        print,
        stores=[COUNTS],
        group_id="c",
        bootstrap_servers=servers,
        state_dir=tmp_path,
        tell=lambda sentence: stop.set() if "restored" in sentence else None,
    )
    app.run(stop)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("drop", "name"),
    [
        (kafka_python, "StreamsConsumer"),
        (confluent, "Consumer"),
        (changelogs, "KafkaChangelogs"),
        (application, "StreamsApplication"),
    ],
)
def test_what_is_dropped_warns_once_and_ends_its_threads_and_connections(
    servers, tmp_path, drop, name
):
    before = used()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        drop(servers, tmp_path)
        until(lambda: is_released(before))
    ours = [str(each.message) for each in caught if "with` statement" in str(each.message)]
    assert ours == [f"unclosed {name}: call its close, or use it in a `with` statement"]


@pytest.mark.filterwarnings("ignore:Unclosed:ResourceWarning")  # a caught one keeps the consumer
def test_a_dropped_aiokafka_consumer_is_released_on_its_event_loop(servers, caplog):
    async def drop():
        before, tasks = used(), len(asyncio.all_tasks())
        consumer = aiokafka.streams_consumer(TOPOLOGY, group_id="d", bootstrap_servers=servers)
        await consumer.start()
        while not consumer.assignor.tasks.active:
            await consumer.getmany(timeout_ms=100)
        del consumer
        while not is_released(before) or len(asyncio.all_tasks()) > tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(drop(), LIMIT_S))
    assert "Unclosed AIOKafkaConsumer" in caplog.text


class Thing:
    pass


@pytest.mark.usefixtures("clock")
def test_the_collectors_thread_waits_for_nothing():
    may_end, ended = threading.Event(), threading.Event()

    def release(part):
        assert threading.current_thread().name == "dropped"
        assert may_end.wait(LIMIT_S)
        assert part == "part"
        ended.set()

    thing = Thing()
    release_if_dropped(thing, release, "part")
    with pytest.warns(ResourceWarning, match="unclosed Thing"):
        del thing  # would not return if it waited for `release`
    may_end.set()
    assert ended.wait(LIMIT_S)


@pytest.mark.usefixtures("clock")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning", "error::ResourceWarning")
def test_what_is_closed_or_of_a_parent_process_is_not_released():
    released = threading.Event()
    thing = Thing()
    release_if_dropped(thing, released.set).detach()
    del thing
    thing = Thing()
    finalizer = release_if_dropped(thing, released.set)
    child = os.fork()
    if child == 0:
        del thing
        os._exit(int(released.wait(0.2)))
    assert os.waitpid(child, 0)[1] == 0
    finalizer.detach()
    assert not released.is_set()
