"""Finalized levels on real clients: held back, raised, taken back, never by a stale broker."""

import io
from dataclasses import replace

import pytest

from probing.features import ASSIGNMENT_PROTOCOL, UpdateKind
from system_tests.broker import BrokerConfig, running_broker
from system_tests.live import events
from system_tests.live.bounce import LiveBounce
from system_tests.live.plan import LiveOptions
from system_tests.live.screen import PlainScreen
from system_tests.live.upgrade import Switches, plan_path
from system_tests.support.level_members import LevelMember, finalize, until

pytestmark = [pytest.mark.loop, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.kip("778-13", "loop")
def test_a_group_is_held_back_raised_and_lowered_while_records_flow():
    said = io.StringIO()
    options = LiveOptions(
        members=3,
        client="mixed",
        hold_back=True,
        rate=100.0,
        quiet_ms=400.0,
        settle_timeout_s=240,
        session_timeout_ms=60_000,
    )
    screen = PlainScreen(said, ("a", "b", "c"))
    outcome = LiveBounce(options, plan_path("3.1", "native", Switches()), screen).run()
    assert outcome.failure is None, said.getvalue()
    checks = {check.name: check for check in outcome.verdict.checks}
    for name in ("records", "owners"):
        assert checks[name].ok, checks[name].sentence
    assert set(outcome.used_versions.values()) == {11}
    trace = said.getvalue()
    assert "the binaries are new, the group is held at v11" in trace
    assert "assignment.protocol was upgraded to 101" in trace
    assert "assignment.protocol was downgraded from 101 (v101) to 11 (v11)" in trace
    written = [
        (report.member, report.event.version)
        for report in outcome.reports
        if isinstance(report.event, events.SubscriptionWritten)
    ]
    assert 101 in dict(map(reversed, written))
    assert set(dict(written).values()) == {11}


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
    for one in made:
        one.close()


def epochs(members):
    return [one.epoch for one in members]


def settled(members):
    return sorted(task for one in members for task in one.tasks) == ["0_0", "0_1", "0_2", "0_3"]


@pytest.mark.kip("778-13", "loop")
def test_no_member_writes_above_the_level_that_it_goes_by(broker, member):
    """The leader comes down in the very subscription that begins the rebalance for the level."""
    group = [member(0), member(0)]
    finalize(broker.bootstrap_servers, 2)
    until(lambda: settled(group) and epochs(group) == [1, 1], lambda: epochs(group))
    group.append(member(0))
    until(
        lambda: settled(group) and [one.written[-1] for one in group[:2]] == [101, 101],
        lambda: [one.written for one in group],
    )
    finalize(broker.bootstrap_servers, 1, UpdateKind.SAFE_DOWNGRADE)
    until(lambda: settled(group) and epochs(group) == [2, 2, 2], lambda: epochs(group))
    group.append(member(0))
    until(lambda: settled(group) and epochs(group) == [2] * 4, lambda: epochs(group))
    for one in group:
        assert [pair for pair in one.levels_written if pair[1] and pair[0] > pair[1]] == []
    assert [one.levels_written[-1] for one in group[:3]] == [(11, 11)] * 3


@pytest.mark.kip("778-16", "loop")
def test_after_its_level_was_lowered_the_group_goes_back_to_the_older_program():
    """From 3.1 to ours, up, down, and member by member back to 3.1 while records flow."""
    said = io.StringIO()
    options = LiveOptions(
        members=3,
        client="mixed",
        hold_back=True,
        take_back=True,
        rate=100.0,
        quiet_ms=400.0,
        settle_timeout_s=240,
        session_timeout_ms=60_000,
    )
    plan = replace(plan_path("3.1", "native", Switches()), promised_versions=(10,))
    outcome = LiveBounce(options, plan, PlainScreen(said, ("a", "b", "c"))).run()
    assert outcome.failure is None, said.getvalue()
    checks = {check.name: check for check in outcome.verdict.checks}
    for name in ("records", "owners"):
        assert checks[name].ok, checks[name].sentence
    assert set(outcome.used_versions.values()) == {10}
    lowered = "assignment.protocol was downgraded from 101 (v101) to 11 (v11)"
    assert "bounce to release 3.1" in said.getvalue().partition(lowered)[2]
    assert all(count > 0 for count in outcome.records.values())


@pytest.mark.kip("584-16", "loop")
def test_a_member_that_is_told_nothing_looks_once_a_minute(broker, member):
    """Its first look finds nothing; a level that is finalized then is found a minute later."""
    one = member(0, settings={})
    until(lambda: settled([one]) and one.looks > 0, lambda: one.looks)
    finalize(broker.bootstrap_servers, 1)
    until(lambda: one.looks > 1 and one.epoch == 1, lambda: (one.looks, one.epoch))
    first, second = one.looked_at[:2]
    assert 0.8 * 60 - 1 < second - first < 1.2 * 60 + 10


@pytest.mark.kip("584-11", "loop")
def test_a_stale_broker_never_takes_the_group_back_and_an_operator_does(broker, member):
    first, stale = member(0), member(1)
    group = [first, stale]
    until(lambda: settled(group), lambda: "settled")
    broker.call(lambda inner: inner.cluster.features.freeze([2]))
    finalize(broker.bootstrap_servers, 2)
    # Whoever looks at node 1 knows; a third one, told by the stale node, makes a rebalance.
    until(lambda: first.assignor._levels.found.epoch == 1, lambda: epochs(group))
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
def test_a_member_below_the_level_ends_with_one_sentence_and_the_group_goes_on(broker, member):
    finalize(broker.bootstrap_servers, 2)
    group = [member(0, release="next", levels={2: {ASSIGNMENT_PROTOCOL: 102}}) for _ in range(2)]
    until(lambda: settled(group) and epochs(group) == [1, 1], lambda: epochs(group))
    old = member(0, levels={})
    until(lambda: old.error is not None, lambda: "stopped")
    assert "assignment.protocol=102 where it supports 1..101" in old.error
    assert "start it with a release that supports" in old.error
    assert old.tasks == []
    asked = member(0, levels={2: {ASSIGNMENT_PROTOCOL: 102}})  # finds out by itself, mostly
    until(lambda: asked.error is not None, lambda: "stopped")
    # Neither of the two is closed, nor polls: a rebalance that waits for one would last 5 minutes.
    group.append(member(0, release="next", levels={2: {ASSIGNMENT_PROTOCOL: 102}}))
    until(
        lambda: settled(group) and all(one.tasks for one in group),
        lambda: [(one.tasks, one.error) for one in group],
    )
