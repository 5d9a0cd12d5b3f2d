"""`StreamsApplication` of each client: the same program, the same state, the same ends."""

import inspect
import json
import pydoc
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from http.client import HTTPConnection

import pytest
from kafka import KafkaConsumer, KafkaProducer
from prometheus_client import CollectorRegistry

from assignor import ConfigError, DeadLetter, MemberStopped, TopologyError
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.applications import word_count
from tests.assignor.adapters.applications.word_count import (
    CLIENTS,
    COUNTS,
    LIMIT_S,
    TOPOLOGY,
    count,
    counted,
    made,
    running,
    until,
)

PARTITIONS = 2
WORDS = ("to", "be", "or", "not")
# Longer than a test: what is taken over before has been given up.
NEVER_MS = 300_000

pytestmark = pytest.mark.parametrize("client", CLIENTS)


@pytest.fixture
def servers(clock):
    config = BrokerConfig(topics={"words": PARTITIONS, "bad": 1})
    with running_broker(config) as running_one:
        yield running_one.bootstrap_servers


def write(servers, words, value=b"1"):
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for each in words:
            producer.send("words", key=each.encode(), value=value)


def get(endpoint, path):
    connection = HTTPConnection(endpoint, timeout=LIMIT_S)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def free_endpoint():
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_its_signature_and_help_have_every_option_but_the_listener(client):
    kind = CLIENTS[client]
    named = list(inspect.signature(kind).parameters)
    own = ["topology", "handle", "group_id", "bootstrap_servers", "stores", "tell", "on_bad_record"]
    assert named[: len(own)] == own
    assert named == list(inspect.signature(CLIENTS["kafka-python"]).parameters)
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    assert "num_standby_replicas: " in text
    assert "on_bad_record: what becomes of a record" in text
    assert "listener: " not in text


async def delayed(record, state):
    """Would never run."""


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"stores": []}, TopologyError, "stores that were not given: counts; give all, such as st"),
        ({"enable_auto_commit": True}, ConfigError, "set enable_auto_commit=False"),
        ({"stores": ["counts"]}, TypeError, "of type str, no state store"),
        ({"stores": 5}, TypeError, "stores is 5; give a list of stores"),
        ({"topology": None}, ConfigError, "topology=None is refused; give an assignor.Topology"),
        ({"max_poll_records": 0}, ConfigError, "max_poll_records=0 is refused"),
        ({"bootstrap_servers": "::"}, ConfigError, "bootstrap_servers='::' is refused"),
        ({"handle": None}, ConfigError, "handle=None is refused; give a function of a record"),
        ({"handle": delayed}, ConfigError, "its task, written with def and without yield: its bo"),
        ({"internal_topics": True}, ConfigError, "give an assignor.InternalTopicSettings, or None"),
        ({"topologies": [TOPOLOGY]}, ConfigError, "use streams_consumer for several"),
        ({"listener": None}, ConfigError, "it is the state stores"),
        ({"fallback_assignors": []}, ConfigError, "unknown setting fallback_assignors"),
        ({"group_id": None}, TypeError, "group_id=None"),
        ({"num_standby_replica": 1}, ConfigError, "did you mean num_standby_replicas"),
        ({"auto_offset_reset": "earlyest"}, ConfigError, "give 'earliest', the nearest"),
        ({"session_timeout_ms": 0}, ConfigError, "session_timeout_ms=0 is refused"),
        ({"max_request_size": "1"}, ConfigError, "max_request_size='1' is refused"),
    ],
)
def test_what_cannot_work_is_refused_before_a_broker_is_asked(client, options, error, why):
    with pytest.raises(error, match=why):
        made(client, **options)


