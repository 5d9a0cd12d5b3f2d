"""Upgrade plans: steps, costs, warnings and the rollback after each step."""

from system_tests.plan.changes import (
    ANNOUNCED,
    CHANGES,
    NOT_CHECKED,
    Announced,
    PathChange,
    ReleaseChange,
    Subject,
    When,
    changes_between,
    changes_when,
    find_target,
    with_sources,
)
from system_tests.plan.cost import (
    StepCost,
    StepRun,
    bounces_to_run,
    check_group,
    estimated_s,
    step_costs,
)
from system_tests.plan.cost_text import costs_lines, seconds_text
from system_tests.plan.decision import decision_of, verdict_line
from system_tests.plan.figures import spoken
from system_tests.plan.group import MOST_MEMBERS, UNNAMED, SimulatedGroup, as_static, scaled
from system_tests.plan.model import PlanStep, Way
from system_tests.plan.rehearsal import NOT_REHEARSED
from system_tests.plan.saved import (
    SavedGroup,
    begun_bounce,
    read_saved,
    read_saved_topology,
    saved_group,
    spelled_releases,
    way_back,
)
from system_tests.plan.steps import UpgradePlan, make_plan
from system_tests.plan.streams import (
    INITIAL_DELAY_MS,
    RESTORE_RATE,
    Restored,
    StreamsMove,
    plan_streams_move,
    plan_streams_upgrade,
    reports_offsets,
    restored_by_broker,
)
from system_tests.plan.streams import TARGET as STREAMS
from system_tests.plan.text import WAY_BACK_IS, assumptions, plan_document, plan_lines
from system_tests.plan.topologies import (
    PlannedTopology,
    TopologyPlan,
    topology_lines,
    topology_plan,
)
from system_tests.plan.uses import SIGNS, Use, read_uses

__all__ = [
    "ANNOUNCED",
    "CHANGES",
    "INITIAL_DELAY_MS",
    "MOST_MEMBERS",
    "NOT_CHECKED",
    "NOT_REHEARSED",
    "RESTORE_RATE",
    "SIGNS",
    "STREAMS",
    "UNNAMED",
    "WAY_BACK_IS",
    "Announced",
    "PathChange",
    "PlanStep",
    "PlannedTopology",
    "ReleaseChange",
    "Restored",
    "SavedGroup",
    "SimulatedGroup",
    "StepCost",
    "StepRun",
    "StreamsMove",
    "Subject",
    "TopologyPlan",
    "UpgradePlan",
    "Use",
    "Way",
    "When",
    "as_static",
    "assumptions",
    "begun_bounce",
    "bounces_to_run",
    "changes_between",
    "changes_when",
    "check_group",
    "costs_lines",
    "decision_of",
    "estimated_s",
    "find_target",
    "make_plan",
    "plan_document",
    "plan_lines",
    "plan_streams_move",
    "plan_streams_upgrade",
    "read_saved",
    "read_saved_topology",
    "read_uses",
    "reports_offsets",
    "restored_by_broker",
    "saved_group",
    "scaled",
    "seconds_text",
    "spelled_releases",
    "spoken",
    "step_costs",
    "topology_lines",
    "topology_plan",
    "verdict_line",
    "way_back",
    "with_sources",
]
