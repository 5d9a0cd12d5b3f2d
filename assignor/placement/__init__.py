"""Placement of tasks on clients: group state, bands, standbys, movements, strategies."""

from assignor.placement.actives import homes, target_actives
from assignor.placement.bands import (
    Bands,
    place_stateless,
    quotas,
    thread_bands,
    with_fresh_stateless,
)
from assignor.placement.builtin import fallback_prior, high_availability, sticky
from assignor.placement.copies_apart import Spread
from assignor.placement.final_places import targets, with_rack_costs
from assignor.placement.movements import actives_now, is_among, is_ready
from assignor.placement.names import (
    ClientTasks,
    TaskPlaces,
    assignment_from,
    by_client,
    by_task,
    client_inputs,
    nearest_caught_up_client,
)
from assignor.placement.state import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    BoolArray,
    ClientInput,
    FloatArray,
    GroupState,
    IntArray,
    RacksByTask,
    Strategy,
    TaskAssignment,
    group_state,
    lag_warnings,
)
from assignor.placement.strategies import (
    STRATEGIES,
    default_standbys,
    find_strategy,
    identity,
    named_strategy,
    run_strategy,
)
from assignor.placement.validation import (
    AssignmentError,
    InvalidAssignment,
    Violation,
    error_line,
    sentences,
    validate,
)
from assignor.placement.weights import busiest, work_of

__all__ = [
    "LAG_RUNNING",
    "LAG_UNKNOWN",
    "NOBODY",
    "STRATEGIES",
    "AssignmentError",
    "Bands",
    "BoolArray",
    "ClientInput",
    "ClientTasks",
    "FloatArray",
    "GroupState",
    "IntArray",
    "InvalidAssignment",
    "RacksByTask",
    "Spread",
    "Strategy",
    "TaskAssignment",
    "TaskPlaces",
    "Violation",
    "actives_now",
    "assignment_from",
    "busiest",
    "by_client",
    "by_task",
    "client_inputs",
    "default_standbys",
    "error_line",
    "fallback_prior",
    "find_strategy",
    "group_state",
    "high_availability",
    "homes",
    "identity",
    "is_among",
    "is_ready",
    "lag_warnings",
    "named_strategy",
    "nearest_caught_up_client",
    "place_stateless",
    "quotas",
    "run_strategy",
    "sentences",
    "sticky",
    "target_actives",
    "targets",
    "thread_bands",
    "validate",
    "with_fresh_stateless",
    "with_rack_costs",
    "work_of",
]
