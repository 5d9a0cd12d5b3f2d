"""A member on kafka-python goes on when no broker answers, and ends when nothing can help."""

import threading
from unittest.mock import Mock

import pytest
from kafka.errors import FencedInstanceIdError, KafkaConnectionError, KafkaError

from system_tests.live import events
from system_tests.live.members import kafka_python as member
from system_tests.live.members.config import MemberConfig

CONFIG = MemberConfig(
    name="a",
    bootstrap_servers="",
    group_id="g",
    topic="words",
    release="native",
    upgrade_from=None,
    rebalance_protocol="eager",
    process_id="00000000-0000-4000-8000-000000000000",
    supervised=False,
    hold_back=False,
    group_instance_id=None,
    session_timeout_ms=6000,
    heartbeat_interval_ms=300,
)


@pytest.fixture
def life(monkeypatch):
    """Live with polls that raise these errors, one after the other, until it is told to stop."""

    def live(*errors, failed=None):
        told, stopping, left = [], threading.Event(), list(errors)

        def poll(timeout_ms):
            if left:
                raise left.pop(0)
            stopping.set()
            return {}

        consumer = Mock()
        consumer.poll = poll
        assignor = Mock(failed=failed)
        assignor.name = "stream"
        monkeypatch.setattr(member, "Reporter", Mock(return_value=told.append))
        monkeypatch.setattr(member, "KafkaConsumer", Mock(return_value=consumer))
        monkeypatch.setattr(member, "build_assignor", Mock(return_value=assignor))
        monkeypatch.setattr(member, "_LEADER_RETRY_S", 0.0)
        return told, lambda: member.run(CONFIG, stopping=stopping)

    return live


def test_a_broker_that_does_not_answer_is_asked_again(life):
    told, run = life(KafkaConnectionError("111 ECONNREFUSED"), KafkaError("odd"))
    assert run() == 0
    assert isinstance(told[-1], events.MemberStopped)


def test_an_error_that_cannot_pass_ends_the_member_and_says_why(life):
    told, run = life(FencedInstanceIdError())
    with pytest.raises(FencedInstanceIdError):
        run()
    assert [type(one) for one in told].count(events.MemberFailed) == 1


def test_a_failed_assignor_ends_the_member_whatever_the_client_says(life):
    told, run = life(failed="the leader refused")
    assert run() == member.EXIT_FAILED
    assert not [one for one in told if isinstance(one, events.MemberStopped)]
