"""A broker that is stopped and keeps its connections: a line when that begins, one when it ends."""

import asyncio
import signal
import threading

import pytest

from assignor import JSON, TEXT, DictStore, Topology
from assignor.adapters import aiokafka
from assignor.adapters.kafka_python import StreamsApplication
from assignor.adapters.silence import SilenceLog
from tests.assignor.adapters.connections import broker_process
from tests.assignor.embedding.clusters import until
from tests.log_records import records_of

TOPOLOGY = (
    Topology()
    .add_source("read", topics=["words"])
    .add_processor("count", parents=["read"])
    .add_state_store("counts", processors=["count"])
)
SHORT = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 200, "request_timeout_ms": 20_000}
LOGGER = "assignor.adapters.silence"


@pytest.fixture
def broker(clock):
    with broker_process("words:2") as process:
        yield process


def kafka_python_member(servers, has_tasks, stop):
    counts = DictStore("counts", key=TEXT, value=JSON)
    with StreamsApplication(
        TOPOLOGY, print, stores=[counts], group_id="a", bootstrap_servers=servers, **SHORT
    ) as app:
        threading.Thread(target=lambda: (until(app.ready), has_tasks.set())).start()
        app.run(stop)


def aiokafka_member(servers, has_tasks, stop):
    async def run():
        async with aiokafka.streams_consumer(
            TOPOLOGY, group_id="a", bootstrap_servers=servers, **SHORT
        ) as consumer:
            while not stop.is_set():
                await consumer.getmany(timeout_ms=100)
                if consumer.assignor.tasks.active:
                    has_tasks.set()

    asyncio.run(run())


@pytest.mark.parametrize("member", [kafka_python_member, aiokafka_member])
def test_a_silent_broker_is_two_lines(broker, caplog, member):
    def lines():
        return [(each.levelname, each.getMessage()) for each in records_of(caplog, LOGGER)]

    caplog.set_level("INFO", LOGGER)
    has_tasks, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=member, args=(broker.servers, has_tasks, stop))
    thread.start()
    try:
        until(has_tasks.is_set)
        broker.send_signal(signal.SIGSTOP)
        until(lines)
        broker.send_signal(signal.SIGCONT)
        until(lambda: len(lines()) > 1)
    finally:
        broker.send_signal(signal.SIGCONT)
        stop.set()
        thread.join()
    (first, begin), (second, end) = lines()
    assert (first, second) == ("WARNING", "INFO")
    assert begin.startswith("no broker has answered the heartbeats of this member for ")
    assert end.startswith("a broker answers the heartbeats of this member again, after ")


def test_each_silence_is_two_lines_however_often_it_is_looked_for(caplog):
    caplog.set_level("INFO", LOGGER)
    silent_s = iter([0.0, 12.0, 14.0, 0.0, 0.0, 11.0])
    log = SilenceLog(lambda: next(silent_s), now=iter([100.0, 105.0, 200.0]).__next__)
    for _ in range(6):
        log.look()
    assert [each.levelname for each in records_of(caplog)] == ["WARNING", "INFO", "WARNING"]
    assert caplog.messages[1].endswith("again, after 17 s")
