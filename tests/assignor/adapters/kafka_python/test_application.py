"""`StreamsApplication`: what it refuses before it connects, and what settings may not break."""

import os
import signal
import threading
from functools import partial

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.serializer import Deserializer

from assignor import (
    JSON,
    TEXT,
    ConfigError,
    DictStore,
    InternalTopicSettings,
    Topology,
    TopologyError,
)
from assignor.adapters.application import signals_as
from assignor.adapters.kafka_python import StreamsApplication, commit_next
from assignor.adapters.kafka_python.port import guard_threads
from system_tests.broker import BrokerConfig, running_broker

LIMIT_S = 120
NOWHERE = "127.0.0.1:1"
TOPOLOGY = (
    Topology()
    .add_source("read", topics=["words"])
    .add_processor("count", parents=["read"])
    .add_state_store("counts", processors=["count"])
)
COUNTS = DictStore("counts", key=TEXT, value=JSON)


def made(topology=TOPOLOGY, handle=print, **options):
    given = {"group_id": "app", "bootstrap_servers": NOWHERE, "stores": [COUNTS]}
    return StreamsApplication(topology, handle, **given | options)


def test_stores_that_nobody_can_give_need_not_be_given():
    topology = Topology().add_source("r", topics=["t"]).add_processor("p", parents=["r"])
    topology.add_state_store("cache", processors=["p"], logged=False)
    topology.add_state_store("table", processors=["p"], source_topic="t")
    topology.add_state_store("other", processors=["p"], changelog_topic="theirs")
    assert topology.logged_stores() == ()
    topology.add_state_store("b", processors=["p"]).add_state_store("a", processors=["p"])
    with pytest.raises(TopologyError, match="not given: a, b; give all"):
        made(topology, stores=[])


@pytest.fixture
def broker(clock):
    with running_broker(BrokerConfig(topics={"words": 1})) as running:
        yield running


def test_deserialisers_are_for_the_input_and_not_for_changelogs(broker):
    class Text(Deserializer):
        def deserialize(self, topic, headers, data):
            return data.decode()

    class Json(Deserializer):
        def deserialize(self, topic, headers, data):
            return JSON.decode(data)

    ended, seen, wanted = threading.Event(), {}, []

    def handle(record, state):
        counts = state[COUNTS]
        counts.put(record.key, counts.get(record.key, 0) + record.value["times"])
        seen[record.key] = counts.get(record.key)
        if seen in wanted:
            ended.set()

    def run(**counts):
        wanted[:] = [counts]
        seen.clear()
        ended.clear()
        with made(
            handle=handle,
            bootstrap_servers=broker.bootstrap_servers,
            key_deserializer=Text(),
            value_deserializer=Json(),
            isolation_level="read_committed",
            max_poll_records=1,
        ) as application:
            application.run(stop=ended)
            return dict(application.stores.local_state(COUNTS, 0)[COUNTS].items())

    def write(*words):
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for word in words:
                producer.send("words", key=word.encode(), value=b'{"times": 2}')

    write("a", "b", "a")
    assert run(a=4, b=2) == {"a": 4, "b": 2}
    write("b")
    # Restored from the changelog.
    assert run(b=4) == {"a": 4, "b": 4}


@pytest.mark.usefixtures("alone")
def test_the_second_signal_ends_an_application_at_once():
    numbers, ends = (signal.SIGTERM, signal.SIGINT), []
    before = {each: signal.signal(each, lambda *_: ends.append(None)) for each in numbers}
    try:
        for number in numbers:
            event = threading.Event()
            with signals_as(event.set):
                signal.raise_signal(number)
                assert event.is_set()
                assert ends == []
                signal.raise_signal(number)
                assert ends.pop() is None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.usefixtures("alone")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_signal_ends_a_process_that_a_handler_has_forked():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        event = threading.Event()
        with signals_as(event.set):
            child = os.fork()
            if child == 0:
                signal.raise_signal(signal.SIGTERM)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.WTERMSIG(status) == signal.SIGTERM
            assert not event.is_set()
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_second_thread_and_a_forked_process_may_not_run_it(broker, tmp_path):
    runs, ended, refused = threading.Event(), threading.Event(), []
    with (
        made(
            handle=lambda *_: (runs.set(), ended.wait(LIMIT_S)),
            bootstrap_servers=broker.bootstrap_servers,
            state_dir=tmp_path,
        ) as application,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
    ):
        producer.send("words", b"x").get(LIMIT_S)
        thread = threading.Thread(target=application.run, args=(ended,))
        thread.start()
        try:
            # Between two polls of the other thread, which the consumer would not notice.
            assert runs.wait(LIMIT_S)
            with pytest.raises(RuntimeError, match="another thread polls this consumer"):
                application.run(ended)
            child = os.fork()
            if child == 0:
                try:
                    application.run(ended)
                except RuntimeError as error:
                    refused.append("before this process was forked" in str(error))
                application.close()
                os._exit(0 if refused == [True] else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert application.assignor.tasks.active
        finally:
            ended.set()
            thread.join()


def test_the_function_that_processes_records_may_not_close(broker):
    with made(bootstrap_servers=broker.bootstrap_servers) as application:
        with application.stores.working():
            for close in (application.close, application.consumer.close):
                with pytest.raises(RuntimeError, match="set the event that stops the loop, or ret"):
                    close()
        assert not application.consumer._closed
        application.stores.process({}, print)


def test_queries_need_an_endpoint_and_copies_are_as_old_as_the_topics_allow(broker):
    lowest = InternalTopicSettings(configs={"delete.retention.ms": "3600000"})
    servers = broker.bootstrap_servers
    with made(bootstrap_servers=servers, internal_topics=lowest) as application:
        with pytest.raises(ConfigError, match="set endpoint='host:port'"):
            application.serve_queries(COUNTS, lambda key, state: key + bytes(state.task))
        assert application.stores._local._rebuild_after_s == 1800


@pytest.mark.parametrize("is_guarded_by_attach", [False, True])
def test_a_function_that_processes_records_may_not_poll_or_commit(broker, is_guarded_by_attach):
    """The batch is not finished: its other records would be committed, or never be returned."""
    stop, refused = threading.Event(), []

    def handle(record, state):
        consumer = application.consumer
        calls = consumer.poll, consumer.commit, partial(commit_next, consumer)
        for call in calls if is_guarded_by_attach else (*calls, consumer.commit_async):
            with pytest.raises(RuntimeError, match="before its batch is finished") as raised:
                call()
            refused.append(str(raised.value).partition(" ")[0])
        stop.set()

    with made(handle=handle, bootstrap_servers=broker.bootstrap_servers) as application:
        if is_guarded_by_attach:  # as a `KafkaConsumer` of the application is
            consumer = application.consumer
            guarded, consumer._polling = consumer._polling, None
            for name in ("poll", "commit", "close"):
                method = getattr(KafkaConsumer, name)
                setattr(consumer, name, method.__get__(consumer))
            guard_threads(consumer, application.stores)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("words", b"one").get(LIMIT_S)
        producer.close()
        application.run(stop)
        if is_guarded_by_attach:
            consumer._polling = guarded
    assert refused == ["poll", "commit", "commit"] + ["commit_async"] * (not is_guarded_by_attach)