def test_it_counts_and_serves_health_metrics_and_queries(client, servers, tmp_path):
    write(servers, WORDS * 5)
    write(servers, ["bad"], value=b"no JSON")
    registry, probes, queries = CollectorRegistry(), free_endpoint(), free_endpoint()
    with running(
        client,
        bootstrap_servers=servers,
        state_dir=tmp_path,
        client_id="one",
        endpoint=queries,
        session_timeout_ms=60_000,
        heartbeat_interval_ms=200,
        max_request_size=1_000_000,
        value_deserializer=json.loads,
        on_bad_record=DeadLetter("bad"),
    ) as member:
        app = member.app
        app.serve_probes(probes, registry=registry)
        app.serve_queries(COUNTS, lambda key, state: b"%d" % state[COUNTS].get(key.decode()))
        until(lambda: app.stores.work.records.total() >= 20 and app.ready())
        until(lambda: counted(app, PARTITIONS) == dict.fromkeys(WORDS, 5))
        assert [get(probes, path)[0] for path in ("/live", "/ready", "/health")] == [200] * 3
        assert json.loads(get(probes, "/health")[1])["running"] == ["0_0", "0_1"]
        assert (
            'streams_application_ready{client_id="one",group="app"} 1.0'
            in get(probes, "/metrics")[1]
        )
        assert [get(queries, f"/{word}") for word in WORDS] == [(200, "5")] * 4
        with KafkaConsumer(
            "bad", bootstrap_servers=servers, auto_offset_reset="earliest"
        ) as consumer:
            letter = next(consumer)
        assert (letter.key, letter.value) == (b"bad", b"no JSON")


def started(client, servers, state_dir, session_ms):
    arguments = client, ",".join(servers), str(state_dir), str(session_ms)
    return subprocess.Popen(
        [sys.executable, "-m", word_count.__name__, *arguments], stdout=subprocess.PIPE, text=True
    )


def test_counts_are_exact_through_kill_9_of_a_member(client, servers, tmp_path):
    write(servers, WORDS * 50)
    killed = started(client, servers, tmp_path / "killed", 6000)
    lines = iter(killed.stdout.readline, "")
    seen = [line for line, _ in zip((x for x in lines if x[0].isdigit()), range(30), strict=False)]
    assert len(seen) == 30
    killed.kill()
    killed.wait(LIMIT_S)
    killed.stdout.close()
    with running(client, bootstrap_servers=servers, state_dir=tmp_path / "next") as member:
        until(lambda: member.app.stores.active and member.app.ready())
        until(lambda: sum(counted(member.app, PARTITIONS).values()) >= 200)
        assert counted(member.app, PARTITIONS) == dict.fromkeys(WORDS, 50)


def test_a_signal_ends_it_and_it_leaves_the_group(client, servers, tmp_path):
    write(servers, WORDS)
    process = started(client, servers, tmp_path / "ended", NEVER_MS)
    lines = iter(process.stdout.readline, "")
    assert any(line.startswith("0 ") for line in lines)
    process.send_signal(signal.SIGTERM)
    assert any(line == "left\n" for line in lines)
    assert process.wait(LIMIT_S) == 0
    process.stdout.close()
    with running(client, bootstrap_servers=servers, state_dir=tmp_path / "next") as member:
        until(lambda: member.app.stores.active and member.app.ready())
        until(lambda: counted(member.app, PARTITIONS) == dict.fromkeys(WORDS, 1))


def test_close_on_another_thread_ends_run_after_its_record(client, servers, tmp_path):
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def slowly(record, state):
        begun.set()
        assert may_end.wait(LIMIT_S)
        count(record, state)
        ended.append(record.offset)

    write(servers, ["to", "to"])
    with running(client, handle=slowly, bootstrap_servers=servers, state_dir=tmp_path) as member:
        assert begun.wait(LIMIT_S)
        thread = threading.Thread(target=member.close)
        thread.start()
        until(member.app._closing.is_set)
        may_end.set()
        thread.join(LIMIT_S)
        assert member.has_ended.wait(LIMIT_S)
        assert ended == [0]
        with pytest.raises(MemberStopped, match="is closed"):
            member.run_again()
