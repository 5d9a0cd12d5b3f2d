"""Where stateful active tasks belong in the end: the target, before anything is warmed up.

Every client keeps what it runs up to its thread band. What must move goes along *hot* paths first:
from a client that has too many to one that lacks some, over clients that are caught up on the tasks
handed along, shortest path first, so nothing is restored. The rest goes to copies on their way up,
then evenly over the subtopologies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.bands import fill, quotas, released, thread_bands
from assignor.state import NOBODY, BoolArray, GroupState, IntArray


def homes(state: GroupState) -> IntArray:
    """Int [T]: where each stateful task is best left alone; NOBODY where it has no such place.

    The running owner while it is caught up, or while nobody else is and it still has state. NOBODY
    for stateless tasks.
    """
    task, hot = state.copy_task(), state.is_caught_up()
    anywhere = state.starts_anywhere()
    at_owner = state.copy_client == state.owner[task]
    owner_is_hot, has_hot, owner_has_state = anywhere.copy(), anywhere.copy(), anywhere.copy()
    owner_is_hot[task[at_owner & hot]] = True
    owner_has_state[task[at_owner]] = True
    has_hot[task[hot]] = True
    has_copy = np.diff(state.copy_start) > 0
    stays = owner_is_hot | (~has_hot & (owner_has_state | ~has_copy))
    usable = (state.owner != NOBODY) & (state.capacity()[state.owner] > 0)
    return np.where(stays & state.stateful & usable, state.owner, NOBODY)


def target_actives(state: GroupState) -> IntArray:
    """Int [T]: the client on which each stateful task belongs; NOBODY for stateless tasks.

    Threads differ by at most one stateful task; O(T + N + moves log C) in the usual case.
    """
    home = homes(state)
    chosen = np.flatnonzero(state.stateful)
    capacity = state.capacity()
    bands = thread_bands(capacity, len(chosen))
    held = home[chosen]
    count = np.bincount(held[held != NOBODY], minlength=len(capacity)).astype(np.int64)
    is_settled = (count >= bands.low).all() and (count <= bands.high).all()
    if is_settled and not (held == NOBODY).any():
        return home
    board = _board(state, home, count)
    _move_along_hot_paths(board)
    target = np.array(board.place, dtype=np.int64)
    _place_rest(state, chosen, target)
    return target


@dataclass(slots=True, kw_only=True)
class _Board:
    """Scratchpad of one call: who holds what, and which other clients are caught up on it."""

    place: list[int]
    count: list[int]
    low: list[int]
    high: list[int]
    capacity: list[int]
    total: int
    others: dict[int, list[int]]
    movable: list[dict[int, None]]
    subtopology: list[int]
    spare: int = 0

    def is_open(self, client: int) -> bool:
        """Whether one more task fits without taking another client's due."""
        if self.count[client] < self.low[client]:
            return True
        return self.spare > 0 and self.count[client] < self.high[client]

    def move(self, task: int, client: int) -> None:
        """Hand a task to a client that is caught up on it."""
        old = self.place[task]
        self.place[task] = client
        kept = [other for other in self.others[task] if other != client]
        if old != NOBODY:
            self.movable[old].pop(task, None)
            kept.append(old)
            kept.sort()
        self.others[task] = kept
        self.movable[client][task] = None


def _board(state: GroupState, home: IntArray, count: IntArray) -> _Board:
    task = state.copy_task()
    capacity = state.capacity()
    is_other = state.is_caught_up() & state.stateful[task] & (capacity[state.copy_client] > 0)
    is_other &= (state.copy_client != home[task]) & ~state.starts_anywhere()[task]
    others: dict[int, list[int]] = {}
    for one, client in zip(
        task[is_other].tolist(), state.copy_client[is_other].tolist(), strict=True
    ):
        others.setdefault(one, []).append(client)
    place = home.tolist()
    movable: list[dict[int, None]] = [{} for _ in state.clients]
    for one in others:
        if place[one] != NOBODY:
            movable[place[one]][one] = None
    total = int(state.stateful.sum())
    bands = thread_bands(capacity, total)
    return _Board(
        place=place,
        count=count.tolist(),
        low=bands.low.tolist(),
        high=bands.high.tolist(),
        capacity=capacity.tolist(),
        total=total,
        others=others,
        movable=movable,
        subtopology=state.subtopology.tolist(),
    )


