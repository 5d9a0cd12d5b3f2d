"""The simulated world: one seed, the only clock, the only dice; real bytes between members."""

from system_tests.sim.bounce import Bounce, Outcome, run_bounce
from system_tests.sim.checkers import SAFETY, Broken, Evidence, SafetyRule, check_step, check_trace
from system_tests.sim.cost import Cost, cost_of
from system_tests.sim.document import outcome_document
from system_tests.sim.fleet import Chunk, Failure, judge_seeds, run_fleet, run_seeds
from system_tests.sim.known import KNOWN, Shape, known_issues
from system_tests.sim.liveness import count_rebalances
from system_tests.sim.narrate import outcome_lines, replay_command, trace_lines
from system_tests.sim.options import read_options
from system_tests.sim.plan import (
    FAULTS,
    BounceOptions,
    OptionError,
    Plan,
    plan_bounce,
    should_work,
)
from system_tests.sim.scheduler import Pending, Scheduler
from system_tests.sim.setup import Network, WorldSetup
from system_tests.sim.world import World

__all__ = [
    "FAULTS",
    "KNOWN",
    "SAFETY",
    "Bounce",
    "BounceOptions",
    "Broken",
    "Chunk",
    "Cost",
    "Evidence",
    "Failure",
    "Network",
    "OptionError",
    "Outcome",
    "Pending",
    "Plan",
    "SafetyRule",
    "Scheduler",
    "Shape",
    "World",
    "WorldSetup",
    "check_step",
    "check_trace",
    "cost_of",
    "count_rebalances",
    "judge_seeds",
    "known_issues",
    "outcome_document",
    "outcome_lines",
    "plan_bounce",
    "read_options",
    "replay_command",
    "run_bounce",
    "run_fleet",
    "run_seeds",
    "should_work",
    "trace_lines",
]
