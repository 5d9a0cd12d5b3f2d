"""`sticky`: keep what you have, within bands that keep threads equal.

The steps are those of a scheduler with quotas: every client gets a quota inside its *thread band*
(threads x floor .. ceil of tasks per thread), as near as possible to what it already runs, keeps
that many of its tasks, and the rest goes where there is room. For given quotas no assignment moves
fewer tasks. Stateful tasks are placed first, stateless ones fill up the bands of all active tasks.
"""

import heapq
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from assignor.state import NOBODY, GroupState, IntArray, TaskAssignment


def sticky(state: GroupState) -> TaskAssignment:
    """Place every task sticky and balanced by task and by thread; standbys on the least loaded.

    O((T + C + N) log C) time, O(T + C + N) memory. Never asks for a follow-up rebalance.
    """
    active = np.full(len(state.tasks), NOBODY, dtype=np.int64)
    capacity = _capacity(state)
    stateful = np.flatnonzero(state.stateful)
    stateless = np.flatnonzero(~state.stateful)
    nothing = np.zeros(len(state.clients), dtype=np.int64)
    _place(state, stateful, active, capacity, already=nothing)
    held = np.bincount(active[stateful], minlength=len(state.clients)).astype(np.int64)
    _place(state, stateless, active, capacity, already=held)
    return TaskAssignment(active=active, standbys=_standbys(state, active, capacity))


def _capacity(state: GroupState) -> IntArray:
    """Threads per client; a client without any gets nothing while another has one."""
    return state.threads if state.threads.any() else np.ones_like(state.threads)


def quotas(wanted: IntArray, capacity: IntArray, total: int) -> IntArray:
    """Tasks per client: inside the thread bands, as near to `wanted` as possible, sum `total`.

    Args:
        wanted: int [C], tasks that each client would like to keep.
        capacity: int [C], threads; the bands are capacity x floor and ceil of total / sum.
        total: tasks to hand out.
    """
    threads = int(capacity.sum())
    low = capacity * (total // threads)
    high = capacity * -(-total // threads)
    quota = np.clip(wanted, low, high)
    missing = total - int(quota.sum())
    # Most proportional first: add to the least loaded thread, take from the most loaded one.
    sign = 1 if missing > 0 else -1
    limit = high if missing > 0 else low
    heap = [
        (sign * quota[c] / capacity[c], c)
        for c in range(len(quota))
        if capacity[c] > 0 and quota[c] != limit[c]
    ]
    heapq.heapify(heap)
    for _ in range(abs(missing)):
        _, client = heapq.heappop(heap)
        quota[client] += sign
        if quota[client] != limit[client]:
            heapq.heappush(heap, (sign * quota[client] / capacity[client], client))
    return quota


def _place(
    state: GroupState, tasks: IntArray, active: IntArray, capacity: IntArray, *, already: IntArray
) -> None:
    """Place `tasks` into `active`, on top of `already` tasks per client."""
    if not len(tasks):
        return
    clients = len(state.clients)
    held: list[list[int]] = [[] for _ in range(clients)]
    for task in tasks.tolist():
        if state.owner[task] != NOBODY:
            held[state.owner[task]].append(task)
    wanted = already + np.array([len(own) for own in held], dtype=np.int64)
    total = len(tasks) + int(already.sum())
    room = np.maximum(quotas(wanted, capacity, total) - already, 0)
    _fit(room, len(tasks), capacity, already)
    left = []
    for client, own in enumerate(held):
        kept, released = _keep(state, own, int(room[client]))
        active[kept] = client
        room[client] -= len(kept)
        left.extend(released)
    left.extend(tasks[state.owner[tasks] == NOBODY].tolist())
    left = _to_copies(state, sorted(left), active, room)
    _fill(left, active, room)


def _fit(room: IntArray, total: int, capacity: IntArray, already: IntArray) -> None:
    """Take off surplus room, most loaded threads first, where `already` reached above a quota."""
    surplus = int(room.sum()) - total
    heap = [
        (-(room[c] + already[c]) / capacity[c], c)
        for c in range(len(room))
        if room[c] > 0 and capacity[c] > 0
    ]
    heapq.heapify(heap)
    for _ in range(surplus):
        _, client = heapq.heappop(heap)
        room[client] -= 1
        if room[client]:
            load = (room[client] + already[client]) / capacity[client]
            heapq.heappush(heap, (-load, client))


def _keep(state: GroupState, own: Sequence[int], quota: int) -> tuple[list[int], list[int]]:
    """Split a client's tasks into kept and released, released from its largest subtopology."""
    if len(own) <= quota:
        return list(own), []
    by_subtopology: dict[int, list[int]] = defaultdict(list)
    for task in own:
        by_subtopology[int(state.subtopology[task])].append(task)
    heap = [(-len(part), sub) for sub, part in sorted(by_subtopology.items())]
    heapq.heapify(heap)
    released = []
    for _ in range(len(own) - quota):
        size, sub = heapq.heappop(heap)
        released.append(by_subtopology[sub].pop())
        heapq.heappush(heap, (size + 1, sub))
    gone = set(released)
    return [task for task in own if task not in gone], released


def _to_copies(
    state: GroupState, left: Sequence[int], active: IntArray, room: IntArray
) -> list[int]:
    """Place tasks on clients that hold a copy and have room, smallest lag first."""
    rest = []
    for task in left:
        holders = [(lag, client) for client, lag in state.copies(task) if room[client] > 0]
        if not holders:
            rest.append(task)
            continue
        client = min(holders)[1]
        active[task] = client
        room[client] -= 1
    return rest


def _fill(left: Sequence[int], active: IntArray, room: IntArray) -> None:
    """Deal the rest, subtopology by subtopology, to the client with the most room."""
    heap = [(-int(free), client) for client, free in enumerate(room.tolist()) if free > 0]
    heapq.heapify(heap)
    for task in left:
        free, client = heapq.heappop(heap)
        active[task] = client
        room[client] -= 1
        if free + 1:
            heapq.heappush(heap, (free + 1, client))


def _standbys(
    state: GroupState, active: IntArray, capacity: IntArray
) -> tuple[tuple[int, int], ...]:
    """Copies of stateful tasks: existing ones stay, new ones go to the least loaded client."""
    wanted = state.config.num_standby_replicas
    if wanted == 0:
        return ()
    usable = [client for client in range(len(state.clients)) if capacity[client] > 0]
    load = np.bincount(active, minlength=len(state.clients)).astype(np.int64)
    stateful = np.flatnonzero(state.stateful).tolist()
    placed: dict[int, set[int]] = {}
    share = -(-len(stateful) * wanted // int(capacity.sum()))
    kept = np.zeros(len(state.clients), dtype=np.int64)
    for task in stateful:
        placed[task] = set()
        for client, _lag in sorted(state.copies(task), key=lambda copy: (copy[1], copy[0])):
            fits = client != active[task] and kept[client] < share * capacity[client]
            if fits and len(placed[task]) < wanted:
                placed[task].add(client)
                kept[client] += 1
    load += kept
    heap = [(load[client] / capacity[client], client) for client in usable]
    heapq.heapify(heap)
    for task in stateful:
        barred = []
        while len(placed[task]) < wanted and heap:
            _, client = heapq.heappop(heap)
            if client == active[task] or client in placed[task]:
                barred.append(client)
                continue
            placed[task].add(client)
            load[client] += 1
            heapq.heappush(heap, (load[client] / capacity[client], client))
        for client in barred:
            heapq.heappush(heap, (load[client] / capacity[client], client))
    return tuple(sorted((task, client) for task, holders in placed.items() for client in holders))
