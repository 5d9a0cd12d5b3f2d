"""New standby copies: each to the best client, or round robin.

Round robin starts at a separate position for each active client, so that its standbys are on all
others and all survivors share its tasks after a crash.
"""

from bisect import insort
from collections.abc import Sequence
from itertools import islice

import numpy as np

from assignor.placement.standbys.cell_sets import Cells, around
from assignor.placement.standbys.copies_apart import ONE_CELL
from assignor.placement.standbys.draft import DraftStandbys
from assignor.placement.standbys.free_capacity import Ring, Takers
from assignor.placement.state import NOBODY

# Up to this many new copies, all clients are compared for each copy; beyond that, round robin.
_WEIGHED = 600
# Copies without a round robin place are compared too, up to this many copies x clients.
_LOOKED_AT = 400_000
# Up to this many clients a loop over them is faster than numpy.
_FEW_CLIENTS = 64
# Up to this many clients the (active client, standby client) pairs are counted and compared.
_PAIRED = 3_000
# Most clients, and most copies of each, that are tried for an exchange.
_TRIES = 32
# Not a position of a ring: no client has free capacity, or none of the next clients suits.
_FULL, _NONE = -1, -2
# Failed exchanges after which no more are tried.
_FAILURES = 16


def fill_standbys(draft: DraftStandbys) -> None:
    """Add new copies for the tasks that lack some, in the order of the tasks."""
    missing = [
        t for t, held_by in draft.holders.items() for _ in range(draft.wanted - len(held_by))
    ]
    if not missing:
        return
    if len(missing) > _WEIGHED:
        missing = _fill_round(draft, missing)
    blocked = _fill_weighed(draft, missing) if missing else []
    if not blocked:
        return
    takers, ranking = Takers.of(draft.free, [0] * len(draft.free)), draft.most_free()
    donors, failures = sorted(draft.fresh), 0
    for task in blocked:
        # Blocked tasks resemble each other, so after some failures the others would fail, too.
        if failures < _FAILURES and _exchange(draft, task, takers, donors):
            continue
        failures += 1
        # No client with free capacity may hold it: use the one that exceeds its band least.
        client = ranking.first(draft.best_cells(task), draft.places(task))
        if client != NOBODY:
            draft.add(task, client)


def _fill_weighed(draft: DraftStandbys, missing: Sequence[int]) -> list[int]:
    """Add each copy to the best client with free capacity; the tasks without such a client."""
    if len(draft.capacity) <= _FEW_CLIENTS:
        return _weighed_by_loop(draft, missing)
    is_long = len(missing) > _WEIGHED and len(missing) * len(draft.capacity) > _LOOKED_AT
    return _fill_by_free_capacity(draft, missing) if is_long else _weighed_by_numpy(draft, missing)


def _fill_by_free_capacity(draft: DraftStandbys, missing: Sequence[int]) -> list[int]:
    """Add each copy to the client with most free capacity per thread; the tasks without one.

    For many copies and many clients: O(log C) each, instead of a comparison of all clients.
    """
    ranking, spread = draft.most_free(), draft.spread
    blocked = []
    for task in missing:
        client = ranking.first(draft.best_cells(task), draft.places(task))
        if client == NOBODY or (draft.free[client] <= 0 and not spread.is_needed):
            blocked.append(task)
            continue
        draft.add_new(task, client)
    return blocked


def _weighed_by_loop(draft: DraftStandbys, missing: Sequence[int]) -> list[int]:
    """The same as `_weighed_by_numpy`, faster for few clients."""
    free, pairs, spread, clients = draft.free, draft.pairs, draft.spread, len(draft.capacity)
    capacity = [max(1, threads) for threads in draft.capacity]
    held = [0] * clients
    for held_by in draft.holders.values():
        for client in held_by:
            held[client] += 1
    total, left = max(len(draft.holders), 1), len(set(missing))
    members: dict[Cells, list[int]] = {}
    blocked, last = [], -1
    for task in missing:
        left -= task != last
        last, active, copies = task, draft.active[task], draft.holders[task]
        cells = spread.best_for([active, *copies], draft.wanted - len(copies))
        if cells not in members:
            members[cells] = [
                c for c in range(clients) if spread.usable[c] and spread.cells[c] in cells
            ]
        able = [c for c in members[cells] if c != active and c not in copies]
        where = [c for c in able if free[c] > 0]
        if not where and spread.is_needed:
            where = able
        if not where:
            blocked.append(task)
            continue
        best: tuple[bool, float, float, int, int] | None = None
        for c in where:
            threads = capacity[c]
            # See `_weighed_by_numpy`.
            is_urgent = 2 * free[c] * total > (left + 1) * (total - held[c])
            weight = -free[c] if is_urgent else pairs.get((active, c), 0) / threads
            key = (not is_urgent, weight, -free[c] / threads, (c - active) % clients, c)
            if best is None or key < best:
                best = key
        if best is not None:
            client = best[-1]
            draft.add_new(task, client)
            held[client] += 1
    return blocked


