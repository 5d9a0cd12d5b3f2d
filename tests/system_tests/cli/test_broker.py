"""`rolling-bounce broker`: a broker until a signal; what it refuses."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient

from system_tests.cli.broker import broker


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
        done = CliRunner().invoke(broker, ["--port", str(taken.getsockname()[1])])
    assert done.exit_code == 3
    assert done.output.count("\n") == 1
    assert "choose another" in done.output


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "arguments",
    [("--topic", "t:none"), ("--topic", "no spaces"), ("--user", 'ann:"'), ("--user", "ann")],
)
def test_invalid_arguments_are_status_2(arguments):
    done = CliRunner().invoke(broker, ["--port", "0", *arguments])
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert arguments[1].partition(":")[0] in done.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--kafka 4 --nodes 2 --verbose", "--kafka has no use for --nodes, --verbose"),
        ("--kafka 2.8", "'kafka:2.8' cannot be started; use 3.3 or newer"),
        ("--kafka 9.9", "9.9"),
        ("--user ann:secret", "--user: the embedded broker knows no login and no TLS"),
    ],
)
def test_what_a_real_broker_cannot_do_is_one_sentence_and_status_2(arguments, sentence):
    done = CliRunner().invoke(broker, arguments.split())
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.output.count("\n") == 1
