"""A real broker: it keeps its data, ends with its parent, and live bounces run on it."""

import os
import signal
import subprocess
import sys

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from system_tests.errors import EnvironmentFailureError
from system_tests.real import RealBroker, broker_release
from system_tests.scenarios.conftest import children_of, gone

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

_OWNER = """
import sys
from system_tests.real import RealBroker, broker_release
broker = RealBroker(broker_release("kafka:3.9"))
broker.start()
print(broker.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "kafka:3.9", marks=pytest.mark.nightly("20 s; every run has the newest broker")
        ),
        "kafka:4",
    ],
)
def test_topics_outlive_a_stop_and_a_kill(name):
    broker = RealBroker(broker_release(name))
    try:
        broker.start()
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics([NewTopic("kept", 3, 1)])
        admin.close()
        for end in (broker.stop, broker.kill):
            end()
            assert not broker.is_running
            broker.start()
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
            assert "kept" in admin.list_topics()
            admin.close()
    finally:
        broker.close()


def test_no_broker_outlives_a_parent_that_was_killed():
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        pid = int(owner.stdout.readline())
        owner.kill()
        owner.wait()
        assert gone([pid])


@pytest.mark.usefixtures("alone")
def test_the_command_serves_until_a_signal_and_leaves_nothing_behind(tmp_path):
    command = "-m system_tests.broker --kafka 4 --port 0 --topic kept:3 --user ann:secret"
    with subprocess.Popen(
        [sys.executable, *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        line = process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), process.stderr.read()
        guards = children_of(process.pid)
        brokers = [pid for guard in guards for pid in children_of(guard)]
        admin = KafkaAdminClient(bootstrap_servers=line.split()[-1])
        assert "kept" in admin.list_topics()
        admin.close()
        secured = process.stdout.readline().split()
        assert secured[-1] == "security.protocol=SASL_PLAINTEXT"
        login = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "secret",
        }
        admin = KafkaAdminClient(bootstrap_servers=secured[2], **login)
        assert "kept" in admin.list_topics()
        admin.close()
        assert any(tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
        assert process.stderr.read() == ""
    assert len(brokers) == 1
    assert gone(guards + brokers)
    assert not any(tmp_path.iterdir())


def test_a_port_in_use_is_an_environment_failure(kafka_3_9):
    broker = RealBroker(kafka_3_9.release, port=kafka_3_9.port)
    try:
        with pytest.raises(EnvironmentFailureError, match="Address already in use"):
            broker.start()
    finally:
        broker.close()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "kafka:3.9", marks=pytest.mark.nightly("20 s; every run has the newest broker")
        ),
        "kafka:4",
    ],
)
def test_a_rolling_bounce_on_a_real_broker_is_good(bounce, name):
    run = bounce(f"--broker {name} --from 2.8 --to native --members 4 --rate 500")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("records")["missing"] == 0
    assert run.numbers("owners")["double"] == []


@pytest.mark.parametrize(
    "order",
    [
        "leader-first",
        pytest.param(
            "leader-last",
            marks=pytest.mark.nightly("15 s; every run has the leader first"),
        ),
    ],
)
def test_a_bounce_of_native_members_costs_no_rebalance_for_the_version_on_a_real_broker(
    bounce, kafka_3_9, order
):
    run = bounce(
        f"--bootstrap-server {kafka_3_9.bootstrap_servers} --from native --to next --members 5"
        f" --order {order}"
    )
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("rebalances")["version"] == 0
    assert set(run.numbers("versions")["used"].values()) == {102}


@pytest.mark.nightly("20 s; every run has cooperative members of one client on a real broker")
def test_cooperative_and_eager_members_on_both_clients_are_upgraded_on_a_real_broker(
    bounce, kafka_3_9
):
    run = bounce(
        f"--bootstrap-server {kafka_3_9.bootstrap_servers} --from 2.8 --to native --members 4"
        " --client mixed --protocol cooperative"
    )
    assert (run.status, run.failed()) == (0, [])
    assert set(run.numbers("versions")["used"].values()) == {101}


def test_an_upgrade_of_static_members_costs_no_rebalance_on_a_real_broker(bounce, kafka_4):
    run = bounce(
        f"--bootstrap-server {kafka_4.bootstrap_servers} --from native --to next --members 4"
        " --client mixed --static"
    )
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("rebalances")["total"] == 0
