"""Hot tasks: balance by work instead of by count, and still move little.

What the best simple placement of all tasks anew reaches (heaviest first, each to the least loaded
thread) sets the mark; then what runs is repaired until the busiest client is within 4 % of it.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.state import NOBODY, FloatArray, GroupState, IntArray

TOLERANCE = 1.04
# Clients that are asked for a task in exchange.
_TRIES = 8


def weighted_target(
    state: GroupState, tasks: IntArray, home: IntArray, placed: IntArray, weights: FloatArray
) -> IntArray:
    """Clients for `tasks`, on top of what is in `placed` already.

    Args:
        state: the group.
        tasks: int [M], to place.
        home: int [T], where each is best left alone, or NOBODY.
        placed: int [T], the client of what is placed already, NOBODY elsewhere.
        weights: float [T], work of each task, above 0.

    Returns:
        int [M]; the work a thread of the busiest client is at most 1.04 x that of a fresh
        heaviest-first placement.
    """
    capacity = state.capacity().tolist()
    base = np.zeros(len(capacity))
    done = placed != NOBODY
    np.add.at(base, placed[done], weights[done])
    board = _Board.of(
        load=base.tolist(),
        capacity=capacity,
        weights=weights.tolist(),
        place=dict(zip(tasks.tolist(), home[tasks].tolist(), strict=True)),
        hot=_hot_clients(state),
    )
    fresh, best = _fresh(base.tolist(), board, tasks.tolist())
    limit = TOLERANCE * best
    homeless = [task for task, client in board.place.items() if client == NOBODY]
    for task in sorted(homeless, key=lambda t: (-board.weights[t], t)):
        board.put(task, _choose(board, task, limit))
    _repair(board, limit)
    if any(board.per_thread(client) > limit for client in board.usable):
        return np.array([fresh[task] for task in tasks.tolist()], dtype=np.int64)
    return np.array([board.place[task] for task in tasks.tolist()], dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class _Board:
    """Scratchpad of one call.

    Attributes:
        load, capacity: work on each client, and its threads.
        weights: work of each task.
        place: the client of each task to place.
        hot: clients that are caught up on each task.
        usable: clients with threads.
        held: tasks to place that are on each client.
        lightest: threads -> heap of (work, client) of the clients with so many.
        busiest: heap of (-work a thread, client).
        ranked: a client's tasks by weight; forgotten when it gets another one.
        settled: tasks that stay where they were forced to.
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
    ) -> "_Board":
        """A board with the tasks in `place` added to the work in `load`."""
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
        """Place a task, which leaves where it was."""
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
        # Entries with a load that the client had before are dropped where they come up.
        heapq.heappush(self.lightest[self.capacity[client]], (self.load[client], client))
        heapq.heappush(self.busiest, (-self.per_thread(client), client))

    def per_thread(self, client: int, more: float = 0.0) -> float:
        """Work a thread of the client, with some more."""
        return (self.load[client] + more) / self.capacity[client]

    def least_with(self, more: float) -> int:
        """The client that has least work a thread with some more; NOBODY when all are popped."""
        tops = []
        for heap in self.lightest.values():
            while heap and heap[0][0] != self.load[heap[0][1]]:
                heapq.heappop(heap)
            if heap:
                tops.append(heap[0][1])
        return min(tops, key=lambda c: (self.per_thread(c, more), c), default=NOBODY)

    def most_loaded(self) -> int:
        """The client with most work a thread."""
        while -self.busiest[0][0] != self.per_thread(self.busiest[0][1]):
            heapq.heappop(self.busiest)
        return self.busiest[0][1]

    def least_loaded(self, most: int, other_than: int) -> list[int]:
        """Up to so many other clients with least work a thread, the least first."""
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
        """The client's tasks that are not settled, by weight."""
        if client not in self.ranked:
            own = [task for task in self.held[client] if task not in self.settled]
            self.ranked[client] = _Ranked.of(own, self.weights)
        return self.ranked[client]


@dataclass(slots=True)
class _Ranked:
    """Tasks by weight, from which some are taken out; a union-find finds the nearest one left.

    Attributes:
        order: (weight, -task) of all, ascending.
        place: task -> its place in `order`, of those that are left.
        below, above: towards the nearest place left, downwards and upwards.
    """

    order: list[tuple[float, int]]
    place: dict[int, int]
    below: list[int]
    above: list[int]

    @classmethod
    def of(cls, tasks: Sequence[int], weights: Sequence[float]) -> "_Ranked":
        """All of these tasks."""
        order = sorted((weights[task], -task) for task in tasks)
        place = {-task: number for number, (_, task) in enumerate(order)}
        return cls(order, place, list(range(len(order))), list(range(len(order) + 1)))

    def drop(self, task: int) -> None:
        """Take a task out, if it is among these."""
        place = self.place.pop(task, None)
        if place is not None:
            self.below[place], self.above[place] = place - 1, place + 1

    def last_below(self, end: int) -> int:
        """The heaviest task before a place, the first of equal ones; NOBODY for none."""
        place = _root(self.below, end - 1)
        return NOBODY if place < 0 else -self.order[place][1]

    def lightest_from(self, weight: float) -> int:
        """The lightest task of this weight or more, the first of equal ones; NOBODY for none."""
        place = _root(self.above, bisect_left(self.order, (weight, -inf)))
        if place == len(self.order):
            return NOBODY
        return self.last_below(bisect_right(self.order, (self.order[place][0], inf)))


