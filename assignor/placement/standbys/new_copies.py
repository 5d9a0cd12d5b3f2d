"""New standby copies: weighed one by one, or dealt by pointers that go round the clients.

Every active client has a pointer of its own, so that its standbys sit on all others and a crash is
shared by all survivors.
"""

from bisect import insort
from collections.abc import Sequence
from itertools import islice

import numpy as np

from assignor.placement.standbys.cell_sets import Cells, around
from assignor.placement.standbys.copies_apart import ONE_CELL
from assignor.placement.standbys.free_room import Ring, Takers
from assignor.placement.standbys.scratchpad import Board
from assignor.placement.state import NOBODY

# Up to so many new copies each is weighed against all clients; beyond, pointers go round.
_WEIGHED = 600
# What the pointers leave is weighed too, while copies x clients are not more than this.
_LOOKED_AT = 400_000
# Up to so many clients a loop over them is faster than numpy.
_FEW_CLIENTS = 64
# Up to so many clients the pairs of active and standby clients are weighed too.
_PAIRED = 3_000
# Clients and copies that are looked at for an exchange, each.
_TRIES = 32
# What is no place of a ring: no client has room, or none of the next ones suits.
_FULL, _NONE = -1, -2
# Exchanges that may fail before no more are tried.
_FAILURES = 16


def fill_standbys(board: Board) -> None:
    """New copies for the tasks that lack some, in the order of the tasks."""
    missing = [
        t for t, held_by in board.holders.items() for _ in range(board.wanted - len(held_by))
    ]
    if not missing:
        return
    if len(missing) > _WEIGHED:
        missing = _fill_round(board, missing)
    blocked = _fill_weighed(board, missing) if missing else []
    if not blocked:
        return
    takers, roomiest = Takers.of(board.room, [0] * len(board.room)), board.roomiest()
    donors, failures = sorted(board.fresh), 0
    for task in blocked:
        # What is blocked once is blocked for all alike: holders and room on the same clients.
        if failures < _FAILURES and _exchange(board, task, takers, donors):
            continue
        failures += 1
        # Nobody with room may hold it: the client that goes least above its band takes it.
        client = roomiest.first(board.best_cells(task), board.places(task))
        if client != NOBODY:
            board.add(task, client)


def _fill_weighed(board: Board, missing: Sequence[int]) -> list[int]:
    """Each copy to the best client with room; returns the tasks for which there is none."""
    if len(board.capacity) <= _FEW_CLIENTS:
        return _weighed_by_loop(board, missing)
    is_long = len(missing) > _WEIGHED and len(missing) * len(board.capacity) > _LOOKED_AT
    return _fill_by_room(board, missing) if is_long else _weighed_by_numpy(board, missing)


def _fill_by_room(board: Board, missing: Sequence[int]) -> list[int]:
    """Each copy to the client with most room a thread; returns the tasks for which there is none.

    For many copies among many clients: O(log C) each, where weighing looks at every client.
    """
    roomiest, spread = board.roomiest(), board.spread
    blocked = []
    for task in missing:
        client = roomiest.first(board.best_cells(task), board.places(task))
        if client == NOBODY or (board.room[client] <= 0 and not spread.is_needed):
            blocked.append(task)
            continue
        board.add_new(task, client)
    return blocked


def _weighed_by_loop(board: Board, missing: Sequence[int]) -> list[int]:
    """As `_weighed_by_numpy`, for few clients."""
    room, pairs, spread, clients = board.room, board.pairs, board.spread, len(board.capacity)
    capacity = [max(1, threads) for threads in board.capacity]
    held = [0] * clients
    for held_by in board.holders.values():
        for client in held_by:
            held[client] += 1
    total, left = max(len(board.holders), 1), len(set(missing))
    members: dict[Cells, list[int]] = {}
    blocked, last = [], -1
    for task in missing:
        left -= task != last
        last, active, mine = task, board.active[task], board.holders[task]
        cells = spread.best_for([active, *mine], board.wanted - len(mine))
        if cells not in members:
            members[cells] = [
                c for c in range(clients) if spread.usable[c] and spread.cells[c] in cells
            ]
        able = [c for c in members[cells] if c != active and c not in mine]
        where = [c for c in able if room[c] > 0]
        if not where and spread.is_needed:
            where = able
        if not where:
            blocked.append(task)
            continue
        best: tuple[bool, float, float, int, int] | None = None
        for c in where:
            threads = capacity[c]
            # As below.
            is_urgent = 2 * room[c] * total > (left + 1) * (total - held[c])
            weight = -room[c] if is_urgent else pairs.get((active, c), 0) / threads
            key = (not is_urgent, weight, -room[c] / threads, (c - active) % clients, c)
            if best is None or key < best:
                best = key
        if best is not None:
            client = best[-1]
            board.add_new(task, client)
            held[client] += 1
    return blocked


