"""`fallback_prior`: lags cannot be known just now, so nothing is moved that runs.

What a leader does when end offsets cannot be read (Kafka's FallbackPriorTaskAssignor): owners keep
everything whatever the balance, tasks without an owner go to a client that has a copy, and a
follow-up rebalance is asked for, to look again.
"""

import numpy as np

from assignor.bands import keep_owners
from assignor.standbys import target_standbys
from assignor.state import NOBODY, GroupState, TaskAssignment


def fallback_prior(state: GroupState) -> TaskAssignment:
    """Every owner keeps its tasks; the rest goes to copies, then to the least loaded.

    O((T + C + N) log C) time. Always asks for a follow-up rebalance.
    """
    capacity = state.capacity()
    owner = np.where(capacity[state.owner] > 0, state.owner, NOBODY)
    for task in np.flatnonzero(state.stateful & (owner == NOBODY)).tolist():
        copies = [(lag, c) for c, lag in state.copies(task) if capacity[c] > 0]
        if copies:
            # Among equal lags the first client: all that is known here is who has state.
            owner[task] = min(copies)[1]
    active = keep_owners(state, owner)
    standbys = target_standbys(state, active)
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return TaskAssignment(
        active=active, standbys=tuple(pairs), followup=True, warnings=standbys.warnings
    )
