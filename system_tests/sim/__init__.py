"""The simulated world: one seed, the only clock, the only dice; real bytes between members."""

from system_tests.sim.bounce import Bounce, Outcome, run_bounce
from system_tests.sim.checkers import SAFETY, Broken, Evidence, SafetyRule, check_step, check_trace
from system_tests.sim.cost import Cost, cost_of
from system_tests.sim.events import (
    Answered,
    Cause,
    Ended,
    Gave,
    Happened,
    Happening,
    Rejoined,
    Settled,
    Started,
    Took,
    Unsettled,
    Wrote,
)
from system_tests.sim.fleet import (
    Chunk,
    Failure,
    judge_seeds,
    leave_interrupts_to_the_parent,
    run_fleet,
    run_seeds,
)
from system_tests.sim.known_issues import KNOWN, Shape, known_issues
from system_tests.sim.liveness import (
    check_final_version,
    check_resting_versions,
    count_rebalances,
)
from system_tests.sim.narrate import outcome_document, outcome_lines, replay_command, trace_lines
from system_tests.sim.plan import (
    FAULTS,
    BounceOptions,
    OptionError,
    Plan,
    plan_bounce,
    read_options,
    should_work,
)
from system_tests.sim.world import Network, Pending, Scheduler, World, WorldSetup

__all__ = [
    "FAULTS",
    "KNOWN",
    "SAFETY",
    "Answered",
    "Bounce",
    "BounceOptions",
    "Broken",
    "Cause",
    "Chunk",
    "Cost",
    "Ended",
    "Evidence",
    "Failure",
    "Gave",
    "Happened",
    "Happening",
    "Network",
    "OptionError",
    "Outcome",
    "Pending",
    "Plan",
    "Rejoined",
    "SafetyRule",
    "Scheduler",
    "Settled",
    "Shape",
    "Started",
    "Took",
    "Unsettled",
    "World",
    "WorldSetup",
    "Wrote",
    "check_final_version",
    "check_resting_versions",
    "check_step",
    "check_trace",
    "cost_of",
    "count_rebalances",
    "judge_seeds",
    "known_issues",
    "leave_interrupts_to_the_parent",
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
