"""The target of stateful active tasks: their clients once all warm-ups have caught up.

Every client keeps the tasks that it runs, up to its band. Tasks that must move go along *hot* paths
first: from a client with too many to one with too few, over clients that are caught up on the tasks
that they get, shortest path first, so that nothing is restored. The rest goes to copies that are
catching up, then evenly over the subtopologies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.bands import fill, quotas, released, thread_bands
from assignor.placement.handover_paths import moved_along_hot_paths
from assignor.placement.state import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    BoolArray,
    GroupState,
    IntArray,
)
from assignor.placement.weights import weighted_target


def homes(state: GroupState) -> IntArray:
    """Int [T]: the *home* of each task, the client that should keep it; NOBODY if there is none.

    The home is the running owner if it is caught up. If no client is, it is the owner as long as it
    has state and no copy's lag is smaller by more than the acceptable recovery lag. Stateless tasks
    have no home.
    """
    task, hot = state.copy_task(), state.is_caught_up()
    anywhere = state.starts_anywhere()
    at_owner = state.copy_client == state.owner[task]
    owner_is_hot, has_state, has_hot = anywhere.copy(), ~anywhere, anywhere.copy()
    owner_is_hot[task[at_owner]] = False
    owner_is_hot[task[at_owner & hot]] = True
    # If the owner reports no lag, it is the home, unless another client has state.
    has_state[task] = False
    has_state[task[at_owner]] = True
    has_hot[task[hot]] = True
    usable = state.stateful & (state.owner != NOBODY) & (state.capacity()[state.owner] > 0)
    is_behind = usable & ~has_hot & has_state
    if is_behind.any():
        is_behind &= ~_is_far_behind(state, at_owner)
    return np.where((usable & owner_is_hot) | is_behind, state.owner, NOBODY)


def _is_far_behind(state: GroupState, at_owner: BoolArray) -> BoolArray:
    """Bool [T]: whether another usable copy has a far smaller lag than the owner's known lag."""
    task, lag = state.copy_task(), state.copy_lag
    nearest = np.full(len(state.tasks), LAG_UNKNOWN, dtype=np.int64)
    is_other = ~at_owner & (state.capacity()[state.copy_client] > 0)
    np.minimum.at(nearest, task[is_other], lag[is_other])
    own = np.full(len(state.tasks), LAG_RUNNING, dtype=np.int64)
    own[task[at_owner]] = lag[at_owner]
    far: BoolArray = (own != LAG_UNKNOWN) & (nearest < own - state.config.acceptable_recovery_lag)
    return far


def target_actives(state: GroupState, home: IntArray | None = None) -> IntArray:
    """Int [T]: the client that is to run each stateful task; NOBODY for stateless tasks.

    Threads differ by at most one stateful task, and each client can still reach its share of all
    active tasks. If tasks have weights, the work of the busiest client is near the least possible
    instead. O(T + N + moves log C) in the usual case.

    Args:
        state: the group.
        home: int [T], its `homes` if they are already computed; not changed.
    """
    home = homes(state) if home is None else home
    chosen = np.flatnonzero(state.stateful)
    if state.weights is not None and len(chosen):
        target = np.full(len(state.tasks), NOBODY, dtype=np.int64)
        target[chosen] = weighted_target(state, chosen, home, target, state.weights)
        return target
    capacity = state.capacity()
    bands = thread_bands(capacity, len(chosen))
    held = home[chosen]
    count = np.bincount(held[held != NOBODY], minlength=len(capacity)).astype(np.int64)
    is_settled = (count >= bands.low).all() and (count <= bands.high).all()
    if is_settled and not (held == NOBODY).any():
        return _with_share_for_all(state, home.copy())
    target = moved_along_hot_paths(state, home, count)
    _place_rest(state, chosen, target)
    return _with_share_for_all(state, target)


def _with_share_for_all(state: GroupState, target: IntArray) -> IntArray:
    """Int [T]: the target, changed where it leaves a client less than its share of all tasks.

    Every client is inside its band of stateful tasks, and stays there. If too many clients hold
    more of them than their share of *all* active tasks, rounded down, the stateless tasks are too
    few to fill the share of the others. Then some clients give a task to clients below their share;
    those always exist, since a table can be rounded so that its rows and columns add up. The
    cheapest moves are made first: tasks that move anyway, to caught-up clients, then the least to
    restore.
    """
    total, capacity = len(state.tasks), state.capacity()
    least = thread_bands(capacity, total).low
    held = target[state.stateful]
    count = np.bincount(held, minlength=len(capacity)).astype(np.int64)
    excess = int(np.maximum(count, least).sum()) - total
    if excess <= 0:
        return target
    bands = thread_bands(capacity, len(held))
    surplus = np.maximum(count - np.maximum(least, bands.low), 0)
    free = np.maximum(np.minimum(least, bands.high) - count, 0)
    takers = sorted(np.flatnonzero(free).tolist(), key=lambda c: (count[c] / capacity[c], c))
    changed = target.copy()
    for *_, task, to in _cheapest_moves(state, target, surplus, free):
        giver = int(target[task])
        while takers and not free[takers[0]]:
            takers.pop(0)
        taker = takers[0] if to == NOBODY and takers else to
        if excess and changed[task] == giver and surplus[giver] and taker != NOBODY and free[taker]:
            changed[task] = taker
            surplus[giver] -= 1
            free[taker] -= 1
            excess -= 1
    return changed


