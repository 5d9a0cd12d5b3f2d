"""Where stateful active tasks belong in the end: the target, before anything is warmed up.

Every client keeps what it runs up to its thread band. What must move goes along *hot* paths first:
from a client that has too many to one that lacks some, over clients that are caught up on the tasks
handed along, shortest path first, so nothing is restored. The rest goes to copies on their way up,
then evenly over the subtopologies.
"""

from dataclasses import dataclass

import numpy as np

from assignor.bands import fill, quotas, released, thread_bands
from assignor.state import NOBODY, BoolArray, GroupState, IntArray
from assignor.weights import weighted_target


def homes(state: GroupState) -> IntArray:
    """Int [T]: where each stateful task is best left alone; NOBODY where it has no such place.

    The running owner while it is caught up, or while nobody else is and it still has state. NOBODY
    for stateless tasks.
    """
    task, hot = state.copy_task(), state.is_caught_up()
    anywhere = state.starts_anywhere()
    at_owner = state.copy_client == state.owner[task]
    owner_is_hot, has_state, has_hot = anywhere.copy(), ~anywhere, anywhere.copy()
    owner_is_hot[task[at_owner]] = False
    owner_is_hot[task[at_owner & hot]] = True
    # Without a report of the owner there is nothing better than it, unless another has state.
    has_state[task] = False
    has_state[task[at_owner]] = True
    has_hot[task[hot]] = True
    stays = owner_is_hot | (~has_hot & has_state)
    usable = (state.owner != NOBODY) & (state.capacity()[state.owner] > 0)
    return np.where(stays & state.stateful & usable, state.owner, NOBODY)


def target_actives(state: GroupState) -> IntArray:
    """Int [T]: the client on which each stateful task belongs; NOBODY for stateless tasks.

    Threads differ by at most one stateful task, or where tasks have weights, the work of the
    busiest is near the best there is; O(T + N + moves log C) in the usual case.
    """
    home = homes(state)
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
    is_other &= state.copy_client != home[task]
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
    """Hand tasks along caught-up copies: homeless ones, then surplus, then for those below.

    A path over one more client saves a restore and costs a hand-off. That is worth it for a task
    without a home, which would burden a full client meanwhile, and for no other.
    """
    clients = range(len(board.count))
    board.spare = board.total - sum(
        max(board.low[c], min(board.count[c], board.high[c])) for c in clients
    )
    homeless = [t for t in sorted(board.others) if board.place[t] == NOBODY]
    closed: set[int] = set()
    for task in sorted(homeless, key=lambda t: (len(board.others[t]), t)):
        _take_in(board, task, closed)
    for client in _most_loaded(board):
        _give(board, client, down_to=board.high[client])
    for client in _most_loaded(board):
        # Inside its band nobody has to give, unless others stay below theirs.
        if board.spare < 0 and board.count[client] <= board.high[client]:
            _give(board, client, down_to=board.low[client], is_voluntary=True)


def _take_in(board: _Board, task: int, closed: set[int]) -> None:
    """A homeless task goes to a caught-up client with room, or one that can make room."""
    client = _least_loaded_open(board, task)
    if client != NOBODY:
        board.spare -= board.count[client] >= board.low[client]
    else:
        for giver in sorted(board.others[task], key=lambda c: _load(board, c)):
            if giver not in closed and _give(board, giver, down_to=board.count[giver] - 1):
                client = giver
                break
            # Room only shrinks, so whoever finds none will not find any later.
            closed.add(giver)
    if client != NOBODY:
        board.count[client] += 1
        board.move(task, client)


def _give(board: _Board, client: int, *, down_to: int, is_voluntary: bool = False) -> int:
    """Hand tasks straight to caught-up clients with room; returns how many."""
    given = 0
    if board.count[client] <= down_to:
        return given
    for task in _by_largest_subtopology(board, client):
        if board.count[client] <= down_to or (is_voluntary and board.spare >= 0):
            break
        taker = _least_loaded_open(board, task)
        if taker == NOBODY:
            continue
        board.spare -= board.count[taker] >= board.low[taker]
        board.spare += is_voluntary
        board.count[taker] += 1
        board.count[client] -= 1
        board.move(task, taker)
        given += 1
    return given


def _least_loaded_open(board: _Board, task: int) -> int:
    able = [c for c in board.others[task] if board.is_open(c)]
    return min(able, key=lambda c: _load(board, c)) if able else NOBODY


def _most_loaded(board: _Board) -> list[int]:
    usable = [c for c, threads in enumerate(board.capacity) if threads]
    return sorted(usable, key=lambda c: (-board.count[c] / board.capacity[c], c))


def _by_largest_subtopology(board: _Board, client: int) -> list[int]:
    """The client's tasks that another is caught up on, so that the largest subtopology shrinks."""
    parts: dict[int, list[int]] = {}
    for task in sorted(board.movable[client]):
        parts.setdefault(board.subtopology[task], []).append(task)
    ranked = [(-left, task) for part in parts.values() for left, task in enumerate(part)]
    return [task for _, task in sorted(ranked)]


def _load(board: _Board, client: int) -> tuple[float, int]:
    return (board.count[client] / board.capacity[client], client)


def _place_rest(state: GroupState, chosen: IntArray, target: IntArray) -> None:
    """Fix the quotas, and place what no hot path reached."""
    capacity, clients = state.capacity(), len(state.clients)
    held = target[chosen]
    count = np.bincount(held[held != NOBODY], minlength=clients).astype(np.int64)
    room = quotas(count + _nearest_copies(state, target), capacity, len(chosen)) - count
    _place_on_partial_copies(state, target, room)
    left = np.flatnonzero(state.stateful & (target == NOBODY)).tolist()
    for client in np.flatnonzero(room < 0).tolist():
        gone = released(state, np.flatnonzero(target == client).tolist(), -int(room[client]))
        target[gone] = NOBODY
        left += gone
    fill(state, sorted(left), target, np.maximum(room, 0), capacity)


def _nearest_copies(state: GroupState, target: IntArray) -> IntArray:
    """Int [C]: homeless tasks whose nearest copy each client has; what it would like to get."""
    task = state.copy_task()
    where = np.flatnonzero(state.stateful[task] & (target[task] == NOBODY))
    where = where[np.lexsort((state.copy_client[where], state.copy_lag[where], task[where]))]
    is_first = np.diff(task[where], prepend=-1) != 0
    found = np.bincount(state.copy_client[where[is_first]], minlength=len(state.clients))
    return np.where(state.capacity() > 0, found, 0).astype(np.int64)


def _place_on_partial_copies(state: GroupState, target: IntArray, room: IntArray) -> None:
    """Tasks that are homeless or too many go to a copy on its way up, the nearest one first.

    This is also what keeps a warm-up that takes several rounds on its destination.
    """
    task = state.copy_task()
    giver = target[task]
    may_leave: BoolArray = (giver == NOBODY) | (room[giver] < 0)
    useful = may_leave & (room[state.copy_client] > 0) & (giver != state.copy_client)
    useful &= state.stateful[task]
    # Restoring so little from nothing is better than state that is further behind.
    useful &= state.is_caught_up() | ~state.starts_anywhere()[task]
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
