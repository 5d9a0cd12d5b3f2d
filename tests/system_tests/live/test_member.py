"""A member on kafka-python retries if no broker answers, and ends on a fatal error."""

import threading
from unittest.mock import Mock

import pytest
from kafka.errors import FencedInstanceIdError, KafkaConnectionError, KafkaError

from system_tests.live import events
from system_tests.live.members import kafka_python as member
from system_tests.live.members.config import GroupConfig, MemberConfig
from system_tests.live.plan import Stage

CONFIG = MemberConfig(
    name="a",
    process_id="00000000-0000-4000-8000-000000000000",
    stage=Stage(release="native", upgrade_from=None, latest_version=101),
    group=GroupConfig(
        bootstrap_servers="",
        group_id="g",
        topic="words",
        session_timeout_ms=6000,
        heartbeat_ms=300,
    ),
)


@pytest.fixture
def start(monkeypatch):
    """Build a member whose polls raise these errors, one after the other, until it stops."""

    def build(*errors, failed=None):
        reported, stopping, left = [], threading.Event(), list(errors)

        def poll(timeout_ms):
            if left:
                raise left.pop(0)
            stopping.set()
            return {}

        consumer = Mock()
        consumer.poll = poll
        assignor = Mock(failed=failed)
        assignor.name = "stream"
        monkeypatch.setattr(member, "Reporter", Mock(return_value=reported.append))
        monkeypatch.setattr(member, "KafkaConsumer", Mock(return_value=consumer))
        monkeypatch.setattr(member, "build_assignor", Mock(return_value=assignor))
        monkeypatch.setattr(member, "_LEADER_RETRY_S", 0.0)
        return reported, lambda: member.run(CONFIG, stopping=stopping)

    return build


def test_a_broker_that_does_not_answer_is_asked_again(start):
    reported, run = start(KafkaConnectionError("111 ECONNREFUSED"), KafkaError("odd"))
    assert run() == 0
    assert isinstance(reported[-1], events.MemberStopped)


def test_an_error_that_cannot_pass_ends_the_member_with_the_reason(start):
    reported, run = start(FencedInstanceIdError())
    with pytest.raises(FencedInstanceIdError):
        run()
    assert [type(event) for event in reported].count(events.MemberFailed) == 1


def test_a_failed_assignor_ends_the_member_whatever_the_client_returns(start):
    reported, run = start(failed="the leader refused")
    assert run() == member.EXIT_FAILED
    assert not [event for event in reported if isinstance(event, events.MemberStopped)]
