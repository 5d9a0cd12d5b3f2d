"""`fallback_prior`: lags cannot be known just now, so nothing is moved that runs.

What a leader does when end offsets cannot be read (Kafka's FallbackPriorTaskAssignor): owners keep
everything whatever the balance, tasks without an owner go to a client that has a copy, and a
follow-up rebalance is asked for, to look again.
"""

import numpy as np

from assignor.bands import fill, place_stateless, quotas
from assignor.standbys import target_standbys
from assignor.state import NOBODY, GroupState, TaskAssignment


def fallback_prior(state: GroupState) -> TaskAssignment:
    """Every owner keeps its tasks; the rest goes to copies, then to the least loaded.

    O((T + C + N) log C) time. Always asks for a follow-up rebalance.
    """
    capacity = state.capacity()
    owner = np.where(capacity[state.owner] > 0, state.owner, NOBODY)
    active = np.where(state.stateful, owner, NOBODY)
    for task in np.flatnonzero(state.stateful & (active == NOBODY)).tolist():
        copies = [(lag, c) for c, lag in state.copies(task) if capacity[c] > 0]
        if copies:
            # Among equal lags the first client: all that is known here is who has state.
            active[task] = min(copies)[1]
    homeless = np.flatnonzero(state.stateful & (active == NOBODY)).tolist()
    count = np.bincount(active[active != NOBODY], minlength=len(capacity)).astype(np.int64)
    room = quotas(count, capacity, int(state.stateful.sum()), at_least=count) - count
    fill(state, homeless, active, room, capacity)
    stateless = np.where(state.stateful, NOBODY, owner)
    place_stateless(state, active)
    active = np.where(stateless != NOBODY, stateless, active)
    standbys = target_standbys(state, active)
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return TaskAssignment(
        active=active, standbys=tuple(pairs), followup=True, warnings=standbys.warnings
    )
