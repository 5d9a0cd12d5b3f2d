"""Faults during bounces of real processes: the upgrade continues, and no record is lost.

Each experiment is an ordinary live bounce on an embedded broker of two nodes; a fault occurs every
time a bounced member has been started and has not joined yet.
"""

import os
import signal
import sys
import time
from dataclasses import dataclass

import pytest

from probing import find_release
from system_tests.broker import BrokerConfig, Fault, running_broker
from system_tests.coordinator import EventKind
from system_tests.live.bounce import LiveBounce
from system_tests.live.options import LiveOptions, Switches
from system_tests.live.order import member_names
from system_tests.live.parts import open_parts
from system_tests.live.plan import Stage, plan_path
from system_tests.live.screen import SilentScreen

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.timeout(900)]
SESSION_MS = 3_000
UUID_PARTS = 5  # a member id is the client's, a hyphen and a UUID
SAFE = ("records", "versions")
MEMBERS = 3


@dataclass
class FaultyRun:
    """A finished bounce: its outcome, and what the broker observed."""

    outcome: object
    events: tuple
    requests: tuple

    @property
    def failed(self):
        if self.outcome.failure is not None:
            return [self.outcome.failure]
        verdict = self.outcome.verdict
        return [
            *(check.sentence for check in verdict.checks if check.name in SAFE and not check.ok),
            *self.double_owners,
        ]

    @property
    def double_owners(self):
        """Pairs of owners of one partition, neither of which the group had removed.

        A paused member does not know that its session has expired.
        """
        expired = {
            (event.member_id or "").rsplit("-", UUID_PARTS)[0]
            for event in self.events
            if event.kind is EventKind.MEMBER_EXPIRED
        }
        pairs = [double["members"] for double in self.outcome.verdict.numbers("owners")["double"]]
        return [pair for pair in pairs if not expired.intersection(pair)]

    def count(self, kind):
        return sum(event.kind is kind for event in self.events)


class FaultyBounce(LiveBounce):
    """A bounce with one fault after the start of each bounced member."""

    def __init__(self, options, plan, parts, broker, faults):
        super().__init__(options, plan, parts)
        self.members, self.broker = parts.members, broker
        self.faults, self.stage = list(faults), None
        self.bounced = ""  # the member that was started last, and has not joined yet

    def other(self):
        """A member that is up, neither the leader nor the one that was started last."""
        names = [member.name for member in self.members.view.alive]
        return next(n for n in names if n not in (self.bounced, self.members.view.leader))

    def stage_of(self, name):
        release = find_release(self.members.view.members[name].release)
        latest = release.latest_native_version or release.latest_version
        return Stage(release=release.name, upgrade_from=None, latest_version=latest)

    def pid_of(self, name):
        started = [r for r in self.members.reports if r.member == name and hasattr(r.event, "pid")]
        return started[-1].event.pid

    def wait_for(self, api, name):
        """Wait until the broker has received a request of this incarnation of a member."""
        before = len(self.asked(api, name))
        self.members.wait(
            lambda: None if len(self.asked(api, name)) > before else f"no {api} of {name}",
            timeout_s=240,
        )

    def asked(self, api, name):
        return [request for request in self.broker.requests(api) if request.client_id == name]

    def let_pass(self, seconds):
        end = time.monotonic() + seconds
        self.members.wait(
            lambda: None if time.monotonic() > end else "time passes", timeout_s=seconds + 240
        )

    def _bounce(self, stage, bounced, *, kill):
        self.stage = stage
        return super()._bounce(stage, bounced, kill=kill)

    def _settle(self, *, extra_s=0.0):
        if self.stage is not None and self.faults:
            members = self.members.view.members.values()
            (self.bounced,) = (m.name for m in members if m.generation is None)
            self.faults.pop(0)(self)
            extra_s += 3 * SESSION_MS / 1000
        super()._settle(extra_s=extra_s)


def stop_another(bounce):
    name = bounce.other()
    stage = bounce.stage_of(name)
    bounce.members.stop(name)
    bounce.members.start(name, stage)


