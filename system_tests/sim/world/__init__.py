"""The simulated group: threads, disks, coordinator, messages on their way, one clock."""

from system_tests.sim.world.behaviour import Behaviour, behaviour_of
from system_tests.sim.world.consumer import beat
from system_tests.sim.world.dimensions import NO_DIMENSIONS, Dimensions
from system_tests.sim.world.disk import StateRates
from system_tests.sim.world.leading import lead
from system_tests.sim.world.observing import (
    has_forgotten,
    rested,
    routed_by,
)
from system_tests.sim.world.remembered import forget_answers
from system_tests.sim.world.setup import (
    GROUP,
    INSTANCE,
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
    "NO_DIMENSIONS",
    "RESTARTS",
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
    "beat",
    "behaviour_of",
    "forget_answers",
    "has_forgotten",
    "lead",
    "read_assignment",
    "read_subscription",
    "rested",
    "routed_by",
]
