"""Finalized levels on real clients: held back, raised, lowered, never by a stale broker."""

import io
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from assignor.levels import watcher
from probing.features import ASSIGNMENT_PROTOCOL, UpdateKind
from system_tests.broker import BrokerConfig, running_broker
from system_tests.live.bounce import run_live_bounce
from system_tests.live.events import SubscriptionWritten
from system_tests.live.options import LiveOptions, Switches
from system_tests.live.plan import plan_path
from system_tests.live.screen import PlainScreen
from system_tests.support.level_members import LIMIT_S, LevelMember, finalize, until

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def broker():
    # The levels of 3.9, where the feature is off.
    config = BrokerConfig(nodes=2, topics={"words": 4}, metadata_version=22)
    with running_broker(config) as running:
        yield running


@pytest.fixture
def member(broker):
    made = []

    def make(node, **settings):
        made.append(LevelMember(broker.bootstrap_servers, node, **settings))
        return made[-1]

    yield make
    for member in made:
        member.close()


def epochs(members):
    return [member.epoch for member in members]


def settled(members):
    return sorted(task for member in members for task in member.tasks) == [
        "0_0",
        "0_1",
        "0_2",
        "0_3",
    ]


@pytest.mark.kip("778-13", "loop")
def test_no_member_writes_above_the_level_that_it_goes_by(broker, member):
    """The leader lowers its version in the subscription that begins the rebalance for the level."""
    group = [member(0), member(0)]
    finalize(broker.bootstrap_servers, 2)
    until(lambda: settled(group) and epochs(group) == [1, 1], lambda: epochs(group))
    group.append(member(0))
    until(
        lambda: settled(group) and [member.written[-1] for member in group[:2]] == [101, 101],
        lambda: [member.written for member in group],
    )
    finalize(broker.bootstrap_servers, 1, UpdateKind.SAFE_DOWNGRADE)
    until(lambda: settled(group) and epochs(group) == [2, 2, 2], lambda: epochs(group))
    group.append(member(0))
    until(lambda: settled(group) and epochs(group) == [2] * 4, lambda: epochs(group))
    for running in group:
        assert [pair for pair in running.levels_written if pair[1] and pair[0] > pair[1]] == []
    until(
        lambda: [member.levels_written[-1] for member in group[:3]] == [(11, 11)] * 3,
        lambda: [member.levels_written for member in group],
    )


@pytest.mark.kip("778-13", "loop")
@pytest.mark.kip("778-16", "loop")
def test_after_its_level_was_lowered_the_group_goes_back_to_the_older_program():
    """From 3.1 to native, raised, lowered, and member by member back to 3.1 while records flow."""
    stream = io.StringIO()
    options = LiveOptions(
        members=3,
        client="mixed",
        hold_back=True,
        take_back=True,
        rate=100.0,
        heartbeat_ms=100,
        settle_timeout_s=240,
        session_timeout_ms=60_000,
    )
    plan = replace(plan_path("3.1", "native", Switches()), promised_versions=(10,))
    outcome = run_live_bounce(options, plan, PlainScreen(stream, ("a", "b", "c")))
    assert outcome.failure is None, stream.getvalue()
    checks = {check.name: check for check in outcome.verdict.checks}
    for name in ("records", "owners"):
        assert checks[name].ok, checks[name].sentence
    assert set(outcome.used_versions.values()) == {10}
    held, raised, lowered = (
        "the binaries are new, the group is held at v11",
        "assignment.protocol was upgraded to 101",
        "assignment.protocol was downgraded from 101 (v101) to 11 (v11)",
    )
    rest = stream.getvalue()
    for line in (held, raised, lowered, "bounce to release 3.1"):
        _, found, rest = rest.partition(line)
        assert found, stream.getvalue()
    written = [r.event.version for r in outcome.reports if isinstance(r.event, SubscriptionWritten)]
    last = len(written) - written[::-1].index(101)
    assert set(written[last:]) == {10, 11}, "all members came down"
    assert all(count > 0 for count in outcome.records.values())


@pytest.mark.kip("584-16", "loop")
def test_a_member_polls_levels_once_a_minute_by_default(broker, member, monkeypatch):
    """Its first poll finds no level; a level that is finalized then is found by the next one."""
    waits = []

    class Event(threading.Event):
        def wait(self, timeout=None):
            waits.append((self, timeout))
            return super().wait(LIMIT_S)

    monkeypatch.setattr(watcher, "threading", SimpleNamespace(**vars(threading) | {"Event": Event}))
    idle = member(0, settings={})
    until(lambda: settled([idle]) and waits, lambda: waits)
    assert idle.polls == 1
    finalize(broker.bootstrap_servers, 1)
    for count in range(1, 20):
        waits[-1][0].set()  # as if the time was over
        until(lambda n=count: len(waits) > n, lambda: waits)
    until(lambda: idle.epoch == 1, lambda: idle.epoch)
    assert idle.polls == len(waits)
    assert all(0.8 * 60 <= wait_s <= 1.2 * 60 for _, wait_s in waits)


@pytest.mark.kip("584-11", "loop")
def test_a_stale_broker_never_takes_the_group_back_and_an_operator_does(broker, member):
    first, stale = member(0), member(1)
    group = [first, stale]
    until(lambda: settled(group), lambda: "settled")
    broker.call(lambda inner: inner.cluster.features.freeze([2]))
    finalize(broker.bootstrap_servers, 2)
    # A member that polls node 1 knows the level; a third member, on the stale node, rebalances.
    until(lambda: first.assignor._driver.levels.found.epoch == 1, lambda: epochs(group))
    group.append(member(1))
    until(lambda: settled(group) and epochs(group) == [1, 1, 1], lambda: epochs(group))
    group.append(member(1))
    until(lambda: settled(group) and epochs(group) == [1, 1, 1, 1], lambda: epochs(group))
    assert first.assignor.levels.level_of(ASSIGNMENT_PROTOCOL) == 101
    until(lambda: first.written[-1] == 101, lambda: first.written)
    broker.call(lambda inner: inner.cluster.features.thaw())
    finalize(broker.bootstrap_servers, 1, UpdateKind.SAFE_DOWNGRADE)
    until(lambda: settled(group) and epochs(group) == [2, 2, 2, 2], lambda: epochs(group))
    assert stale.assignor.levels.level_of(ASSIGNMENT_PROTOCOL) == 11


@pytest.mark.kip("584-6", "loop")
def test_a_member_below_the_level_ends_with_one_sentence_and_the_group_continues(broker, member):
    finalize(broker.bootstrap_servers, 2)
    group = [member(0, release="next", levels={2: {ASSIGNMENT_PROTOCOL: 102}}) for _ in range(2)]
    until(lambda: settled(group) and epochs(group) == [1, 1], lambda: epochs(group))
    old = member(0, levels={})
    until(lambda: old.error is not None, lambda: "stopped")
    assert "assignment.protocol=102 (it supports 1..101)" in old.error
    assert "start it with a release that does" in old.error
    assert old.tasks == []
    asked = member(0, levels={2: {ASSIGNMENT_PROTOCOL: 102}})  # finds out by itself, mostly
    until(lambda: asked.error is not None, lambda: "stopped")
    # Neither of the two is closed, nor polls: a rebalance that waits for them would last 5 minutes.
    group.append(member(0, release="next", levels={2: {ASSIGNMENT_PROTOCOL: 102}}))
    until(
        lambda: settled(group) and all(member.tasks for member in group),
        lambda: [(member.tasks, member.error) for member in group],
    )
