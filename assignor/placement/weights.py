"""Hot tasks: balance by work instead of by count, and still move little.

What the best simple placement of all tasks anew reaches (heaviest first, each to the least loaded
thread) sets the mark; then what runs is repaired until the busiest client is within 4 % of it.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.placement.state import NOBODY, FloatArray, GroupState, IntArray

TOLERANCE = 1.04


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
    board = _Board(
        load=base.tolist(),
        capacity=capacity,
        weights=weights.tolist(),
        place=dict.fromkeys(tasks.tolist(), NOBODY),
        hot=_hot_clients(state, tasks),
    )
    fresh, best = _fresh(board, tasks.tolist())
    limit = TOLERANCE * best
    owners = home.tolist()
    for task in tasks.tolist():
        if owners[task] != NOBODY:
            board.put(task, owners[task])
    homeless = [task for task in tasks.tolist() if board.place[task] == NOBODY]
    for task in sorted(homeless, key=lambda t: (-board.weights[t], t)):
        board.put(task, _choose(board, task, limit))
    _repair(board, limit)
    if any(board.per_thread(client) > limit for client in board.usable()):
        return np.array([fresh[task] for task in tasks.tolist()], dtype=np.int64)
    return np.array([board.place[task] for task in tasks.tolist()], dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class _Board:
    """Scratchpad of one call; load is the work on each client."""

    load: list[float]
    capacity: list[int]
    weights: list[float]
    place: dict[int, int]
    hot: dict[int, set[int]]

    def put(self, task: int, client: int) -> None:
        old = self.place[task]
        if old != NOBODY:
            self.load[old] -= self.weights[task]
        self.place[task] = client
        self.load[client] += self.weights[task]

    def per_thread(self, client: int, more: float = 0.0) -> float:
        return (self.load[client] + more) / self.capacity[client]

    def usable(self) -> list[int]:
        return [client for client, threads in enumerate(self.capacity) if threads > 0]


def _hot_clients(state: GroupState, tasks: IntArray) -> dict[int, set[int]]:
    limit = state.config.acceptable_recovery_lag
    return {
        task: {client for client, lag in state.copies(task) if lag <= limit}
        for task in tasks.tolist()
    }


def _fresh(board: _Board, tasks: Sequence[int]) -> tuple[dict[int, int], float]:
    """All tasks dealt anew, heaviest first: where, and the work a thread of the busiest client."""
    place = {}
    load = list(board.load)
    heap = [(load[c] / board.capacity[c], c) for c in board.usable()]
    heapq.heapify(heap)
    for task in sorted(tasks, key=lambda t: (-board.weights[t], t)):
        _, client = heap[0]
        place[task] = client
        load[client] += board.weights[task]
        heapq.heapreplace(heap, (load[client] / board.capacity[client], client))
    return place, max(load[c] / board.capacity[c] for c in board.usable())


def _choose(board: _Board, task: int, limit: float) -> int:
    """A caught-up client that stays within the limit, else the least loaded one."""
    weight = board.weights[task]
    able = [c for c in board.usable() if board.per_thread(c, weight) <= limit]
    hot = [c for c in able if c in board.hot[task]]
    return min(hot or able or board.usable(), key=lambda c: (board.per_thread(c, weight), c))


def _repair(board: _Board, limit: float) -> None:
    """Take work off clients above the limit, the busiest first, with as few moves as there are."""
    settled: set[int] = set()
    for _ in range(3 * len(board.place) + 1):
        client = max(board.usable(), key=lambda c: (board.per_thread(c), -c))
        if board.per_thread(client) <= limit:
            return
        if _move_one(board, client, limit, settled) or _exchange_two(board, client, limit, settled):
            continue
        if not _force_one(board, client, limit, settled):
            return


def _force_one(board: _Board, client: int, limit: float, settled: set[int]) -> bool:
    """A task goes to the least loaded client, which then gives lighter ones away in its turn."""
    excess = board.load[client] - limit * board.capacity[client]
    mine = [t for t, at in board.place.items() if at == client and t not in settled]
    others = [c for c in board.usable() if c != client]
    if not mine or not others:
        return False
    task = min(mine, key=lambda t: (board.weights[t] < excess, abs(board.weights[t] - excess), t))
    settled.add(task)
    board.put(task, min(others, key=lambda c: (board.per_thread(c), c)))
    return True


def _move_one(board: _Board, client: int, limit: float, settled: set[int]) -> bool:
    """The lightest task that is enough, else the heaviest that fits elsewhere."""
    excess = board.load[client] - limit * board.capacity[client]
    mine = [t for t, at in board.place.items() if at == client and t not in settled]
    enough = sorted((board.weights[t], t) for t in mine if board.weights[t] >= excess)
    rest = sorted((-board.weights[t], t) for t in mine if board.weights[t] < excess)
    for task in [t for _, t in enough] + [t for _, t in rest]:
        taker = _choose(board, task, limit)
        if taker != client and board.per_thread(taker, board.weights[task]) <= limit:
            board.put(task, taker)
            return True
    return False


def _exchange_two(board: _Board, client: int, limit: float, settled: set[int]) -> bool:
    """Swap a heavy task for a lighter one of the least loaded client."""
    others = [c for c in board.usable() if c != client]
    for other in sorted(others, key=lambda c: (board.per_thread(c), c))[:8]:
        mine = sorted(t for t, at in board.place.items() if at == client and t not in settled)
        theirs = sorted(t for t, at in board.place.items() if at == other)
        best: tuple[float, int, int] | None = None
        for task in mine:
            for back in theirs:
                gain = board.weights[task] - board.weights[back]
                if gain > 0 and board.per_thread(other, gain) <= limit:
                    found = (-gain, task, back)
                    best = found if best is None or found < best else best
        if best is not None:
            board.put(best[1], other)
            board.put(best[2], client)
            return True
    return False


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