def _weighed_by_numpy(board: Board, missing: Sequence[int]) -> list[int]:
    """Each copy to the best client with room; returns the tasks for which there is none."""
    room = np.array(board.room, dtype=np.int64)
    capacity = np.maximum(np.array(board.capacity, dtype=np.int64), 1)
    clients = len(capacity)
    # Among so many clients a pair hardly ever repeats, and a row for each would be C x C.
    counts_pairs = clients <= _PAIRED
    nothing = np.zeros(clients, dtype=np.int64)
    counted = {board.active[task] for task in missing} if counts_pairs else set()
    rows = {active: np.zeros(clients, dtype=np.int64) for active in sorted(counted)}
    for (active, client), count in board.pairs.items() if counts_pairs else ():
        if active in rows:
            rows[active][client] = count
    held = np.bincount(board.copies()[1], minlength=clients).astype(np.int64)
    total, left = max(len(board.holders), 1), len(set(missing))
    numbers = np.arange(clients)
    blocked, last = [], -1
    for task in missing:
        left -= task != last
        last, active = task, board.active[task]
        pair = rows.get(active, nothing)
        where = numbers[board.fits(task, room > 0)]
        if not len(where):
            blocked.append(task)
            continue
        able = np.arange(len(where))
        # A client with much room may run out of tasks that it does not hold yet: it comes first.
        is_urgent = 2 * room[where] * total > (left + 1) * (total - held[where])
        for key in (
            ~is_urgent,
            np.where(is_urgent, -room[where], pair[where] / capacity[where]),
            -room[where] / capacity[where],
            (where - active) % clients,
        ):
            able = able[key[able] == key[able].min()]
        client = int(where[able[0]])
        board.add_new(task, client)
        pair[client] += counts_pairs
        room[client] -= 1
        held[client] += 1
    return blocked


def _fill_round(board: Board, missing: Sequence[int]) -> list[int]:
    """Pointers go round rings that skip clients without room; returns what found no place."""
    if not board.spread.is_needed:
        return _fill_ring(board, missing)
    rings: dict[Cells, Ring] = {}
    capacity = list(enumerate(board.capacity))
    full: set[Cells] = set()
    blocked = []
    for task in missing:
        active = board.active[task]
        left = board.wanted - len(board.holders[task])
        cells = board.spread.best_for([active, *board.holders[task]], left)
        listed = around(cells)
        if listed not in rings:
            within = [n if board.spread.cells[c] in listed else 0 for c, n in capacity]
            rings[listed] = Ring.of(within)
        ring, place = rings[listed], _FULL
        if listed not in full and ring.clients:
            place = _next_in(board, task, ring, cells, is_exact=listed is cells)
            if place == _FULL:
                full.add(listed)
        if place < 0:
            blocked.append(task)
            continue
        client = ring.clients[place]
        board.add_new(task, client)
        ring.pointer[active] = place + 1
    return blocked


def _fill_ring(board: Board, missing: Sequence[int]) -> list[int]:
    """As `_fill_round`, in the one ring of clients that no key tells apart."""
    ring, room = Ring.of(board.capacity), board.room
    clients, pointer, is_full = ring.clients, ring.pointer, False
    size, blocked = len(clients), []
    for task in missing:
        active = board.active[task]
        place = pointer.get(active, active) % size
        client = clients[place]
        # Nearly always the next client suits: without a call for it.
        if room[client] <= 0 or client == active or client in board.holders[task]:
            place = _FULL if is_full else _next_in(board, task, ring, ONE_CELL, is_exact=True)
            if place < 0:
                is_full = is_full or place == _FULL
                blocked.append(task)
                continue
            client = clients[place]
        board.add_new(task, client)
        pointer[active] = place + 1
    return blocked


def _next_in(board: Board, task: int, ring: Ring, cells: Cells, *, is_exact: bool) -> int:
    """The next place of a ring whose client suits the task; `_FULL`, or `_NONE` of the next ones.

    Args:
        board: the scratchpad.
        task: the task.
        ring: clients of these cells; of more, where it is not exact.
        cells: where the copy may be.
        is_exact: whether all clients of the ring are in these cells.
    """
    clients, own = ring.clients, board.spread.cells
    start = ring.pointer.get(board.active[task], board.active[task])
    tries = len(board.holders[task]) + 2
    for _ in range(tries if is_exact else tries + _TRIES):
        place = ring.open_place(board.room, start % len(clients))
        if place < 0:
            return _FULL
        client = clients[place]
        if (is_exact or own[client] in cells) and board.can_hold(task, client):
            return place
        start = place + 1
    return _NONE


def _exchange(board: Board, task: int, takers: Takers, donors: list[int]) -> bool:
    """Make room on a client that may hold the task, by moving one of its new copies elsewhere.

    Args:
        board: the scratchpad.
        task: the task.
        takers: clients with room.
        donors: clients with new copies, ascending; kept so.
    """
    open_to = list(takers.first(ONE_CELL, _TRIES))
    spread, cells, held_by = board.spread, board.best_cells(task), board.places(task)
    fitting = (
        c for c in donors if spread.usable[c] and spread.cells[c] in cells and c not in held_by
    )
    for client in list(islice(fitting, _TRIES)):
        for other in list(islice(board.fresh[client], _TRIES)):
            for taker in open_to:
                if not board.can_hold(other, taker):
                    continue
                if not board.may_replace(other, client, taker):
                    continue
                if taker not in board.fresh:
                    insort(donors, taker)
                board.drop(other, client)
                board.add_new(other, taker)
                del board.fresh[client][other]
                board.add_new(task, client)
                return True
    return False
