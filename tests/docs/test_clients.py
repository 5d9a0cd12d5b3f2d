"""The loops of docs/clients.md and docs/embedding.md, run on an embedded broker."""

import asyncio
import socket
import threading
from contextlib import ExitStack, suppress
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer

from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.confluent.harness import LIMIT_S, committed, fill, servers_of
from tests.assignor.embedding.clusters import until
from tests.docs.pages import ROOT, blocks

pytestmark = pytest.mark.usefixtures("clock")


def test_the_poll_loop_of_the_page_processes_commits_and_ends():
    [block] = [each for each in blocks(ROOT / "docs/clients.md") if "def count_words" in each.body]
    page, stop, processed = {}, threading.Event(), []
    exec(compile(block.body, str(block), "exec"), page)  # noqa: S102 a page of this project
    with running_broker(BrokerConfig(topics={"words": 4})) as broker:
        fill(broker, 8)
        arguments = (servers_of(broker), lambda message: processed.append(message.value()), stop)
        thread = threading.Thread(target=page["count_words"], args=arguments)
        thread.start()
        try:
            until(lambda: len(processed) >= 8)
        finally:
            stop.set()
            thread.join()
        assert committed(broker, group="confluent-words") == dict.fromkeys(range(4), 2)
        assert broker.groups()["confluent-words"].members == ()


def free_ports(number):
    with ExitStack() as taken:
        sockets = [taken.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def with_confluent(page, servers, directory, is_counted, name="run_confluent"):
    stop = threading.Event()
    thread = threading.Thread(target=page[name], args=(servers, directory, stop))
    thread.start()
    try:
        until(is_counted)
    finally:
        stop.set()
        thread.join()


def with_kafka_python(page, servers, directory, is_counted):
    with_confluent(page, servers, directory, is_counted, "run_kafka_python")


def with_aiokafka(page, servers, directory, is_counted):
    async def run():
        stop = asyncio.Event()
        member = asyncio.create_task(page["run_aiokafka"](servers, directory, stop))
        try:
            await asyncio.to_thread(until, is_counted)
        finally:
            stop.set()
            await member

    asyncio.run(run())


@pytest.mark.parametrize("run", [with_confluent, with_aiokafka, with_kafka_python])
def test_the_loops_with_state_stores_count_commit_and_end(run, tmp_path):
    page = {}
    for block in blocks(ROOT / "docs/embedding.md"):
        if block.kind == "python" and not block.why_not:
            exec(compile(block.body, str(block), "exec"), page)  # noqa: S102 a page of this project
    with running_broker(BrokerConfig(topics={"words": 4})) as broker:
        servers = servers_of(broker)
        producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        for number in range(8):
            producer.produce("words", key=b"a%d" % number, partition=number % 4)
        assert producer.flush(LIMIT_S) == 0
        done = dict.fromkeys(range(4), 2)
        run(page, servers, tmp_path, lambda: committed(broker, group="word-count") == done)
        assert broker.groups()["word-count"].members == ()
    assert len(list(tmp_path.rglob("counts.db"))) == 4


def test_the_loop_that_backs_off_calls_again_for_what_it_keeps_and_commits_it():
    page, stop, processed = {}, threading.Event(), []
    for block in blocks(ROOT / "docs/loops.md"):
        exec(compile(block.body, str(block), "exec"), page)  # noqa: S102 a page of this project
    failures = iter([OSError("down"), ConnectionError("down")])

    def process(kept):
        if (failure := next(failures, None)) is not None:
            raise failure
        processed.extend(record.offset for records in kept.values() for record in records)

    with running_broker(BrokerConfig(topics={"words": 4})) as broker:
        fill(broker, 8)
        arguments = (servers_of(broker), process, stop)
        thread = threading.Thread(target=page["run_with_back_off"], args=arguments)
        thread.start()
        try:
            until(lambda: committed(broker, group="words") == dict.fromkeys(range(4), 2))
        finally:
            stop.set()
            thread.join()
    assert sorted(processed) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_loop_that_is_served_answers_probes_queries_and_metrics(tmp_path):
    page, stop = {}, threading.Event()
    [block] = [each for each in blocks(ROOT / "docs/production.md") if "ServedMember" in each.body]
    exec(compile(block.body, str(block), "exec"), page)  # noqa: S102 a page of this project
    endpoint, probes = (f"127.0.0.1:{port}" for port in free_ports(2))

    def get(where, path):
        with suppress(OSError):
            return urlopen(f"http://{where}{path}").read().decode()

    with running_broker(BrokerConfig(topics={"words": 1})) as broker:
        servers = servers_of(broker)
        producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        producer.produce("words", key=b"ada")
        assert producer.flush(LIMIT_S) == 0
        arguments = (servers, tmp_path, endpoint, probes, stop)
        thread = threading.Thread(target=page["run"], args=arguments)
        thread.start()
        try:
            until(lambda: get(probes, "/ready"))
            until(lambda: get(endpoint, "/ada") == "1")
            metrics = get(probes, "/metrics")
        finally:
            stop.set()
            thread.join()
    who = 'client_id="one",group="word-count"'
    assert f'streams_application_records_total{{{who},task="0_0"}} 1.0' in metrics
    assert f"streams_rebalance_membership_lost_total{{{who}}} 0.0" in metrics
