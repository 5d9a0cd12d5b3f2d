"""Placement of tasks on clients: group state, bands, standbys, movements, strategies."""

from assignor.placement.actives import homes, target_actives
from assignor.placement.bands import Bands, place_stateless, quotas, thread_bands
from assignor.placement.builtin import fallback_prior, high_availability, sticky
from assignor.placement.client_shares import (
    BelowShare,
    Shortage,
    below_share,
    share_lines,
    share_warnings,
    stalled_text,
)
from assignor.placement.copies_apart import Spread
from assignor.placement.final_places import targets, with_rack_costs
from assignor.placement.movements import actives_now, is_among, is_ready
from assignor.placement.state import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    BoolArray,
    ClientInput,
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
from assignor.placement.validation import error_line, validate

__all__ = [
    "LAG_RUNNING",
    "LAG_UNKNOWN",
    "NOBODY",
    "STRATEGIES",
    "Bands",
    "BelowShare",
    "BoolArray",
    "ClientInput",
    "GroupState",
    "IntArray",
    "RacksByTask",
    "Shortage",
    "Spread",
    "Strategy",
    "TaskAssignment",
    "actives_now",
    "below_share",
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
    "place_stateless",
    "quotas",
    "run_strategy",
    "share_lines",
    "share_warnings",
    "stalled_text",
    "sticky",
    "target_actives",
    "targets",
    "thread_bands",
    "validate",
    "with_rack_costs",
]
