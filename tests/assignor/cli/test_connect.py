"""Connecting: options to a target, and every failure as one sentence with its exit status."""

import socket
import threading
import time

import click
import pytest
from click.testing import CliRunner

from assignor.adapters.admin.client import Admin, BrokerError, Target, open_admin
from assignor.cli import main
from assignor.cli.toolkit.connect import target_of
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.adapters.connections import listener, properties, refusing_server, run

CLUSTER_AUTHORIZATION_FAILED = 31


@pytest.mark.usefixtures("clock")
def test_a_command_connects_and_asks():
    with running_broker(BrokerConfig(nodes=2)) as broker:
        done = run("--bootstrap-server", broker.bootstrap_servers[0])
    assert (done.exit_code, done.output) == (0, "broker 1\nbroker 2\n")


def test_servers_and_timeout_may_be_in_the_file(tmp_path):
    given = {"bootstrap.servers": "a:1,b:2", "default.api.timeout.ms": "2500"}
    file = properties(tmp_path, **given)
    assert target_of(None, file, None) == Target(
        servers=("a:1", "b:2"), settings={"security_protocol": "PLAINTEXT"}, timeout_ms=2500
    )
    assert target_of("c:3", file, 1.0).servers == ("c:3",)
    assert target_of("c:3", file, 1.0).timeout_ms == 1000
    assert target_of("c:3", None, None).timeout_ms == 15_000


def test_invalid_options_end_with_status_2(tmp_path):
    file = properties(tmp_path, sasl_mechanisms="PLAIN")
    for words, message in (
        ((), "add --bootstrap-server HOST:PORT"),
        (("--bootstrap-server", "a:b"), "'a:b' is not a server"),
        (("--bootstrap-server", "a:1", "--command-config", file), "did you mean sasl.mechanism?"),
        (("--bootstrap-server", "a:1", "--timeout", "0"), "0"),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert message in done.stderr


@pytest.mark.usefixtures("clock")
def test_where_nobody_listens_every_server_is_named():
    with refusing_server() as first, refusing_server() as second:
        done = run("--bootstrap-server", f"{first},{second}", "--timeout", "60")
    assert done.exit_code == 3
    assert done.stderr == (
        f"nodes: no broker can be reached: {first}: connection refused; "
        f"{second}: connection refused.\n"
    )


@pytest.mark.usefixtures("clock")
def test_one_server_that_answers_is_enough():
    with running_broker() as broker, refusing_server() as refusing:
        done = run("--bootstrap-server", f"{refusing},{broker.bootstrap_servers[0]}")
    assert (done.exit_code, done.output) == (0, "broker 1\n")


def test_a_name_that_does_not_exist_is_reported(monkeypatch):
    def look_up(where, **_):
        raise socket.gaierror(socket.EAI_NONAME, f"{where[0]} is unknown")

    monkeypatch.setattr(socket, "create_connection", look_up)
    done = run("--bootstrap-server", "no-such-host.invalid:9092")
    assert done.exit_code == 3
    why = "no-such-host.invalid is unknown"
    assert f"no broker can be reached: no-such-host.invalid:9092: {why}" in done.stderr


@pytest.mark.usefixtures("clock")
def test_a_server_that_accepts_and_never_answers_times_out():
    with listener(lambda _: None) as server:
        done = run("--bootstrap-server", server, "--timeout", "0.5")
    assert done.exit_code == 3
    assert done.stderr == (
        f"nodes: {server} accepts connections, but no broker answered within 0.5 s; "
        "check that its listener uses security.protocol PLAINTEXT.\n"
    )


@pytest.mark.usefixtures("clock")
def test_what_the_cluster_forbids_ends_with_status_1():
    with running_broker() as broker:
        broker.inject(Fault(api="DescribeCluster", error=CLUSTER_AUTHORIZATION_FAILED))
        done = run("--bootstrap-server", broker.bootstrap_servers[0])
    assert done.exit_code == 1
    assert done.stderr == (
        "nodes: not authorized to describe the cluster (CLUSTER_AUTHORIZATION_FAILED); "
        "ask for the permission.\n"
    )


@pytest.mark.usefixtures("clock")
def test_a_question_without_an_answer_ends_in_time(monkeypatch):
    ask = Admin.ask

    def ask_at_the_end(admin, *question):
        admin._deadline = time.monotonic() + 0.5
        return ask(admin, *question)

    monkeypatch.setattr(Admin, "ask", ask_at_the_end)
    with running_broker() as broker:
        broker.inject(Fault(api="DescribeCluster", times=1000, delay_ms=600_000))
        done = run("--bootstrap-server", broker.bootstrap_servers[0], "--timeout", "60")
    assert done.exit_code == 3
    assert "did not describe the cluster within 60 s; raise --timeout" in done.stderr


@pytest.mark.usefixtures("clock")
def test_a_failed_start_leaves_no_thread_behind():
    before = {thread.name for thread in threading.enumerate()}
    with listener(lambda _: None) as server:
        target = Target(servers=(server,), settings={"client_id": "left-behind"}, timeout_ms=300)
        with pytest.raises(BrokerError, match="no broker answered"), open_admin(target):
            pass
    after = {thread.name for thread in threading.enumerate()} - before
    assert not [name for name in after if "left-behind" in name]


# Command -> what it needs beside a broker.
# It connects only if a copy is kept: tests/assignor/adapters/reports/test_changelogs.py.
WRITE_BACK = ("write-back",)
REQUIRED = {
    ("inspect",): ("--all",),
    ("reset",): ("--group=word-count",),
    ("features", "downgrade-topology"): (
        "--group=word-count",
        "--topology=assignor.examples.topologies:FIRST",
    ),
}


def connecting_commands(group=main, words=()):
    """Yield (words, command) for each command that connects to a broker."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from connecting_commands(command, (*words, name))
        elif any("--bootstrap-server" in param.opts for param in command.params):
            yield (*words, name), command


@pytest.mark.kip("778-18", "core")
def test_all_commands_about_a_cluster_connect():
    found = {words for words, _ in connecting_commands()}
    names = ("describe", "upgrade", "downgrade", "disable", "upgrade-all", "downgrade-all")
    names += ("still-needed", "downgrade-topology")
    assert found == {("inspect",), ("reset",), WRITE_BACK, *(("features", name) for name in names)}


@pytest.mark.kip("778-18", "core")
@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "words",
    [words for words, _ in connecting_commands() if words != WRITE_BACK],
    ids=" ".join,
)
def test_every_command_takes_a_command_config_and_names_keys_that_it_does_not_know(words, tmp_path):
    """A file with an unknown key is rejected; from a valid one the servers are used."""
    rest = REQUIRED.get(words, ())
    config = ("--command-config", str(properties(tmp_path, sasl_mechanisms="PLAIN")))
    done = CliRunner().invoke(main, [*words, *config, *rest])
    assert done.exit_code == 2
    assert "sasl.mechanisms is not supported; did you mean sasl.mechanism?" in done.stderr
    with refusing_server() as server:
        config = ("--command-config", str(properties(tmp_path, **{"bootstrap.servers": server})))
        done = CliRunner().invoke(main, [*words, *config, *rest])
    assert done.exit_code == 3, done.stderr
    assert f"no broker can be reached: {server}: connection refused" in done.stderr
