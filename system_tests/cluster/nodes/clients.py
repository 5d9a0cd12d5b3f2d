"""A group of clients of the cluster: KIP-584's steps T0 to T5, with brokers that lag.

The clients are members of a simulated group. Each looks for levels at the brokers, which know those
of Kafka's features; the level of the governing feature stands for a level of the group's protocol.
"""

from typing import Final

from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels
from system_tests.cluster.nodes.simulation import Cluster
from system_tests.coordinator import CoordinatorConfig
from system_tests.levels import LevelSource
from system_tests.sim import World, WorldSetup
from system_tests.sim.world import StateRates, StreamThread

RELEASES: Final = ("native", "next")
"""Releases between which the members are bounced."""
_PROTOCOL_LEVELS: Final = (4, 9, 11, 101)


def group_levels_of(finalized: FinalizedLevels, governing: str) -> FinalizedLevels:
    """Return the levels of the group that finalized levels of the cluster stand for."""
    level = finalized.level_of(governing)
    found = {ASSIGNMENT_PROTOCOL: _PROTOCOL_LEVELS[level % len(_PROTOCOL_LEVELS)]} if level else {}
    return FinalizedLevels(levels=found, epoch=finalized.epoch)


def client_world(seed: int, *, members: int) -> World:
    """Return a group without state whose members look for levels; none of them runs."""
    setup = WorldSetup(
        seed=seed,
        processes=members,
        rates=StateRates(history=0, growth=0),
        broker=CoordinatorConfig(initial_rebalance_delay_ms=0),
        levels=UNKNOWN_LEVELS,
    )
    return World(setup)


class ClientGroup(LevelSource):
    """The members of a group, as clients of a cluster.

    Attributes:
        cluster: where the members look for levels.
        answers_from: name of the only broker that answers; "": a random one.
    """

    def __init__(self, world: World, cluster: Cluster) -> None:
        """Start all members."""
        super().__init__(world)
        self.cluster = cluster
        self.answers_from = ""
        for process in range(self.size):
            world.start(process, RELEASES[0])

    @property
    def size(self) -> int:
        """The number of members."""
        return self.world.setup.processes

    def restart(self, process: int) -> None:
        """Restart a member, perhaps on another release; it knows no levels."""
        self.world.stop(process)
        self.world.start(process, self.scheduler.choose(RELEASES))

    def lagging_member(self, finalized: FinalizedLevels) -> str:
        """Return the name of a member that does not go by the levels of the cluster, or ""."""
        wanted = self._levels_of(finalized).levels
        threads = self.world.threads
        return next((t.name for t in threads if t.streams.state.levels.levels != wanted), "")

    def levels_for(self, _: StreamThread) -> tuple[str, FinalizedLevels] | None:
        """Return a broker that runs and is registered, and its levels; None if there is none."""
        usable = [
            broker
            for broker in self.cluster.brokers
            if broker.is_up
            and broker.is_registered
            and broker.paused_until_ms <= self.now_ms
            and self.answers_from in ("", broker.name)
        ]
        if not usable:
            return None
        broker = self.scheduler.choose(usable)
        return broker.name, self._levels_of(broker.published)

    def _levels_of(self, finalized: FinalizedLevels) -> FinalizedLevels:
        return group_levels_of(finalized, self.cluster.realm.governing)