def _move_along_hot_paths(board: _Board) -> None:
    """Hand tasks along caught-up copies: homeless ones, then surplus, then for those below."""
    homeless = [t for t in sorted(board.others) if board.place[t] == NOBODY]
    clients = range(len(board.count))
    board.spare = board.total - sum(
        max(board.low[c], min(board.count[c], board.high[c])) for c in clients
    )
    dead: set[int] = set()
    for task in sorted(homeless, key=lambda t: (len(board.others[t]), t)):
        _augment(board, [(task, d) for d in board.others[task]], NOBODY, dead)
    for client in _most_loaded(board, [c for c in clients if board.count[c] > board.high[c]]):
        while board.count[client] > board.high[client]:
            if not _augment(board, _edges(board, client), client, dead):
                break
    open_to = [c for c in clients if board.count[c] < board.low[c]]
    if board.spare < 0 and open_to:
        _feed_the_poor(board, dead)


def _feed_the_poor(board: _Board, dead: set[int]) -> None:
    """Clients inside their band give, most loaded first, while others are below theirs."""
    above = [c for c in range(len(board.count)) if board.count[c] > board.low[c]]
    for client in _most_loaded(board, above):
        while board.spare < 0 and board.low[client] < board.count[client] <= board.high[client]:
            if not _augment(board, _edges(board, client), client, dead):
                break
            board.spare += 1


def _most_loaded(board: _Board, clients: Sequence[int]) -> list[int]:
    usable = [c for c in clients if board.capacity[c]]
    return sorted(usable, key=lambda c: (-board.count[c] / board.capacity[c], c))


def _edges(board: _Board, client: int) -> list[tuple[int, int]]:
    """(task, other client) over which the client can give, its largest subtopology first."""
    size: dict[int, int] = {}
    for task in board.movable[client]:
        size[board.subtopology[task]] = size.get(board.subtopology[task], 0) + 1
    tasks = sorted(board.movable[client], key=lambda t: (-size[board.subtopology[t]], t))
    return [(task, other) for task in tasks for other in board.others[task]]


def _augment(board: _Board, edges: Sequence[tuple[int, int]], start: int, dead: set[int]) -> bool:
    """Hand tasks along the shortest path from `start` to a client with room; False: there is none.

    Clients of a failed search go into `dead`: nobody can be reached from them any more.
    """
    parent: dict[int, tuple[int, int]] = {}
    level = [(task, start, client) for task, client in edges]
    while level:
        fresh = []
        for task, giver, client in level:
            if client not in parent and client != start and client not in dead:
                parent[client] = (task, giver)
                fresh.append(client)
        found = [client for client in fresh if board.is_open(client)]
        if found:
            _hand_along(board, parent, start, min(found, key=lambda c: _load(board, c)))
            return True
        level = [(task, giver, to) for giver in fresh for task, to in _edges(board, giver)]
    dead.update(parent)
    return False


def _load(board: _Board, client: int) -> tuple[float, int]:
    return (board.count[client] / board.capacity[client], client)


def _hand_along(board: _Board, parent: dict[int, tuple[int, int]], start: int, client: int) -> None:
    if board.count[client] >= board.low[client]:
        board.spare -= 1
    board.count[client] += 1
    if start != NOBODY:
        board.count[start] -= 1
    while client != start:
        task, giver = parent[client]
        board.move(task, client)
        client = giver


def _place_rest(state: GroupState, chosen: IntArray, target: IntArray) -> None:
    """Fix the quotas, and place what no hot path reached."""
    capacity, clients = state.capacity(), len(state.clients)
    held = target[chosen]
    count = np.bincount(held[held != NOBODY], minlength=clients).astype(np.int64)
    room = quotas(count, capacity, len(chosen)) - count
    _place_on_partial_copies(state, target, room)
    left = np.flatnonzero(state.stateful & (target == NOBODY)).tolist()
    for client in np.flatnonzero(room < 0).tolist():
        gone = released(state, np.flatnonzero(target == client).tolist(), -int(room[client]))
        target[gone] = NOBODY
        left += gone
    fill(state, sorted(left), target, np.maximum(room, 0), capacity)


def _place_on_partial_copies(state: GroupState, target: IntArray, room: IntArray) -> None:
    """Tasks that are homeless or too many go to a copy on its way up, the nearest one first.

    This is also what keeps a warm-up that takes several rounds on its destination.
    """
    task = state.copy_task()
    giver = target[task]
    may_leave: BoolArray = (giver == NOBODY) | (room[giver] < 0)
    useful = may_leave & (room[state.copy_client] > 0) & (giver != state.copy_client)
    useful &= state.stateful[task]
    where = np.flatnonzero(useful)
    keys = (state.copy_client[where], task[where], state.copy_lag[where], giver[where] != NOBODY)
    for index in where[np.lexsort(keys)].tolist():
        one, client = int(task[index]), int(state.copy_client[index])
        old = int(target[one])
        if room[client] <= 0 or (old != giver[index]) or (old != NOBODY and room[old] >= 0):
            continue
        target[one] = client
        room[client] -= 1
        if old != NOBODY:
            room[old] += 1