def kill_the_leader(bounce):
    # After a bounce of the leader there is no leader until the next one assigns: the coordinator
    # notices only the loss of a member of the group.
    bounce.members.wait(
        lambda: None if bounce.members.view.leader else "there is no leader", timeout_s=240
    )
    name = bounce.members.view.leader
    stage = bounce.stage_of(name)
    bounce.members.kill(name)
    bounce.members.start(name, stage)


def crash_after(api):
    """Kill the member that restarts once the broker has received this request of it."""

    def crash(bounce):
        name = bounce.bounced
        bounce.wait_for(api, name)
        bounce.members.kill(name)
        bounce.members.start(name, bounce.stage)

    return crash


def move_the_coordinator(bounce):
    (group,) = bounce.broker.groups()
    bounce.broker.move_coordinator(group, 3 - bounce.broker.coordinator_of(group))


def lose_a_join(bounce):
    bounce.broker.inject(Fault(api="JoinGroup", client_id=bounce.other(), drop=True))


def join_twice(bounce):
    """The request takes effect, its answer is lost, so the client sends it again."""
    bounce.broker.inject(Fault(api="JoinGroup", client_id=bounce.other(), lose_answer=True))


def pause_past_the_session(bounce):
    name = bounce.other()
    pid = bounce.pid_of(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        bounce.let_pass(2 * SESSION_MS / 1000)
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture
def bounce_with():
    def run(old, new, faults, **options):
        with running_broker(BrokerConfig(nodes=2)) as broker:
            numbers = LiveOptions(
                bootstrap_server=",".join(broker.bootstrap_servers),
                session_timeout_ms=SESSION_MS,
                heartbeat_ms=100,
                rate=50.0,
                settle_timeout_s=240,
                **options,
            )
            screen = SilentScreen(sys.stderr, member_names(numbers.members))
            with open_parts(numbers, screen) as parts:
                plan = plan_path(old, new, Switches())
                bounce = FaultyBounce(numbers, plan, parts, broker, faults)
                outcome = bounce.run()
            assert bounce.faults == [], "not every fault occurred"
            return FaultyRun(outcome, broker.events, broker.requests())

    return run


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_survives_a_stop_a_lost_leader_and_a_moved_coordinator(bounce_with):
    run = bounce_with("2.8", "3.9.1", [stop_another, kill_the_leader, move_the_coordinator])
    assert run.failed == []
    assert run.count(EventKind.MEMBER_EXPIRED) >= 1
    # The other broker knows the members of the group: they keep their member ids.
    (reloaded,) = [event for event in run.events if event.kind is EventKind.GROUP_RELOADED]
    assert len(reloaded.members) >= MEMBERS - 1


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_survives_a_crash_at_every_step_of_a_join(bounce_with):
    steps = [crash_after(api) for api in ("FindCoordinator", "JoinGroup", "SyncGroup")]
    run = bounce_with("3.1", "native", steps)
    assert run.failed == []
    assert run.outcome.verdict.numbers("records")["missing"] == 0


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_survives_a_join_that_is_lost_one_sent_twice_and_a_crash_at_work(bounce_with):
    run = bounce_with("3.4.1", "3.9.1", [lose_a_join, join_twice, crash_after("OffsetCommit")])
    assert run.failed == []


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_on_both_clients_survives_lost_joins_and_a_killed_leader(bounce_with):
    faults = [lose_a_join, join_twice, kill_the_leader]
    run = bounce_with("3.1", "native", faults, client="mixed", members=4)
    assert run.outcome.failure is None
    checks = {check.name: check for check in run.outcome.verdict.checks}
    assert checks["versions"].ok, checks["versions"].sentence
    assert checks["records"].numbers["missing"] == 0


@pytest.mark.kip("268-16", "loop")
@pytest.mark.nightly("10 s; every run pauses a member of the other client", but=("aiokafka",))
@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_an_upgrade_survives_a_member_that_is_paused_past_its_session(bounce_with, client):
    run = bounce_with("2.8", "native", [pause_past_the_session], client=client)
    assert run.outcome.failure is None
    checks = {check.name: check for check in run.outcome.verdict.checks}
    assert checks["versions"].ok, checks["versions"].sentence
    assert checks["records"].numbers["missing"] == 0
    assert run.count(EventKind.MEMBER_EXPIRED) >= 1
    assert run.double_owners == []
