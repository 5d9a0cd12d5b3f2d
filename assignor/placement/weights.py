"""Balance by work instead of by number of tasks, with few moves.

The reference is a new placement of all tasks: heaviest first, each on the least loaded thread. The
current placement is changed until its busiest client has at most 4 % more work per thread than the
busiest client of the reference.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.state import NOBODY, FloatArray, GroupState, IntArray

WEIGHT_TOLERANCE = 1.04
# Most clients that are tried for an exchange of two tasks.
_TRIES = 8


def weighted_target(
    state: GroupState, tasks: IntArray, home: IntArray, placed: IntArray, weights: FloatArray
) -> IntArray:
    """Int [M]: clients for `tasks`, in addition to the tasks that are already placed.

    The busiest client has at most 1.04 times the work per thread of the busiest client in a new
    heaviest-first placement.

    Args:
        state: the group.
        tasks: int [M], the tasks to place.
        home: int [T], the client that should keep each task, or NOBODY.
        placed: int [T], the client of each task that is already placed, else NOBODY.
        weights: float [T], work of each task, above 0.
    """
    capacity = state.capacity().tolist()
    base = np.zeros(len(capacity))
    done = placed != NOBODY
    np.add.at(base, placed[done], weights[done])
    work = _Work.of(
        load=base.tolist(),
        capacity=capacity,
        weights=weights.tolist(),
        place=dict(zip(tasks.tolist(), home[tasks].tolist(), strict=True)),
        hot=_hot_clients(state),
    )
    fresh, best = _fresh(base.tolist(), work, tasks.tolist())
    limit = WEIGHT_TOLERANCE * best
    homeless = [task for task, client in work.place.items() if client == NOBODY]
    for task in sorted(homeless, key=lambda t: (-work.weights[t], t)):
        work.put(task, _choose(work, task, limit))
    _repair(work, limit)
    if any(work.per_thread(client) > limit for client in work.usable):
        return np.array([fresh[task] for task in tasks.tolist()], dtype=np.int64)
    return np.array([work.place[task] for task in tasks.tolist()], dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class _Work:
    """The tasks and the work of each client while tasks are placed.

    Attributes:
        load, capacity: work on each client, and its threads.
        weights: work of each task.
        place: task to place -> its client so far, or NOBODY.
        hot: task -> clients that are caught up on it.
        usable: clients with threads.
        held: client -> its tasks of `place`, as ordered keys.
        lightest: number of threads -> heap of (work, client) of the clients with that many.
        busiest: heap of (-work per thread, client).
        ranked: client -> its tasks by weight; removed when it gets another task.
        settled: tasks that must not move any more.
    """

    load: list[float]
    capacity: list[int]
    weights: list[float]
    place: dict[int, int]
    hot: dict[int, list[int]]
    usable: list[int]
    held: list[dict[int, None]]
    lightest: dict[int, list[tuple[float, int]]]
    busiest: list[tuple[float, int]]
    ranked: dict[int, "_Ranked"] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        *,
        load: list[float],
        capacity: list[int],
        weights: list[float],
        place: dict[int, int],
        hot: dict[int, list[int]],
    ) -> "_Work":
        """The work of the clients, with the tasks in `place` added to `load`, which is changed."""
        held: list[dict[int, None]] = [{} for _ in capacity]
        for task, client in place.items():
            if client != NOBODY:
                load[client] += weights[task]
                held[client][task] = None
        usable = [client for client, threads in enumerate(capacity) if threads > 0]
        lightest: dict[int, list[tuple[float, int]]] = {}
        for client in usable:
            lightest.setdefault(capacity[client], []).append((load[client], client))
        for heap in lightest.values():
            heapq.heapify(heap)
        busiest = [(-(load[c] / capacity[c]), c) for c in usable]
        heapq.heapify(busiest)
        return cls(
            load=load,
            capacity=capacity,
            weights=weights,
            place=place,
            hot=hot,
            usable=usable,
            held=held,
            lightest=lightest,
            busiest=busiest,
        )

    def put(self, task: int, client: int) -> None:
        """Move a task to a client."""
        old = self.place[task]
        if old != NOBODY:
            self.load[old] -= self.weights[task]
            del self.held[old][task]
            if old in self.ranked:
                self.ranked[old].drop(task)
            self._requeue(old)
        self.place[task] = client
        self.load[client] += self.weights[task]
        self.held[client][task] = None
        self.ranked.pop(client, None)
        self._requeue(client)

    def _requeue(self, client: int) -> None:
        # Entries with an outdated load are removed when they reach the top.
        heapq.heappush(self.lightest[self.capacity[client]], (self.load[client], client))
        heapq.heappush(self.busiest, (-self.per_thread(client), client))

    def per_thread(self, client: int, more: float = 0.0) -> float:
        """The client's work per thread if it had `more` work."""
        return (self.load[client] + more) / self.capacity[client]

    def least_with(self, more: float) -> int:
        """The client with the least work per thread after `more` is added; NOBODY: none is left."""
        tops = []
        for heap in self.lightest.values():
            while heap and heap[0][0] != self.load[heap[0][1]]:
                heapq.heappop(heap)
            if heap:
                tops.append(heap[0][1])
        return min(tops, key=lambda c: (self.per_thread(c, more), c), default=NOBODY)

    def most_loaded(self) -> int:
        """The client with the most work per thread."""
        while -self.busiest[0][0] != self.per_thread(self.busiest[0][1]):
            heapq.heappop(self.busiest)
        return self.busiest[0][1]

    def least_loaded(self, most: int, other_than: int) -> list[int]:
        """Up to `most` other clients with the least work per thread, the least first."""
        found: list[int] = []
        while len(found) < most + 1:
            client = self.least_with(0.0)
            if client == NOBODY:
                break
            heapq.heappop(self.lightest[self.capacity[client]])
            if client not in found:
                found.append(client)
        for client in found:
            heapq.heappush(self.lightest[self.capacity[client]], (self.load[client], client))
        return [client for client in found if client != other_than][:most]

    def may_move(self, client: int) -> "_Ranked":
        """The client's tasks that may move, by weight."""
        if client not in self.ranked:
            own = [task for task in self.held[client] if task not in self.settled]
            self.ranked[client] = _Ranked.of(own, self.weights)
        return self.ranked[client]


