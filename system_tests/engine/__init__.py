"""The engine of all simulated systems: clock, events, trace, checkers, many seeds."""

from system_tests.engine.checkers import Broken, Checker, Finished, check_event, check_events
from system_tests.engine.scheduler import Pending, Scheduler
from system_tests.engine.seeds import Chunk, Failure, OptionError, Outcome, run_fleet
from system_tests.engine.simulation import Actor, Handler, Simulation

__all__ = [
    "Actor",
    "Broken",
    "Checker",
    "Chunk",
    "Failure",
    "Finished",
    "Handler",
    "OptionError",
    "Outcome",
    "Pending",
    "Scheduler",
    "Simulation",
    "check_event",
    "check_events",
    "run_fleet",
]
