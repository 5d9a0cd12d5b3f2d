"""The simulated group: threads, disks, coordinator, messages on their way, one clock."""

from system_tests.sim.world.assignment import ask_for_rebalance
from system_tests.sim.world.behaviour import LATER, Behaviour, behaviour_of
from system_tests.sim.world.consumer import beat
from system_tests.sim.world.dimensions import NO_DIMENSIONS, Dimensions
from system_tests.sim.world.disk import StateRates
from system_tests.sim.world.leading import lead
from system_tests.sim.world.observing import has_forgotten, rested, routed_by
from system_tests.sim.world.remembered import forget_answers
from system_tests.sim.world.settling import SETTLE_MS, settle_world
from system_tests.sim.world.setup import (
    GROUP,
    INSTANCE,
    LOOK_MS,
    RESTARTS,
    Application,
    Network,
    WorldSetup,
)
from system_tests.sim.world.simulation import World
from system_tests.sim.world.state import LeaderPlace, Led, MemberIds
from system_tests.sim.world.thread import Phase, StreamThread
from system_tests.sim.world.transport import absorb
from system_tests.sim.world.wire import read_assignment, read_subscription

__all__ = [
    "GROUP",
    "INSTANCE",
    "LATER",
    "LOOK_MS",
    "NO_DIMENSIONS",
    "RESTARTS",
    "SETTLE_MS",
    "Application",
    "Behaviour",
    "Dimensions",
    "LeaderPlace",
    "Led",
    "MemberIds",
    "Network",
    "Phase",
    "StateRates",
    "StreamThread",
    "World",
    "WorldSetup",
    "absorb",
    "ask_for_rebalance",
    "beat",
    "behaviour_of",
    "forget_answers",
    "has_forgotten",
    "lead",
    "read_assignment",
    "read_subscription",
    "rested",
    "routed_by",
    "settle_world",
]