@dataclass(slots=True)
class _Ranked:
    """Tasks by weight, from which tasks can be removed; a union-find finds the nearest one left.

    Attributes:
        order: (weight, -task) of all tasks, ascending.
        place: task -> its index in `order`; only of tasks that are left.
        below, above: union-find links to the nearest index left, downwards and upwards.
    """

    order: list[tuple[float, int]]
    place: dict[int, int]
    below: list[int]
    above: list[int]

    @classmethod
    def of(cls, tasks: Sequence[int], weights: Sequence[float]) -> "_Ranked":
        """A ranking that contains all of these tasks."""
        order = sorted((weights[task], -task) for task in tasks)
        place = {-task: number for number, (_, task) in enumerate(order)}
        return cls(order, place, list(range(len(order))), list(range(len(order) + 1)))

    def drop(self, task: int) -> None:
        """Remove a task, if it is in the ranking."""
        place = self.place.pop(task, None)
        if place is not None:
            self.below[place], self.above[place] = place - 1, place + 1

    def last_below(self, end: int) -> int:
        """The heaviest task left before index `end`, the first of equal ones; NOBODY if none."""
        place = _root(self.below, end - 1)
        return NOBODY if place < 0 else -self.order[place][1]

    def lightest_from(self, weight: float) -> int:
        """The lightest task left of this weight or more, the first of equal ones; or NOBODY."""
        place = _root(self.above, bisect_left(self.order, (weight, -inf)))
        if place == len(self.order):
            return NOBODY
        return self.last_below(bisect_right(self.order, (self.order[place][0], inf)))


def _root(links: list[int], place: int) -> int:
    """The index to which the links from `place` lead; shortens the links (path compression)."""
    passed = []
    while place >= 0 and links[place] != place:
        passed.append(place)
        place = links[place]
    for passed_place in passed:
        links[passed_place] = place
    return place


def _hot_clients(state: GroupState) -> dict[int, list[int]]:
    hot = state.is_caught_up()
    return rows_by_value(state.copy_task()[hot], state.copy_client[hot])