def _root(links: list[int], place: int) -> int:
    """Where the links from a place lead; they are made shorter on the way."""
    passed = []
    while place >= 0 and links[place] != place:
        passed.append(place)
        place = links[place]
    for one in passed:
        links[one] = place
    return place


def _hot_clients(state: GroupState) -> dict[int, list[int]]:
    hot = state.is_caught_up()
    return rows_by_value(state.copy_task()[hot], state.copy_client[hot])


def _fresh(
    base: Sequence[float], board: _Board, tasks: Sequence[int]
) -> tuple[dict[int, int], float]:
    """All tasks dealt anew, heaviest first: where, and the work a thread of the busiest client."""
    place = {}
    load = list(base)
    heap = [(load[c] / board.capacity[c], c) for c in board.usable]
    heapq.heapify(heap)
    for task in sorted(tasks, key=lambda t: (-board.weights[t], t)):
        _, client = heap[0]
        place[task] = client
        load[client] += board.weights[task]
        heapq.heapreplace(heap, (load[client] / board.capacity[client], client))
    return place, max(load[c] / board.capacity[c] for c in board.usable)


def _choose(board: _Board, task: int, limit: float) -> int:
    """A caught-up client that stays within the limit, else the least loaded one."""
    weight, threads = board.weights[task], board.capacity
    hot = [
        c for c in board.hot.get(task, ()) if threads[c] and board.per_thread(c, weight) <= limit
    ]
    if hot:
        return min(hot, key=lambda c: (board.per_thread(c, weight), c))
    return board.least_with(weight)


def _repair(board: _Board, limit: float) -> None:
    """Take work off clients above the limit, the busiest first, with as few moves as there are."""
    for _ in range(3 * len(board.place) + 1):
        client = board.most_loaded()
        if board.per_thread(client) <= limit:
            return
        if _move_one(board, client, limit) or _exchange_two(board, client, limit):
            continue
        if not _force_one(board, client, limit):
            return


def _force_one(board: _Board, client: int, limit: float) -> bool:
    """A task goes to the least loaded client, which then gives lighter ones away in its turn."""
    excess = board.load[client] - limit * board.capacity[client]
    own, others = list(board.may_move(client).place), board.least_loaded(1, client)
    if not own or not others:
        return False
    task = min(own, key=lambda t: (board.weights[t] < excess, abs(board.weights[t] - excess), t))
    board.settled.add(task)
    board.put(task, others[0])
    return True


def _move_one(board: _Board, client: int, limit: float) -> bool:
    """The lightest task that is enough, else the heaviest that fits elsewhere."""
    excess = board.load[client] - limit * board.capacity[client]
    ranked = board.may_move(client)

    def fits(weight: float) -> bool:
        # The client itself is above the limit already, so this is another one.
        return board.per_thread(board.least_with(weight), weight) <= limit

    task = ranked.lightest_from(excess)
    if task == NOBODY or not fits(board.weights[task]):
        # What is heavier fits no better.
        end = bisect_left(ranked.order, (excess, -inf))
        task = ranked.last_below(_first_not(lambda place: fits(ranked.order[place][0]), end))
    if task == NOBODY:
        return False
    board.put(task, _choose(board, task, limit))
    return True


def _first_not(holds: Callable[[int], bool], end: int) -> int:
    """The first number below `end` for which it does not hold, else `end`."""
    return bisect_left(range(end), x=True, key=lambda number: not holds(number))


def _exchange_two(board: _Board, client: int, limit: float) -> bool:
    """Swap a heavy task for a lighter one of the least loaded clients."""
    own = list(board.may_move(client).place)
    for other in board.least_loaded(_TRIES, client):
        found = _best_swap(board, own, other, limit)
        if found is not None:
            board.put(found[1], other)
            board.put(found[2], client)
            return True
    return False


def _best_swap(
    board: _Board, own: Sequence[int], other: int, limit: float
) -> tuple[float, int, int] | None:
    """(-work that leaves, task, task that comes back): the most that the other client can take."""
    weights = board.weights
    backs = sorted((weights[task], task) for task in board.held[other])
    found: list[tuple[float, int, int]] = []
    for task in own:

        def is_too_much(place: int, weight: float = weights[task]) -> bool:
            return board.per_thread(other, weight - backs[place][0]) > limit

        # The lightest that may come back for it.
        place = _first_not(is_too_much, len(backs))
        if place < len(backs) and weights[task] > backs[place][0]:
            found.append((backs[place][0] - weights[task], task, backs[place][1]))
    return min(found, default=None)