def _cheapest_moves(
    state: GroupState, target: IntArray, surplus: IntArray, free: IntArray
) -> list[tuple[int, int, int, int]]:
    """Possible moves as (hand-offs and restores, records to restore, task, taker), cheapest first.

    The taker is NOBODY for any client without state of the task.

    Args:
        state: the group.
        target: int [T].
        surplus: int [C], tasks that each client must give.
        free: int [C], tasks that each client can take.
    """
    limit = state.config.acceptable_recovery_lag
    moves = []
    for task in np.flatnonzero(state.stateful & (surplus[target] > 0)).tolist():
        giver = int(target[task])
        copies, end = dict(state.copies(task)), int(state.end_offset_sums[task])
        handoffs = int(state.owner[task] == giver)
        is_restored = copies.get(giver, end) <= limit
        for taker, lag in (*copies.items(), (NOBODY, end)):
            if taker == NOBODY or free[taker]:
                moves.append((handoffs + (is_restored and lag > limit), lag, task, taker))
    return sorted(moves)


def _place_rest(state: GroupState, chosen: IntArray, target: IntArray) -> None:
    """Compute the quotas, and place into `target` the tasks that no hot path reached."""
    capacity, clients = state.capacity(), len(state.clients)
    held = target[chosen]
    count = np.bincount(held[held != NOBODY], minlength=clients).astype(np.int64)
    free = quotas(count + _nearest_copies(state, target), capacity, len(chosen)) - count
    _place_on_partial_copies(state, target, free)
    left = np.flatnonzero(state.stateful & (target == NOBODY)).tolist()
    rows = np.flatnonzero((target != NOBODY) & (free[target] < 0))
    for client, own in rows_by_value(target[rows], rows).items():
        gone = released(state, own, -int(free[client]))
        target[gone] = NOBODY
        left += gone
    fill(state, sorted(left), target, np.maximum(free, 0), capacity)


def _nearest_copies(state: GroupState, target: IntArray) -> IntArray:
    """Int [C]: how many tasks without a home have their nearest copy on each client."""
    task = state.copy_task()
    where = np.flatnonzero(state.stateful[task] & (target[task] == NOBODY))
    where = where[np.lexsort((state.copy_client[where], state.copy_lag[where], task[where]))]
    is_first = np.diff(task[where], prepend=-1) != 0
    found = np.bincount(state.copy_client[where[is_first]], minlength=len(state.clients))
    return np.where(state.capacity() > 0, found, 0).astype(np.int64)


@dataclass(slots=True, kw_only=True)
class _TieBreak:
    """Chooses among several clients the one with the fewest tasks of a task's subtopology.

    Attributes:
        subtopology: of each task.
        threads: of each client.
        held: (subtopology, client) -> tasks placed so far.
    """

    subtopology: list[int]
    threads: list[int]
    held: dict[tuple[int, int], int]

    @classmethod
    def of(cls, state: GroupState, target: IntArray) -> "_TieBreak":
        """A tie break that has counted the tasks in `target`."""
        placed, width = np.flatnonzero(target != NOBODY), len(state.clients)
        pairs = state.subtopology[placed] * width + target[placed]
        names, counts = np.unique(pairs, return_counts=True)
        keys = zip((names // width).tolist(), (names % width).tolist(), strict=True)
        held = dict(zip(keys, counts.tolist(), strict=True))
        return cls(
            subtopology=state.subtopology.tolist(), threads=state.capacity().tolist(), held=held
        )

    def choose(self, task: int, able: Sequence[int], free: Sequence[int]) -> int:
        """The client of `able` that takes the task; the task is counted on it from now on."""
        sub, threads = self.subtopology[task], self.threads

        def load(client: int) -> tuple[float, float, int]:
            held = self.held.get((sub, client), 0)
            return (held / threads[client], -free[client] / threads[client], client)

        client = min(able, key=load) if len(able) > 1 else able[0]
        self.held[sub, client] = self.held.get((sub, client), 0) + 1
        return client


def _place_on_partial_copies(state: GroupState, target: IntArray, free: IntArray) -> None:
    """Place tasks without a home, and those above quotas, on the copies with the smallest lag.

    So a warm-up that takes several rebalances keeps its destination. Changes `target` and `free`.
    """
    task = state.copy_task()
    giver = target[task]
    may_leave: BoolArray = (giver == NOBODY) | (free[giver] < 0)
    useful = may_leave & (free[state.copy_client] > 0) & (giver != state.copy_client)
    useful &= state.stateful[task]
    # A small task is restored from nothing rather than from state that is further behind.
    useful &= state.is_caught_up() | ~state.starts_anywhere()[task]
    where = np.flatnonzero(useful)
    if not len(where):
        return
    keys = (state.copy_client[where], task[where], state.copy_lag[where], giver[where] != NOBODY)
    where = where[np.lexsort(keys)]
    of_row, lags = task[where], state.copy_lag[where]
    # Copies of a task with equal lags are neighbours in this order.
    is_first = (np.diff(of_row, prepend=-1) != 0) | (np.diff(lags, prepend=-2) != 0)
    starts = [*np.flatnonzero(is_first).tolist(), len(where)]
    tasks, clients = of_row.tolist(), state.copy_client[where].tolist()
    free_left, givers, ties = free.tolist(), giver[where].tolist(), _TieBreak.of(state, target)
    for start, end in pairwise(starts):
        moved = tasks[start]
        old = int(target[moved])
        if old != givers[start] or (old != NOBODY and free_left[old] >= 0):
            continue
        able = [client for client in clients[start:end] if free_left[client] > 0]
        if not able:
            continue
        client = ties.choose(moved, able, free_left)
        target[moved] = client
        free_left[client] -= 1
        if old != NOBODY:
            free_left[old] += 1
    free[:] = free_left