def _fresh(
    base: Sequence[float], work: _Work, tasks: Sequence[int]
) -> tuple[dict[int, int], float]:
    """A new placement, heaviest first: task -> client, and the work per thread of the busiest."""
    place = {}
    load = list(base)
    heap = [(load[c] / work.capacity[c], c) for c in work.usable]
    heapq.heapify(heap)
    for task in sorted(tasks, key=lambda t: (-work.weights[t], t)):
        _, client = heap[0]
        place[task] = client
        load[client] += work.weights[task]
        heapq.heapreplace(heap, (load[client] / work.capacity[client], client))
    return place, max(load[c] / work.capacity[c] for c in work.usable)


def _choose(work: _Work, task: int, limit: float) -> int:
    """The least loaded caught-up client that stays within the limit, else the least loaded one."""
    weight, threads = work.weights[task], work.capacity
    hot = [c for c in work.hot.get(task, ()) if threads[c] and work.per_thread(c, weight) <= limit]
    if hot:
        return min(hot, key=lambda c: (work.per_thread(c, weight), c))
    return work.least_with(weight)


def _repair(work: _Work, limit: float) -> None:
    """Move work off clients above the limit, the busiest first, with few moves."""
    for _ in range(3 * len(work.place) + 1):
        client = work.most_loaded()
        if work.per_thread(client) <= limit:
            return
        if _move_task(work, client, limit) or _exchange_tasks(work, client, limit):
            continue
        if not _force_move(work, client, limit):
            return


def _force_move(work: _Work, client: int, limit: float) -> bool:
    """Move a task to the least loaded client, which may then move lighter ones; whether moved."""
    excess = work.load[client] - limit * work.capacity[client]
    own, others = list(work.may_move(client).place), work.least_loaded(1, client)
    if not own or not others:
        return False
    task = min(own, key=lambda t: (work.weights[t] < excess, abs(work.weights[t] - excess), t))
    work.settled.add(task)
    work.put(task, others[0])
    return True


def _move_task(work: _Work, client: int, limit: float) -> bool:
    """Move the lightest task that suffices, else the heaviest that fits; whether one moved."""
    excess = work.load[client] - limit * work.capacity[client]
    ranked = work.may_move(client)

    def fits(weight: float) -> bool:
        # `client` is above the limit already, so the least loaded client is another one.
        return work.per_thread(work.least_with(weight), weight) <= limit

    task = ranked.lightest_from(excess)
    if task == NOBODY or not fits(work.weights[task]):
        # Heavier tasks do not fit either.
        end = bisect_left(ranked.order, (excess, -inf))
        task = ranked.last_below(_first_not(lambda place: fits(ranked.order[place][0]), end))
    if task == NOBODY:
        return False
    work.put(task, _choose(work, task, limit))
    return True


def _first_not(holds: Callable[[int], bool], end: int) -> int:
    """The first number below `end` for which `holds` is false, else `end`."""
    return bisect_left(range(end), x=True, key=lambda number: not holds(number))


def _exchange_tasks(work: _Work, client: int, limit: float) -> bool:
    """Swap a task for a lighter one of a little loaded client; whether a swap was found."""
    own = list(work.may_move(client).place)
    for other in work.least_loaded(_TRIES, client):
        found = _best_swap(work, own, other, limit)
        if found is not None:
            work.put(found[1], other)
            work.put(found[2], client)
            return True
    return False


def _best_swap(
    work: _Work, own: Sequence[int], other: int, limit: float
) -> tuple[float, int, int] | None:
    """(-work that leaves, task, task in return) of the swap that moves most work; or None."""
    weights = work.weights
    backs = sorted((weights[task], task) for task in work.held[other])
    found: list[tuple[float, int, int]] = []
    for task in own:

        def is_too_much(place: int, weight: float = weights[task]) -> bool:
            return work.per_thread(other, weight - backs[place][0]) > limit

        # The lightest task in return with which the other client stays within the limit.
        place = _first_not(is_too_much, len(backs))
        if place < len(backs) and weights[task] > backs[place][0]:
            found.append((backs[place][0] - weights[task], task, backs[place][1]))
    return min(found, default=None)
