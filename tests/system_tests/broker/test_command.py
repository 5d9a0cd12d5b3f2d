"""`python -m system_tests.broker`, and start and stop of the broker."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient

from system_tests.broker import BrokerConfig, running_broker
from system_tests.broker.command import main
from system_tests.coordinator import JoinGroup, Protocol


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "system_tests.broker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_prints_its_address_serves_and_ends_cleanly_after_a_signal(number):
    with start("--port", "0", "--topic", "words:3", "--topic", "one") as process:
        line = process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:")
        admin = KafkaAdminClient(bootstrap_servers=line.split()[-1])
        assert sorted(admin.list_topics()) == ["one", "words"]
        process.send_signal(number)
        assert process.wait(timeout=120) == 0
        assert process.stderr.read() == ""
        admin.close()


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_address_as_json_names_every_node():
    with start("--port", "0", "--nodes", "2", "--format", "json") as process:
        started = json.loads(process.stdout.readline())
        assert len(started["listening"]) == 2
        process.terminate()
        assert process.wait(timeout=120) == 0


@pytest.mark.usefixtures("clock")
def test_port_in_use_is_one_sentence_and_status_3():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(main, ["--port", str(taken.getsockname()[1])])
    assert done.exit_code == 3
    assert done.output.count("\n") == 1
    assert "choose another" in done.output


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("arguments", [("--topic", "t:none"), ("--topic", "no spaces")])
def test_invalid_arguments_are_status_2(arguments):
    done = CliRunner().invoke(main, ["--port", "0", *arguments])
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert arguments[1].partition(":")[0] in done.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--kafka 4 --nodes 2 --verbose", "--kafka has no use for --nodes, --verbose"),
        ("--kafka 2.8", "'kafka:2.8' cannot be started; use 3.3 or newer"),
        ("--kafka 9.9", "9.9"),
    ],
)
def test_what_a_real_broker_cannot_do_is_one_sentence_and_status_2(arguments, sentence):
    done = CliRunner().invoke(main, arguments.split())
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.output.count("\n") == 1


@pytest.mark.usefixtures("clock")
def test_stopping_the_broker_leaves_no_thread_behind():
    before = threading.active_count()
    with running_broker(BrokerConfig(topics={"t": 1})) as broker:
        assert threading.active_count() == before + 1
        host, port = broker.addresses[1].rsplit(":", 1)
        connection = socket.create_connection((host, int(port)))
    assert threading.active_count() == before
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""
    connection.close()


@pytest.mark.usefixtures("clock")
def test_port_in_use_is_an_os_error_and_leaves_no_thread_behind():
    before = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = BrokerConfig(nodes=2, ports=(0, taken.getsockname()[1]))
        with pytest.raises(OSError, match="in use"), running_broker(config):
            pass
    assert threading.active_count() == before


@pytest.mark.usefixtures("clock")
def test_stopped_node_starts_again_on_its_port_or_on_another():
    with running_broker(BrokerConfig(nodes=2, topics={"t": 4})) as broker:
        address = broker.addresses[2]
        broker.stop_node(2)
        assert list(broker.addresses) == [1]
        broker.start_node(2)
        assert broker.addresses[2] == address
        broker.stop_node(2)
        broker.start_node(2, port=0)
        assert broker.addresses[2] != address
        with pytest.raises(ValueError, match="running nodes are"):
            broker.start_node(2)
        with pytest.raises(ValueError, match="does not run"):
            broker.move_coordinator("g", 9)


@pytest.mark.usefixtures("clock")
def test_the_port_of_a_stopped_node_is_not_given_to_another_process():
    def takes(port):
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))

    with running_broker(BrokerConfig(nodes=2)) as broker:
        ports = [int(address.rsplit(":", 1)[1]) for address in broker.addresses.values()]
        broker.stop_node(2)
        broker.replace_nodes()
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            with pytest.raises(OSError, match="in use"):
                takes(port)
    for port in ports:
        takes(port)


@pytest.mark.usefixtures("clock")
def test_bootstrap_listener_outlives_every_node():
    with running_broker(BrokerConfig(bootstrap_listener=True)) as broker:
        bootstrap = broker.bootstrap_servers
        assert bootstrap[0] not in broker.addresses.values()
        broker.stop_node(1)
        broker.start_node(2)
        assert broker.bootstrap_servers == bootstrap
        with socket.create_connection(("127.0.0.1", int(bootstrap[0].rsplit(":", 1)[1]))):
            pass


@pytest.mark.usefixtures("clock")
def test_events_reach_subscribers_with_the_time_of_the_monotonic_clock():
    seen = []
    began_ms = int(time.monotonic() * 1_000)
    with running_broker() as broker:
        broker.subscribe(seen.append)
        broker.call(lambda b: b.cluster.delete_group("nobody"))
        broker.run(_join(broker))
    assert seen
    assert began_ms <= seen[0].at_ms <= time.monotonic() * 1_000
    assert [e.kind.name for e in seen][:2] == ["MEMBER_JOINED", "LEADER_ELECTED"]


async def _join(broker):
    request = JoinGroup(
        group_id="g",
        protocol_type="consumer",
        protocols=(Protocol("range", b""),),
        session_timeout_ms=1_000,
        rebalance_timeout_ms=1_000,
        needs_known_member_id=False,
    )
    return await broker._broker.cluster.ask(request)


@pytest.mark.parametrize(
    "fields",
    [{"nodes": 0}, {"ports": (1, 2)}, {"topics": {"t": 0}}],
)
def test_invalid_settings_are_refused(fields):
    with pytest.raises(ValueError, match=r"give|node"):
        BrokerConfig(**fields)
