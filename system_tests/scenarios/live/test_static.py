"""Static members (KIP-345): a member that returns within its session keeps its assignment.

`bounce` gives sessions of a minute, so that members return in time on a slow machine.
"""

import sys
from random import Random
from time import monotonic

import pytest

from system_tests.broker import BrokerConfig, running_broker
from system_tests.coordinator import EventKind
from system_tests.live.group import unsettled_reason
from system_tests.live.members.config import GroupConfig
from system_tests.live.plan import Stage
from system_tests.live.processes import Members
from system_tests.live.screen import SilentScreen

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]
NATIVE = Stage(release="native", upgrade_from=None, latest_version=101)


def test_an_upgrade_of_static_members_on_both_clients_costs_no_rebalance_at_all(bounce):
    run = bounce("--from native --to next --static --client mixed --members 4")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("rebalances")["total"] == 0


def test_going_back_is_as_cheap_though_the_kept_answers_are_of_the_later_program(bounce):
    run = bounce("--from next --to native --static --kill leader")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("rebalances")["total"] == 0


def test_beside_jvm_leaders_a_kept_answer_of_a_lower_version_costs_one_rebalance(bounce):
    run = bounce("--from 3.1 --to native --static")
    assert (run.status, run.failed()) == (0, [])
    numbers = run.numbers("rebalances")
    assert numbers["membership"] == 0
    assert numbers["version"] >= 1


def test_a_member_that_stays_away_longer_loses_its_tasks_and_gets_some_again():
    config = BrokerConfig(topics={"words": 4})
    with running_broker(config) as broker:
        group = GroupConfig(
            bootstrap_servers=",".join(broker.bootstrap_servers),
            group_id="g",
            topic="words",
            session_timeout_ms=3000,
            heartbeat_ms=100,
            static=True,
        )
        members = Members(
            ("a", "b"),
            group,
            client="kafka-python",
            screen=SilentScreen(sys.stderr, ("a", "b")),
            rng=Random(1),  # noqa: S311 repeatable, not secret
            stop_s=240,
        )
        try:
            for name in ("a", "b"):
                members.start(name, NATIVE)
            settle(members)
            members.stop("b")
            settle(members)
            assert len(members.view.members["a"].active_tasks) == 4
            assert EventKind.MEMBER_EXPIRED in {event.kind for event in broker.events}
            members.start("b", NATIVE)
            settle(members)
            assert len(members.view.members["b"].active_tasks) == 2
        finally:
            members.end(grace_s=10)


def settle(members):
    """Wait until every partition has an owner and no member waits for a rebalance."""
    members.wait(
        lambda: unsettled_reason(
            members.view, partitions=4, now_ms=monotonic() * 1000, quiet_ms=300
        ),
        timeout_s=240,
    )
