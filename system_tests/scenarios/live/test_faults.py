"""What goes wrong while real processes are bounced: the upgrade goes on, and no record is lost.

Each experiment is an ordinary live bounce on an embedded broker of two nodes; something strikes
every time a bounced member has been started and has not joined yet.
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
from system_tests.live.order import member_names
from system_tests.live.plan import LiveOptions, Stage
from system_tests.live.screen import SilentScreen
from system_tests.live.upgrade import Switches, plan_path

pytestmark = [pytest.mark.loop, pytest.mark.timeout(900)]
SESSION_MS = 2_000
UUID_PARTS = 5  # a member id is the client's, a hyphen and a UUID
SAFE = ("records", "versions")
MEMBERS = 3


@dataclass
class Struck:
    """A bounce that is over: what came of it, and what the broker saw."""

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
        """Pairs of owners of one partition, neither of which had been put out of the group.

        Whoever stands still does not know that its session ran out.
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


class Strikes(LiveBounce):
    """A bounce with one strike after the start of each bounced member."""

    def __init__(self, options, plan, broker, strikes):
        super().__init__(options, plan, SilentScreen(sys.stderr, member_names(options.members)))
        self.broker, self.strikes, self.stage = broker, list(strikes), None
        self.bounced = ""  # who was started last, and has said nothing yet

    @property
    def crew(self):
        return self._crew

    def other(self):
        """A member that is up, neither the leader nor the one that was started last."""
        names = [member.name for member in self.crew.group.alive]
        return next(n for n in names if n not in (self.bounced, self.crew.group.leader))

    def stage_of(self, name):
        release = find_release(self.crew.group.members[name].release)
        latest = release.latest_native_version or release.latest_version
        return Stage(release=release.name, upgrade_from=None, latest_version=latest)

    def pid_of(self, name):
        started = [r for r in self.crew.reports if r.member == name and hasattr(r.event, "pid")]
        return started[-1].event.pid

    def wait_for(self, api, name):
        """Wait until the broker has had a request of this life of a member."""
        before = len(self.asked(api, name))
        self.crew.wait(
            lambda: None if len(self.asked(api, name)) > before else f"no {api} of {name}",
            timeout_s=240,
        )

    def asked(self, api, name):
        return [one for one in self.broker.requests(api) if one.client_id == name]

    def let_pass(self, seconds):
        end = time.monotonic() + seconds
        self.crew.wait(
            lambda: None if time.monotonic() > end else "time passes", timeout_s=seconds + 240
        )

    def _bounce(self, stage):
        self.stage = stage
        super()._bounce(stage)

    def _settle(self, *, extra_s=0.0):
        if self.stage is not None and self.strikes:
            members = self.crew.group.members.values()
            (self.bounced,) = (one.name for one in members if one.generation is None)
            self.strikes.pop(0)(self)
            extra_s += 3 * SESSION_MS / 1000
        super()._settle(extra_s=extra_s)


def stop_another(bounce):
    name = bounce.other()
    stage = bounce.stage_of(name)
    bounce.crew.stop(name)
    bounce.crew.start(name, stage)


def kill_the_leader(bounce):
    # After a bounce of the leader nobody leads until the next answers: only a member of the group
    # can be missed by the coordinator.
    bounce.crew.wait(lambda: None if bounce.crew.group.leader else "nobody leads", timeout_s=240)
    name = bounce.crew.group.leader
    stage = bounce.stage_of(name)
    bounce.crew.kill(name)
    bounce.crew.start(name, stage)


def crash_after(api):
    """Kill the member that comes back once the broker has had this request of it."""

    def strike(bounce):
        name = bounce.bounced
        bounce.wait_for(api, name)
        bounce.crew.kill(name)
        bounce.crew.start(name, bounce.stage)

    return strike


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
def struck():
    def run(old, new, strikes, **options):
        with running_broker(BrokerConfig(nodes=2)) as broker:
            asked = LiveOptions(
                bootstrap_server=",".join(broker.bootstrap_servers),
                session_timeout_ms=SESSION_MS,
                heartbeat_ms=200,
                quiet_ms=400.0,
                rate=100.0,
                settle_timeout_s=240,
                **options,
            )
            bounce = Strikes(asked, plan_path(old, new, Switches()), broker, strikes)
            outcome = bounce.run()
            assert bounce.strikes == [], "not every strike came"
            return Struck(outcome, broker.events, broker.requests())

    return run


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_survives_a_stop_a_lost_leader_and_a_moved_coordinator(struck):
    run = struck("2.8", "3.9.1", [stop_another, kill_the_leader, move_the_coordinator])
    assert run.failed == []
    assert run.count(EventKind.MEMBER_EXPIRED) >= 1
    # The other broker knows the members of the group: they need not join as strangers.
    (reloaded,) = [one for one in run.events if one.kind is EventKind.GROUP_RELOADED]
    assert len(reloaded.members) >= MEMBERS - 1


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_survives_a_crash_at_every_step_of_a_join(struck):
    steps = [crash_after(api) for api in ("FindCoordinator", "JoinGroup", "SyncGroup")]
    run = struck("3.1", "native", steps)
    assert run.failed == []
    assert run.outcome.verdict.numbers("records")["missing"] == 0


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_survives_a_join_that_is_lost_one_sent_twice_and_a_crash_at_work(struck):
    run = struck("3.4.1", "3.9.1", [lose_a_join, join_twice, crash_after("OffsetCommit")])
    assert run.failed == []


@pytest.mark.kip("268-16", "loop")
def test_an_upgrade_on_both_clients_survives_lost_joins_and_the_death_of_a_leader(struck):
    strikes = [lose_a_join, join_twice, kill_the_leader]
    run = struck("3.1", "native", strikes, client="mixed", members=4)
    assert run.outcome.failure is None
    checks = {check.name: check for check in run.outcome.verdict.checks}
    assert checks["versions"].ok, checks["versions"].sentence
    assert checks["records"].numbers["missing"] == 0


@pytest.mark.kip("268-16", "loop")
@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_an_upgrade_survives_a_member_that_is_paused_past_its_session(struck, client):
    run = struck("2.8", "native", [pause_past_the_session], client=client)
    assert run.outcome.failure is None
    checks = {check.name: check for check in run.outcome.verdict.checks}
    assert checks["versions"].ok, checks["versions"].sentence
    assert checks["records"].numbers["missing"] == 0
    assert run.count(EventKind.MEMBER_EXPIRED) >= 1
    assert run.double_owners == []
