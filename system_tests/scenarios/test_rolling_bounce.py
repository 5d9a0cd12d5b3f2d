"""Random sequences of an operator's actions on a simulated group; a failure shrinks to a short one.

The releases are those that can all be mixed, the native ones included. Hypothesis draws the actions
and the seed of the simulation, so that both shrink.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from system_tests.engine import Broken
from system_tests.sim import Evidence, World, WorldSetup, check_step
from system_tests.sim.events import Settled
from tests.nightly import examples

PROCESSES = 4
REST_MS = 900_000
MOMENTS = st.integers(0, 60_000)
NUMBERS = st.integers(0, 4)


class RollingBounce(RuleBasedStateMachine):
    """Up to four processes, an operator, and faults."""

    releases = ("3.4.1", "3.9.1", "4.1.2", "native", "next")
    has_faults = may_be_static = True
    processes = Bundle("processes")

    @initialize(target=processes, seed=st.integers(0, 2**32 - 1), release=NUMBERS)
    def begin(self, seed, release):
        self.world = World(
            WorldSetup(seed=seed, processes=PROCESSES, static=self.may_be_static and bool(seed % 2))
        )
        self.evidence = Evidence(task_of=self.world.task_of)
        self.seen = 0
        self.broken: list[Broken] = []
        self.world.start(0, self.releases[release])
        return 0

    @rule(target=processes, release=NUMBERS)
    def start(self, release):
        down = [number for number in range(PROCESSES) if not self.world.is_up(number)]
        process = down[0] if down else PROCESSES - 1
        if down:
            self.world.start(process, self.releases[release])
        return process

    @rule(process=consumes(processes))
    def stop(self, process):
        self.world.stop(process)

    @rule(process=processes, release=NUMBERS, down_ms=MOMENTS)
    def bounce(self, process, release, down_ms):
        self.world.stop(process)
        self.world.run_for(down_ms)
        self.world.start(process, self.releases[release])

    @precondition(lambda self: self.has_faults)
    @rule(process=processes, down_ms=MOMENTS)
    def crash(self, process, down_ms):
        self.world.kill(process)
        self.world.do_later(down_ms, "restart", process)

    @precondition(lambda self: self.has_faults)
    @rule(process=processes, ms=MOMENTS)
    def pause(self, process, ms):
        self.world.pause(process, ms)

    @precondition(lambda self: self.has_faults)
    @rule(process=processes)
    def lose_disk(self, process):
        if not self.world.is_up(process):
            self.world.lose_disk(process)

    @precondition(lambda self: self.has_faults)
    @rule()
    def move_coordinator(self):
        self.world.move_coordinator()

    @rule(ms=MOMENTS)
    def wait(self, ms):
        self.world.run_for(ms)

    @rule()
    def rest(self):
        world = self.world
        if not any(world.is_up(process) for process in range(PROCESSES)):
            return
        assert world.run(until=world.is_settled, within_ms=REST_MS), "the group does not settle"
        world.record(Settled(world.now_ms, 0, "", ()))

    @invariant()
    def safety(self):
        for happening in self.world.trace[self.seen :]:
            self.broken += check_step(self.evidence, happening)
        self.seen = len(self.world.trace)
        # A static member that goes back to an older release gets an assignment it cannot read.
        known = {"answers are readable", "nobody dies"} if self.is_static else set()
        assert [broken for broken in self.broken if broken.rule not in known] == []

    @property
    def is_static(self):
        return self.world.setup.static

    def teardown(self):
        if hasattr(self, "world") and not self.is_static:
            self.rest()
            self.safety()


class VersionProbing(RollingBounce):
    """Releases that write 9, 10, 11 and native versions.

    Crashes beside the older ones wake KAFKA-14382, and a static member cannot go back to them.
    """

    releases = ("2.8.2", "3.1.2", "3.9.1", "native", "next")
    has_faults = may_be_static = False


TestVersionProbing = VersionProbing.TestCase
TestVersionProbing.settings = settings(max_examples=examples(24), stateful_step_count=12)
TestRollingBounce = RollingBounce.TestCase
TestRollingBounce.settings = settings(max_examples=examples(24), stateful_step_count=12)


@pytest.mark.slow
@pytest.mark.nightly("400 examples of 30 steps take minutes; every run has 8 of 12 steps")
class TestRollingBounceAtLength(RollingBounce.TestCase):
    settings = settings(max_examples=400, stateful_step_count=30)
