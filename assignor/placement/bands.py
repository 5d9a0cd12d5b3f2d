"""How many tasks each client may hold, and tasks dealt evenly into that room.

A client's *band* is its proportional share of the tasks, tasks x its threads / all threads, rounded
down and up. Threads of all clients then differ by at most one task, and no client holds more
memory, disk and network than its threads stand for: a second client like the first one gets half
of the tasks, even where every thread of the first has one task only.
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
        total: tasks to hand out.
        at_least: int [C], tasks that are placed already and count in `total`.
    """
    threads = int(capacity.sum())
    low = capacity * total // threads
    high = -(-capacity * total // threads)
    if at_least is None:
        return Bands(low=low, high=high)
    raised = np.maximum(low, at_least)
    # What is placed already may leave too little for the others: then only that is owed.
    return Bands(
        low=raised if int(raised.sum()) <= total else at_least, high=np.maximum(high, at_least)
    )


def quotas(
    wanted: IntArray, capacity: IntArray, total: int, *, at_least: IntArray | None = None
) -> IntArray:
    """Tasks per client: inside the bands, as near to `wanted` as possible, sum `total`.

    Args:
        wanted: int [C], tasks that each client would like to keep.
        capacity: int [C], threads; the bands are `thread_bands`.
        total: tasks to hand out.
        at_least: int [C], tasks placed already, a lower bound for each client.
    """
    bands = thread_bands(capacity, total, at_least)
    quota = np.clip(wanted, bands.low, bands.high)
    missing = total - int(quota.sum())
    if not missing:
        return quota
    # Most proportional first: add to the least loaded thread, take from the most loaded one.
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


def deal(tasks: IntArray, room: IntArray) -> IntArray:
    """Clients for tasks in order, so that every stretch of tasks is spread evenly over the room.

    Sorted by subtopology, the tasks of each subtopology end up as even as the room allows.

    Args:
        tasks: int [M].
        room: int [C], sum M.

    Returns:
        int [M], the client of each task.
    """
    clients = np.repeat(np.arange(len(room)), room)
    first = np.repeat(np.cumsum(room) - room, room)
    # The k-th of a client's n places sits at (k + 1/2) / n of the way.
    way = (np.arange(len(tasks)) - first + 0.5) / np.maximum(room[clients], 1)
    return clients[np.lexsort((clients, way))].astype(np.int64)


def fill(
    state: GroupState, tasks: Sequence[int], placed: IntArray, room: IntArray, weight: IntArray
) -> None:
    """Place tasks into `placed`, each where fewest of its subtopology are; takes from `room`.

    Args:
        state: the group.
        tasks: to place, in ascending order, at most sum(room).
        placed: int [T], where the others are; changed.
        room: int [C], places left; changed.
        weight: int [C], capacity, for comparing clients of unequal size.
    """
    if not len(tasks):
        return
    chosen = np.asarray(tasks, dtype=np.int64)
    if int(room.sum()) == len(chosen) and not (placed != NOBODY).any():
        placed[chosen] = deal(chosen, room)
        room[:] = 0
        return
    is_placed = np.flatnonzero(placed != NOBODY)
    is_placed = is_placed[np.isin(state.subtopology[is_placed], state.subtopology[chosen])]
    there = rows_by_value(state.subtopology[is_placed], placed[is_placed])
    # Clients without a task of the subtopology come first, and are the same for the next one.
    threads = weight.tolist()
    others = [(-room[c] / threads[c], c) for c in np.flatnonzero(room > 0).tolist()]
    heapq.heapify(others)
    for sub, own in rows_by_value(state.subtopology[chosen], chosen).items():
        held = Counter(there.get(sub, ()))
        heap = [(held[c] / threads[c], -room[c] / threads[c], c) for c in held if room[c] > 0]
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
            room[client] -= 1
            held[client] += 1
            if room[client] > 0:
                entry = (held[client] / threads[client], -room[client] / threads[client], client)
                heapq.heappush(heap, entry)
        for client in passed:
            if room[client] > 0:
                heapq.heappush(others, (-room[client] / threads[client], client))


def released(state: GroupState, own: Sequence[int], count: int) -> list[int]:
    """Which `count` of a client's tasks leave: cheapest first out of its largest subtopology.

    Args:
        state: the group.
        own: the client's tasks.
        count: how many leave, at most len(own).
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
    """Place the stateless tasks into `active`: same bands over all active tasks, sticky too.

    Kafka places them by load alone, and each move is a revocation; these stay where they run.
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
    room = quotas(already + held, capacity, total, at_least=already) - already
    active[tasks] = owner
    left = [np.flatnonzero(owner == NOBODY)]
    over = np.flatnonzero((owner != NOBODY) & (held > room)[owner])
    for client, own in rows_by_value(owner[over], tasks[over]).items():
        gone = released(state, own, int(held[client] - room[client]))
        active[gone] = NOBODY
        left.append(np.searchsorted(tasks, np.array(gone, dtype=np.int64)))
    room = np.maximum(room - held, 0)
    rest = tasks[np.sort(np.concatenate(left))]
    only_stateless = np.where(state.stateful, NOBODY, active)
    fill(state, rest.tolist(), only_stateless, room, capacity)
    active[tasks] = only_stateless[tasks]


def keep_owners(state: GroupState, owner: IntArray) -> IntArray:
    """Int [T], the client of each active task: owners keep all, the rest is dealt evenly.

    Args:
        state: the group.
        owner: int [T], who keeps each task whatever the balance, or NOBODY.
    """
    active = np.where(state.stateful, owner, NOBODY)
    homeless = np.flatnonzero(state.stateful & (active == NOBODY))
    if len(homeless):
        capacity = state.capacity()
        count = np.bincount(active[active != NOBODY], minlength=len(capacity)).astype(np.int64)
        room = quotas(count, capacity, int(state.stateful.sum()), at_least=count) - count
        fill(state, homeless.tolist(), active, np.maximum(room, 0), capacity)
    place_stateless(state, active)
    return np.where(~state.stateful & (owner != NOBODY), owner, active)
