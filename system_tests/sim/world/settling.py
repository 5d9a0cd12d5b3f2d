"""Waiting until a group is at rest."""

from typing import Final

from system_tests.sim.events import Settled, Unsettled
from system_tests.sim.world.observing import rested
from system_tests.sim.world.simulation import World

SETTLE_MS: Final = 1_200_000


def settle_world(world: World) -> bool:
    """Wait for the group to come to rest, and record it; return whether it did."""
    if world.run(until=world.is_settled, within_ms=SETTLE_MS):
        leader = world.leader()
        used = tuple(
            (thread.name, thread.streams.state.used_version)
            for thread in world.threads
            if thread.is_up
        )
        generation = max(thread.generation for thread in world.threads if thread.is_up)
        name = leader.name if leader else ""
        world.record(Settled(world.now_ms, generation, name, used))
        if world.setup.is_observed:
            world.record(rested(world))
        return True
    restless = [thread.name for thread in world.threads if not thread.is_resting]
    why = f"waiting for {', '.join(restless)}" if restless else "a member that left is remembered"
    world.record(Unsettled(world.now_ms, SETTLE_MS, why))
    return False
