"""The operator of a group whose levels change: random actions, under brokers that are behind."""

from collections.abc import Callable
from typing import Final

from probing import HELD_BACK
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    PERSISTENT_METADATA,
    UNKNOWN_LEVELS,
    native_features,
)
from system_tests.coordinator import CoordinatorConfig
from system_tests.engine import Finished, Scheduler
from system_tests.levels.brokers import BROKERS, LevelBrokers
from system_tests.sim import Happened, World, WorldSetup, settle_world
from system_tests.sim.world import LATER, LOOK_MS, SETTLE_MS, StateRates

MAX_MEMBERS: Final = 5
PROTOCOL_LEVELS: Final = (4, 9, 11, 101, 102)
OLD_LATEST: Final = 101
"""The highest level of the older release, `native`."""
BACK, DONE = "all go back to the older release", "all are back"
_LATER_FIRST: Final = 11
_EPOCH_ROUNDS: Final = 3


class LevelOperator:
    """One run.

    Args:
        seed: seed of all random choices.

    Attributes:
        world: the group; brokers: where its members look for levels.
        holds_back: the members hold the group back until a level is finalized.
    """

    def __init__(self, seed: int) -> None:
        self._rng = scheduler = Scheduler(seed)
        self._old_share = scheduler.choose((0.05, 0.2, 0.6))
        self.holds_back = scheduler.happens(0.5)
        setup = WorldSetup(
            seed=seed,
            processes=MAX_MEMBERS,
            rates=StateRates(history=0, growth=0),
            broker=CoordinatorConfig(initial_rebalance_delay_ms=0),
            levels=HELD_BACK if self.holds_back else UNKNOWN_LEVELS,
        )
        self.world = World(setup, scheduler=scheduler)
        self.brokers = LevelBrokers(self.world)

    def run(self, steps: int) -> None:
        """Do random actions, then let all brokers learn the levels, and all members adopt them."""
        world = self.world
        for process in range(self._rng.delay(2, 4)):
            world.start(process, self._release())
        self._settle()
        actions = self._actions()
        for _ in range(steps):
            self._rng.choose(actions)()
        self._spread("the end")
        for _ in range(2):
            world.force_rebalance()
            self._settle()
        world.record(Finished(world.now_ms))

    def _actions(self) -> list[Callable[[], None]]:
        draw = self._rng
        return [
            *[self._update] * 3,
            *[lambda: self.brokers.learn(draw.delay(0, BROKERS - 1))] * 3,
            *[self._wait] * 4,
            self._make_stale,
            lambda: self.brokers.stale.discard(draw.delay(0, BROKERS - 1)),
            self._join,
            self._leave,
            lambda: self._restart(draw.choose(self._up())),
            self._roll_back,
            self._deprecate,
            self._force,
            self._other_leader,
        ]

    def _note(self, what: str) -> None:
        self.world.record(Happened(self.world.now_ms, "", f"operator: {what}"))

    def _up(self) -> list[int]:
        return [thread.process for thread in self.world.threads if thread.is_up]

    def _settle(self) -> None:
        """Wait for the group to come to rest; if all members were refused, start one."""
        world = self.world
        while True:
            if not self._up():
                world.start(0, "next")
            world.run(until=lambda: world.is_settled() or not self._up(), within_ms=SETTLE_MS)
            if self._up():
                settle_world(world)
                return

    def _update(self) -> None:
        feature = self._rng.choose((ASSIGNMENT_PROTOCOL, ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA))
        levels = PROTOCOL_LEVELS if feature == ASSIGNMENT_PROTOCOL else (1, 2)
        self._ask(feature, self._rng.choose(levels))

    def _ask(self, feature: str, level: int) -> None:
        """Request a level; members decide which levels there are."""
        self._note(f"{feature}={level}")
        versions = [
            thread.streams.state.all_versions for thread in self.world.threads if thread.is_up
        ]
        self.brokers.update(feature, level, native_features(max(versions, key=max)))

    def _wait(self) -> None:
        self.world.run_for(self._rng.delay(0, 2 * LOOK_MS[1]))
        self._settle()

    def _make_stale(self) -> None:
        broker = self._rng.delay(0, BROKERS - 1)
        self._note(f"b{broker} becomes stale")
        self.brokers.stale.add(broker)

    def _join(self) -> None:
        down = [thread.process for thread in self.world.threads if not thread.is_up]
        if down:
            self._note("a member joins")
            self.world.start(down[0], self._release())
            self._settle()

    def _leave(self) -> None:
        if len(up := self._up()) > 1:
            self._note("a member leaves")
            self.world.stop(self._rng.choose(up))
            self._settle()

    def _restart(self, process: int, release: str = "") -> None:
        """Restart a member, perhaps with another release; it knows no levels."""
        self._note("a member is restarted")
        self.world.stop(process)
        self.world.run_for(self._rng.delay(100, 2_000))
        self.world.start(process, release or self._release())
        self._settle()

    def _force(self) -> None:
        self._note("a rebalance")
        self.world.force_rebalance()
        self._settle()

    def _other_leader(self) -> None:
        leader = self.world.leader()
        if leader is not None:
            self._restart(leader.process)

    def _spread(self, why: str) -> None:
        """Let all brokers learn the levels, and the leader find them."""
        self._note(why)
        self.brokers.stale.clear()
        for broker in range(BROKERS):
            self.brokers.learn(broker)
        for _ in range(_EPOCH_ROUNDS):  # members that replace refused ones look, too
            self.world.run_for(LOOK_MS[1] + 500)
            self._settle()

    def _roll_back(self) -> None:
        """Lower the protocol's level, bounce all members to the old release, and upgrade again.

        Only from a level that the old release does not support.
        """
        if self._level() <= OLD_LATEST:
            return
        self._ask(ASSIGNMENT_PROTOCOL, self._rng.choose(PROTOCOL_LEVELS[:-1]))
        if self._level() > OLD_LATEST:
            return
        self._spread("the level is lowered")
        self._note(BACK)
        processes = self._up()
        for process in processes:
            self._restart(process, "native")
        self._note(DONE)
        for process in processes:
            self._restart(process)

    def _deprecate(self) -> None:
        """Bounce all members to a release that supports the protocol from level 11 on."""
        if self._level() < _LATER_FIRST:
            return
        for process in self._up():
            self._restart(process, LATER)
        self.world.run_for(LOOK_MS[1])
        self._settle()

    def _level(self) -> int:
        return self.brokers.log.last.level_of(ASSIGNMENT_PROTOCOL)

    def _release(self) -> str:
        """Mostly of one release, or no level that it alone supports would ever be finalized."""
        return "native" if self._rng.happens(self._old_share) else "next"
