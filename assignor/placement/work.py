"""The work of each client: the weights of what it runs, or their number."""

import numpy as np

from assignor.placement.state import NOBODY, FloatArray, GroupState, IntArray


def work_of(state: GroupState, active: IntArray) -> FloatArray:
    """Float [C]: the work of the tasks that each client runs; without weights their number.

    Args:
        state: the group.
        active: int [T], the client of every task; tasks on NOBODY count nowhere.
    """
    placed = active != NOBODY
    weights = None if state.weights is None else state.weights[placed]
    work = np.bincount(active[placed], weights=weights, minlength=len(state.clients))
    return work.astype(np.float64)


def busiest(state: GroupState, active: IntArray) -> tuple[int, float]:
    """The client with the most work a thread, the first among equals, and that work."""
    capacity = state.capacity()
    each = np.where(capacity > 0, work_of(state, active) / np.maximum(capacity, 1), 0.0)
    client = int(each.argmax())
    return client, float(each[client])
