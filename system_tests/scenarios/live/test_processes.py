"""No process is left behind, whatever ends the experiment; and environment failures."""

import os
import signal
import socket
import sys

import pytest

from system_tests.scenarios.conftest import gone

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="children are looked up in /proc"),
]
_BOUNCE = "--from 3.1 --to native --rate 50 --session-timeout-ms 60000 --timeout 240"


@pytest.mark.nightly("10 s alone on the machine; every run ends one by SIGTERM", but=("SIGTERM",))
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_stops_everything_and_waits_for_no_bounce(started, number):
    process, children = started(_BOUNCE)
    assert len(children) >= 2  # one may be between two lives already
    process.send_signal(number)
    rest = process.stdout.read()
    assert process.wait() == 130
    assert gone(children)
    assert "interrupted" in process.stderr.read()
    assert "no more records" not in rest


def test_members_do_not_outlive_an_orchestrator_that_was_killed(started):
    process, children = started(_BOUNCE)
    assert len(children) >= 2  # one may be between two lives already
    process.kill()
    assert gone(children)


def test_a_port_in_use_is_an_environment_failure(bounce):
    with socket.create_server(("127.0.0.1", 0)) as server:
        run = bounce(f"{_BOUNCE} --port {server.getsockname()[1]}")
    assert run.status == 3
    assert "choose another --port" in run.stderr


def test_a_broker_that_does_not_answer_is_an_environment_failure(bounce):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        run = bounce(f"{_BOUNCE} --bootstrap-server 127.0.0.1:{silent.getsockname()[1]}")
    assert run.status == 3
    assert len(run.stderr.splitlines()) == 1
    assert "correct --bootstrap-server" in run.stderr


def test_a_member_that_fails_ends_the_experiment_and_is_named(started):
    process, children = started(f"{_BOUNCE} --order a,b,c")
    os.kill(children[-1], signal.SIGKILL)  # that of c, which is bounced last
    rest = process.stdout.read()
    assert process.wait() == 1
    assert "died: its process was ended by signal 9" in rest
    assert gone(children)
