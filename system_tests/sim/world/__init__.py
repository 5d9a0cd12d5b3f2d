"""The simulated system: threads, disks, coordinator, messages in flight, one clock."""

from system_tests.sim.world.behaviour import Behaviour, behaviour_of
from system_tests.sim.world.consumer import GROUP, beat
from system_tests.sim.world.dimensions import NO_DIMENSIONS, Dimensions
from system_tests.sim.world.disk import StateRates
from system_tests.sim.world.leading import LeaderPlace, Led
from system_tests.sim.world.observing import routed_by
from system_tests.sim.world.remembered import forget_answers
from system_tests.sim.world.scheduler import Pending, Scheduler
from system_tests.sim.world.setup import INSTANCE, Network, WorldSetup
from system_tests.sim.world.simulation import World
from system_tests.sim.world.thread import Phase, StreamThread
from system_tests.sim.world.wire import read_assignment, read_subscription

__all__ = [
    "GROUP",
    "INSTANCE",
    "NO_DIMENSIONS",
    "Behaviour",
    "Dimensions",
    "LeaderPlace",
    "Led",
    "Network",
    "Pending",
    "Phase",
    "Scheduler",
    "StateRates",
    "StreamThread",
    "World",
    "WorldSetup",
    "beat",
    "behaviour_of",
    "forget_answers",
    "read_assignment",
    "read_subscription",
    "routed_by",
]
