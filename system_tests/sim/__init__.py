"""Simulated groups: one seed, one clock, one random generator; real bytes between members."""

from system_tests.sim.bounce import BounceOutcome, run_bounce
from system_tests.sim.checkers import (
    SAFETY,
    Evidence,
    check_step,
    check_trace,
    natives_do_not_rejoin,
    nothing_is_forgotten,
)
from system_tests.sim.cost import cost_of
from system_tests.sim.dimension_checkers import DIMENSION_RULES, check_dimensions
from system_tests.sim.draws import drawn_change, should_work
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
from system_tests.sim.known_issues import KNOWN, Shape, known_issues, not_modelled
from system_tests.sim.level_events import Adopted, Finalized, Looked
from system_tests.sim.liveness import (
    check_all_members_are_up,
    check_final_version,
    check_resting_versions,
    count_rebalances,
)
from system_tests.sim.narrate import (
    GROUP_LINES,
    Narrator,
    not_modelled_of,
    outcome_document,
    outcome_lines,
    trace_lines,
)
from system_tests.sim.plan import FAULTS, BounceOptions, Plan, plan_bounce, read_options
from system_tests.sim.topology_checkers import TOPOLOGY_RULES
from system_tests.sim.world import NO_DIMENSIONS, Dimensions, World, WorldSetup, settle_world

__all__ = [
    "DIMENSION_RULES",
    "FAULTS",
    "GROUP_LINES",
    "KNOWN",
    "NO_DIMENSIONS",
    "SAFETY",
    "TOPOLOGY_RULES",
    "Adopted",
    "Answered",
    "BounceOptions",
    "BounceOutcome",
    "Cause",
    "Dimensions",
    "Ended",
    "Evidence",
    "Finalized",
    "Gave",
    "Happened",
    "Happening",
    "Looked",
    "Narrator",
    "Plan",
    "Rejoined",
    "Settled",
    "Shape",
    "Started",
    "Took",
    "Unsettled",
    "World",
    "WorldSetup",
    "Wrote",
    "check_all_members_are_up",
    "check_dimensions",
    "check_final_version",
    "check_resting_versions",
    "check_step",
    "check_trace",
    "cost_of",
    "count_rebalances",
    "drawn_change",
    "known_issues",
    "natives_do_not_rejoin",
    "not_modelled",
    "not_modelled_of",
    "nothing_is_forgotten",
    "outcome_document",
    "outcome_lines",
    "plan_bounce",
    "read_options",
    "run_bounce",
    "settle_world",
    "should_work",
    "trace_lines",
]