def _weighed_by_numpy(draft: DraftStandbys, missing: Sequence[int]) -> list[int]:
    """Add each copy to the best client with free capacity; the tasks without such a client."""
    free = np.array(draft.free, dtype=np.int64)
    capacity = np.maximum(np.array(draft.capacity, dtype=np.int64), 1)
    clients = len(capacity)
    # With more clients a pair hardly ever repeats, and a row for each would take C x C memory.
    counts_pairs = clients <= _PAIRED
    nothing = np.zeros(clients, dtype=np.int64)
    counted = {draft.active[task] for task in missing} if counts_pairs else set()
    rows = {active: np.zeros(clients, dtype=np.int64) for active in sorted(counted)}
    for (active, client), count in draft.pairs.items() if counts_pairs else ():
        if active in rows:
            rows[active][client] = count
    held = np.bincount(draft.copies()[1], minlength=clients).astype(np.int64)
    total, left = max(len(draft.holders), 1), len(set(missing))
    numbers = np.arange(clients)
    blocked, last = [], -1
    for task in missing:
        left -= task != last
        last, active = task, draft.active[task]
        pair = rows.get(active, nothing)
        where = numbers[draft.fits(task, free > 0)]
        if not len(where):
            blocked.append(task)
            continue
        able = np.arange(len(where))
        # A client with much free capacity may run out of tasks that it does not hold: it is first.
        is_urgent = 2 * free[where] * total > (left + 1) * (total - held[where])
        for key in (
            ~is_urgent,
            np.where(is_urgent, -free[where], pair[where] / capacity[where]),
            -free[where] / capacity[where],
            (where - active) % clients,
        ):
            able = able[key[able] == key[able].min()]
        client = int(where[able[0]])
        draft.add_new(task, client)
        pair[client] += counts_pairs
        free[client] -= 1
        held[client] += 1
    return blocked


def _fill_round(draft: DraftStandbys, missing: Sequence[int]) -> list[int]:
    """Add copies round robin, one ring per set of cells; the tasks without a place."""
    if not draft.spread.is_needed:
        return _fill_ring(draft, missing)
    rings: dict[Cells, Ring] = {}
    capacity = list(enumerate(draft.capacity))
    full: set[Cells] = set()
    blocked = []
    for task in missing:
        active = draft.active[task]
        left = draft.wanted - len(draft.holders[task])
        cells = draft.spread.best_for([active, *draft.holders[task]], left)
        listed = around(cells)
        if listed not in rings:
            within = [n if draft.spread.cells[c] in listed else 0 for c, n in capacity]
            rings[listed] = Ring.of(within)
        ring, place = rings[listed], _FULL
        if listed not in full and ring.clients:
            place = _next_in(draft, task, ring, cells, is_exact=listed is cells)
            if place == _FULL:
                full.add(listed)
        if place < 0:
            blocked.append(task)
            continue
        client = ring.clients[place]
        draft.add_new(task, client)
        ring.pointer[active] = place + 1
    return blocked


def _fill_ring(draft: DraftStandbys, missing: Sequence[int]) -> list[int]:
    """The same as `_fill_round` for groups without keys: all clients are in one ring."""
    ring, free = Ring.of(draft.capacity), draft.free
    clients, pointer, is_full = ring.clients, ring.pointer, False
    size, blocked = len(clients), []
    for task in missing:
        active = draft.active[task]
        place = pointer.get(active, active) % size
        client = clients[place]
        # Nearly always the next client suits; this saves the call.
        if free[client] <= 0 or client == active or client in draft.holders[task]:
            place = _FULL if is_full else _next_in(draft, task, ring, ONE_CELL, is_exact=True)
            if place < 0:
                is_full = is_full or place == _FULL
                blocked.append(task)
                continue
            client = clients[place]
        draft.add_new(task, client)
        pointer[active] = place + 1
    return blocked


def _next_in(draft: DraftStandbys, task: int, ring: Ring, cells: Cells, *, is_exact: bool) -> int:
    """The next place of a ring whose client suits the task; else `_FULL` or `_NONE`.

    Args:
        draft: the draft.
        task: the task.
        ring: the clients of these cells, and of others unless `is_exact`.
        cells: the cells in which the copy may be.
        is_exact: whether all clients of the ring are in these cells.
    """
    clients, own = ring.clients, draft.spread.cells
    start = ring.pointer.get(draft.active[task], draft.active[task])
    tries = len(draft.holders[task]) + 2
    for _ in range(tries if is_exact else tries + _TRIES):
        place = ring.open_place(draft.free, start % len(clients))
        if place < 0:
            return _FULL
        client = clients[place]
        if (is_exact or own[client] in cells) and draft.can_hold(task, client):
            return place
        start = place + 1
    return _NONE


def _exchange(draft: DraftStandbys, task: int, takers: Takers, donors: list[int]) -> bool:
    """Place a task on a client that may hold it, after one of its new copies moved elsewhere.

    Args:
        draft: the draft.
        task: the task.
        takers: clients with free capacity.
        donors: clients with new copies, ascending; updated.

    Returns:
        Whether such an exchange was found.
    """
    open_to = list(takers.first(ONE_CELL, _TRIES))
    spread, cells, held_by = draft.spread, draft.best_cells(task), draft.places(task)
    fitting = (
        c for c in donors if spread.usable[c] and spread.cells[c] in cells and c not in held_by
    )
    for client in list(islice(fitting, _TRIES)):
        for other in list(islice(draft.fresh[client], _TRIES)):
            for taker in open_to:
                if not draft.can_hold(other, taker):
                    continue
                if not draft.may_replace(other, client, taker):
                    continue
                if taker not in draft.fresh:
                    insort(donors, taker)
                draft.drop(other, client)
                draft.add_new(other, taker)
                draft.add_new(task, client)
                return True
    return False
