"""Bands and quotas: how many tasks each client may hold, and tasks placed evenly within them.

A client's *band* is its proportional share of the tasks, tasks x its threads / all threads, rounded
down and up. Threads of all clients then differ by at most one task, and memory, disk and network
are used in proportion to threads: a second client with as many threads as the first gets half of
the tasks, even if every thread of the first has only one task.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.state import NOBODY, GroupState, IntArray
from assignor.placement.weights import weighted_target


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """Least and most tasks of each client; int [C] both, sum(low) <= total <= sum(high)."""

    low: IntArray
    high: IntArray


def thread_bands(capacity: IntArray, total: int, at_least: IntArray | None = None) -> Bands:
    """Each client's share of `total` tasks, by its threads, rounded down and up.

    Args:
        capacity: int [C], threads, one of them above 0.
        total: tasks to assign.
        at_least: int [C], tasks that are placed already and count in `total`.
    """
    threads = int(capacity.sum())
    low = capacity * total // threads
    high = -(-capacity * total // threads)
    if at_least is None:
        return Bands(low=low, high=high)
    raised = np.maximum(low, at_least)
    # Placed tasks may leave too few for the bands: then each client is only due what it has.
    return Bands(
        low=raised if int(raised.sum()) <= total else at_least, high=np.maximum(high, at_least)
    )


def quotas(
    wanted: IntArray, capacity: IntArray, total: int, *, at_least: IntArray | None = None
) -> IntArray:
    """Tasks per client: inside the bands, as near to `wanted` as possible, sum `total`.

    Args:
        wanted: int [C], the preferred number of tasks of each client.
        capacity: int [C], threads; the bands are `thread_bands`.
        total: tasks to assign.
        at_least: int [C], tasks placed already, a lower bound for each client.
    """
    bands = thread_bands(capacity, total, at_least)
    quota = np.clip(wanted, bands.low, bands.high)
    missing = total - int(quota.sum())
    if not missing:
        return quota
    # Add to the least loaded thread, or take from the most loaded one.
    sign = 1 if missing > 0 else -1
    limit = (bands.high if missing > 0 else bands.low).tolist()
    count, threads = quota.tolist(), capacity.tolist()
    open_clients = np.flatnonzero((capacity > 0) & (quota != np.array(limit))).tolist()
    heap = [(sign * count[c] / threads[c], c) for c in open_clients]
    heapq.heapify(heap)
    for _ in range(abs(missing)):
        _, client = heapq.heappop(heap)
        count[client] += sign
        if count[client] != limit[client]:
            heapq.heappush(heap, (sign * count[client] / threads[client], client))
    return np.array(count, dtype=np.int64)


def deal(tasks: IntArray, free: IntArray) -> IntArray:
    """Clients for tasks in order, so that every run of consecutive tasks is spread evenly.

    If the tasks are sorted by subtopology, each subtopology is spread as evenly as `free` allows.

    Args:
        tasks: int [M].
        free: int [C], tasks that each client takes, sum M.

    Returns:
        int [M], the client of each task.
    """
    clients = np.repeat(np.arange(len(free)), free)
    first = np.repeat(np.cumsum(free) - free, free)
    # The k-th of a client's n places sits at (k + 1/2) / n of the way.
    way = (np.arange(len(tasks)) - first + 0.5) / np.maximum(free[clients], 1)
    return clients[np.lexsort((clients, way))].astype(np.int64)


def fill(
    state: GroupState, tasks: Sequence[int], placed: IntArray, free: IntArray, weight: IntArray
) -> None:
    """Place tasks into `placed`, each on the client with the fewest tasks of its subtopology.

    Args:
        state: the group.
        tasks: the tasks to place, in ascending order, at most sum(free).
        placed: int [T], the clients of the other tasks; changed.
        free: int [C], tasks that each client may still take; lowered.
        weight: int [C], capacity, for comparing clients of unequal size.
    """
    if not len(tasks):
        return
    chosen = np.asarray(tasks, dtype=np.int64)
    if int(free.sum()) == len(chosen) and not (placed != NOBODY).any():
        placed[chosen] = deal(chosen, free)
        free[:] = 0
        return
    is_placed = np.flatnonzero(placed != NOBODY)
    is_placed = is_placed[np.isin(state.subtopology[is_placed], state.subtopology[chosen])]
    placed_by_subtopology = rows_by_value(state.subtopology[is_placed], placed[is_placed])
    # Clients without a task of the subtopology come first; their heap serves all subtopologies.
    threads = weight.tolist()
    others = [(-free[c] / threads[c], c) for c in np.flatnonzero(free > 0).tolist()]
    heapq.heapify(others)
    for sub, own in rows_by_value(state.subtopology[chosen], chosen).items():
        held = Counter(placed_by_subtopology.get(sub, ()))
        heap = [(held[c] / threads[c], -free[c] / threads[c], c) for c in held if free[c] > 0]
        heapq.heapify(heap)
        passed = []
        for task in own:
            while others and others[0][1] in held:
                passed.append(heapq.heappop(others)[1])
            if others:
                _, client = heapq.heappop(others)
                passed.append(client)
            else:
                _, _, client = heapq.heappop(heap)
            placed[task] = client
            free[client] -= 1
            held[client] += 1
            if free[client] > 0:
                entry = (held[client] / threads[client], -free[client] / threads[client], client)
                heapq.heappush(heap, entry)
        for client in passed:
            if free[client] > 0:
                heapq.heappush(others, (-free[client] / threads[client], client))


def released(state: GroupState, own: Sequence[int], count: int) -> list[int]:
    """The `count` tasks that leave a client: each the cheapest of its largest subtopology.

    Args:
        state: the group.
        own: the client's tasks.
        count: number of tasks that leave, at most len(own).
    """
    tasks = np.array(own, dtype=np.int64)
    # Popped from the end: cheapest last, and the highest number among equals.
    tasks = tasks[np.lexsort((tasks, -state.end_offset_sums[tasks]))]
    by_subtopology = rows_by_value(state.subtopology[tasks], tasks)
    heap = [(-len(part), sub) for sub, part in sorted(by_subtopology.items())]
    heapq.heapify(heap)
    gone = []
    for _ in range(count):
        size, sub = heapq.heappop(heap)
        gone.append(by_subtopology[sub].pop())
        if size + 1:
            heapq.heappush(heap, (size + 1, sub))
    return gone


def place_stateless(state: GroupState, active: IntArray) -> None:
    """Place the stateless tasks into `active`, in bands over all active tasks, sticky.

    Kafka places them by load alone, so that they move and are revoked; here they stay.
    """
    tasks = np.flatnonzero(~state.stateful)
    if not len(tasks):
        return
    capacity, clients = state.capacity(), len(state.clients)
    if state.weights is not None:
        home = np.where(capacity[state.owner] > 0, state.owner, NOBODY)
        active[tasks] = weighted_target(state, tasks, home, active, state.weights)
        return
    placed = active[active != NOBODY]
    already = np.bincount(placed, minlength=clients).astype(np.int64)
    owner = np.where(state.capacity()[state.owner] > 0, state.owner, NOBODY)[tasks]
    held = np.bincount(owner[owner != NOBODY], minlength=clients).astype(np.int64)
    total = len(tasks) + int(already.sum())
    free = quotas(already + held, capacity, total, at_least=already) - already
    active[tasks] = owner
    left = [np.flatnonzero(owner == NOBODY)]
    over = np.flatnonzero((owner != NOBODY) & (held > free)[owner])
    for client, own in rows_by_value(owner[over], tasks[over]).items():
        gone = released(state, own, int(held[client] - free[client]))
        active[gone] = NOBODY
        left.append(np.searchsorted(tasks, np.array(gone, dtype=np.int64)))
    free = np.maximum(free - held, 0)
    rest = tasks[np.sort(np.concatenate(left))]
    only_stateless = np.where(state.stateful, NOBODY, active)
    fill(state, rest.tolist(), only_stateless, free, capacity)
    active[tasks] = only_stateless[tasks]


def keep_owners(state: GroupState, owner: IntArray) -> IntArray:
    """Int [T], the client of each active task: owners keep theirs, the rest is spread evenly.

    Args:
        state: the group.
        owner: int [T], the client that keeps each task regardless of balance, or NOBODY.
    """
    active = np.where(state.stateful, owner, NOBODY)
    homeless = np.flatnonzero(state.stateful & (active == NOBODY))
    if len(homeless):
        capacity = state.capacity()
        count = np.bincount(active[active != NOBODY], minlength=len(capacity)).astype(np.int64)
        free = quotas(count, capacity, int(state.stateful.sum()), at_least=count) - count
        fill(state, homeless.tolist(), active, np.maximum(free, 0), capacity)
    place_stateless(state, active)
    return np.where(~state.stateful & (owner != NOBODY), owner, active)
