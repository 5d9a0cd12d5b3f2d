"""Brokers that learn finalized levels late, and the members that look for levels there."""

from typing import Final

from probing import rejoin_for_levels
from probing.features import ASSIGNMENT_PROTOCOL, FeatureTable, FinalizedLevels, newest_levels
from system_tests.engine import Actor, Pending
from system_tests.levels.log import GroupLog
from system_tests.sim import Cause, Finalized, Happened, Looked, World
from system_tests.sim.world import LOOK_MS, StreamThread, ask_for_rebalance

BROKERS: Final = 3


class LevelSource(Actor):
    """Where the members of a group look for finalized levels, each every few seconds.

    Attributes:
        world: the group.
        look_ms: minimum and maximum time between two looks of a member.
    """

    def __init__(self, world: World) -> None:
        """Handle the looks of the members."""
        super().__init__(world)
        self.world = world
        self.look_ms = LOOK_MS
        world.handlers["look"] = self._on_look

    def levels_for(self, thread: StreamThread) -> tuple[str, FinalizedLevels] | None:
        """Return the broker that a member asks, and its levels; None if none answers."""
        raise NotImplementedError

    def looked(self, thread: StreamThread) -> None:
        """Do what else follows from a look."""

    def _on_look(self, pending: Pending) -> None:
        """Take levels of a broker, as `LevelWatch`; ask for a rebalance if they require it."""
        thread = self.world.threads[pending.target]
        if pending.data[0] != thread.incarnation:
            return
        delay_ms = self.scheduler.delay(*self.look_ms)
        self.scheduler.schedule(delay_ms, "look", pending.target, pending.data)
        if (answer := self.levels_for(thread)) is None:
            return
        broker, levels = answer
        newest, state = newest_levels((thread.found, levels)), thread.streams.state
        asks = newest != thread.found and (
            rejoin_for_levels(state, newest, leads=thread.leads, is_led_by_jvm=False) is not None
        )
        thread.found = newest
        self.record(Looked(self.now_ms, thread.name, broker, levels, asks))
        if asks:
            ask_for_rebalance(self.world, thread, Cause.LEVELS)
        self.looked(thread)


class LevelBrokers(LevelSource):
    """The log of a group's levels, and brokers that may be behind it, as long as they like.

    Every member looks for levels at one broker.

    Attributes:
        log: the finalized levels.
        stale: brokers that learn nothing.
    """

    def __init__(self, world: World) -> None:
        """Begin with nothing finalized."""
        super().__init__(world)
        self.log = GroupLog()
        self.stale: set[int] = set()
        self._known = [self.log.last] * BROKERS

    def update(self, feature: str, level: int, table: FeatureTable) -> None:
        """Decide on an operator's update; a refused one changes nothing."""
        if why := self.log.update(feature, level, self.world.support, table):
            self._finalize(why)

    def learn(self, broker: int) -> None:
        """Let a broker read the log, unless it is stale."""
        if broker not in self.stale:
            self._known[broker] = self.log.last
            self.record(Happened(self.now_ms, f"b{broker}", f"is at epoch {self.log.last.epoch}"))

    def levels_for(self, thread: StreamThread) -> tuple[str, FinalizedLevels]:
        """Return the member's broker and its levels."""
        broker = (thread.index + thread.incarnation) % BROKERS
        return f"b{broker}", self._known[broker]

    def looked(self, thread: StreamThread) -> None:
        """Let the leader raise minimums that no member of its generation needs."""
        if thread.leads and self.log.raise_minimums(self.world.support):
            self._finalize("the minimum rises")

    def _finalize(self, why: str) -> None:
        minimum = self.log.minimums.get(ASSIGNMENT_PROTOCOL, 0)
        self.record(Finalized(self.now_ms, self.log.last, why, minimum))
