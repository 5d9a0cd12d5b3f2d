"""Placement of tasks on clients: group state, bands, standbys, movements, strategies.

What `high_availability` and `sticky` minimise. The numbers give the order of the steps, not a
strict order of importance: each goal names what it may cost of the goals before it.

1. *Nothing cold*: stateful tasks that start on a client that is behind while another client is
   caught up, or nearer by more than `acceptable.recovery.lag`. A rule of each rebalance
   (`movements.actives_now`), in `high_availability` only.
2. *Balance*: tasks outside a client's band, its share of the stateful tasks by threads, rounded
   down or up; then the same for all active tasks (`bands`). With weights instead the work of the
   busiest client, within 4 % of a new placement, heaviest task first (`weights`).
3. *Moves*: restores, hand-offs (tasks that leave the client that runs them) and records to restore
   (`actives`). At most one task leaves its home for one restore that is saved. Shortest paths of
   moves, one task after another: not exact.
4. *Racks*: traffic_cost x partitions read from another rack + non_overlap_cost x tasks that leave
   their place (`racks`). Each client keeps its number of tasks, so balance stays; hand-offs and
   restores (3) may grow, each at the non-overlap cost. Exact for few racks and small graphs.
5. *Standbys*: copies of a task that share tag values or racks though others are free; copies
   outside the bands of actives and standbys together; copies to restore; their rack costs
   (`standbys`). Copies are placed one after another, with exchanges: not exact.
6. *Crashes*: survivors above 1.2 times the average load after one crash, in groups without tags and
   racks (`standbys.failover_load`). Copies leave their state for it, so restores of standbys (5)
   grow. Not exact, and only up to 6,000 copies.
7. *Stateless moves*: stateless tasks that leave their client (`bands.place_stateless`). Not exact:
   new tasks start where the fewest tasks run now, which may move others later.

Goals 2 to 7 describe the final places. `movements.settle` makes the steps towards them, at most
`max.warmup.replicas` copies at a time.

docs/assignors.md has the measured price of what is not exact.
"""

from assignor.placement.actives import homes
from assignor.placement.arrays import is_among
from assignor.placement.bands import Bands, quotas, thread_bands
from assignor.placement.builtin import fallback_prior, high_availability, sticky
from assignor.placement.client_shares import (
    BelowShare,
    Shortage,
    below_share,
    busiest,
    is_stuck,
    least_lags,
    share_lines,
    share_warnings,
    stalled_clients,
    stalled_text,
    work_of,
)
from assignor.placement.movements import is_ready, nearest_places
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
    run_with_trace,
    strategy_name,
    strategy_of,
)
from assignor.placement.trace import Record, Trace
from assignor.placement.user_modules import user_module
from assignor.placement.validation import (
    AssignmentError,
    InvalidAssignment,
    Violation,
    error_line,
    sentences,
    validate,
)
from assignor.placement.weights import WEIGHT_TOLERANCE

__all__ = [
    "LAG_RUNNING",
    "LAG_UNKNOWN",
    "NOBODY",
    "STRATEGIES",
    "WEIGHT_TOLERANCE",
    "AssignmentError",
    "Bands",
    "BelowShare",
    "BoolArray",
    "ClientInput",
    "ClientTasks",
    "FloatArray",
    "GroupState",
    "IntArray",
    "InvalidAssignment",
    "RacksByTask",
    "Record",
    "Shortage",
    "Strategy",
    "TaskAssignment",
    "TaskPlaces",
    "Trace",
    "Violation",
    "assignment_from",
    "below_share",
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
    "is_stuck",
    "lag_warnings",
    "least_lags",
    "named_strategy",
    "nearest_caught_up_client",
    "nearest_places",
    "quotas",
    "run_strategy",
    "run_with_trace",
    "sentences",
    "share_lines",
    "share_warnings",
    "stalled_clients",
    "stalled_text",
    "sticky",
    "strategy_name",
    "strategy_of",
    "thread_bands",
    "user_module",
    "validate",
    "work_of",
]
