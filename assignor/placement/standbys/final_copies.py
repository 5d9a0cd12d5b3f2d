"""Where standbys belong in the end: existing copies stay, new ones spread over all others.

Bands count actives and standbys together. What is there already stays while its client is within
its band; new copies go round the clients, every active client with a pointer of its own, so that
the standbys of one client sit on all others and a crash is shared by all survivors. (Kafka takes
the least loaded client in order, which puts all standbys of one client on one neighbour.)
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.bands import quotas
from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.standbys.copy_chains import hand_on
from assignor.placement.standbys.free_room import Takers
from assignor.placement.standbys.new_copies import fill_standbys
from assignor.placement.standbys.scratchpad import Board
from assignor.placement.state import GroupState, IntArray

# Clients with room that are looked at for a copy that has to go.
_TAKERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Standbys:
    """Standby pairs; int [P] both, sorted by task, then client.

    Attributes:
        task, client: the pairs.
        warnings: tasks that lack copies, or a spread that cannot be had, and why.
    """

    task: IntArray
    client: IntArray
    warnings: tuple[str, ...] = ()


def target_standbys(state: GroupState, target: IntArray) -> Standbys:
    """Standbys for actives placed as in `target` (int [T], stateless ones included).

    As many as configured, or one less than there are usable clients.
    """
    capacity = state.capacity()
    usable = int((capacity > 0).sum())
    wanted = min(state.config.num_standby_replicas, usable - 1)
    nothing = np.zeros(0, dtype=np.int64)
    if wanted <= 0 or not state.stateful.any():
        return Standbys(task=nothing, client=nothing, warnings=_too_few(state, max(0, wanted)))
    spread = Spread.of(state)
    kept_task, kept_client = _keep(state, target, wanted, spread)
    copies = int(state.stateful.sum()) * wanted
    load = np.bincount(target, minlength=len(capacity)).astype(np.int64)
    held = np.bincount(kept_client, minlength=len(capacity)).astype(np.int64)
    room = _room(state, load, held, copies)
    if not (room < 0).any() and len(kept_task) == copies:
        return Standbys(task=kept_task, client=kept_client, warnings=_too_few(state, wanted))
    board = Board.of(
        state,
        target,
        wanted=wanted,
        kept=(kept_task, kept_client),
        candidates=_candidates(state, target),
        spread=spread,
    )
    board.room = room.tolist()
    ends = state.end_offset_sums.tolist()
    _shed_all(board, ends)
    fill_standbys(board)
    _shed_until_settled(board, ends, state, load, copies)
    if hand_on(board):
        _shed_until_settled(board, ends, state, load, copies)
    task, client = board.copies()
    order = np.lexsort((client, task))
    return Standbys(task=task[order], client=client[order], warnings=_too_few(state, wanted))


def _shed_until_settled(
    board: Board, ends: Sequence[int], state: GroupState, load: IntArray, copies: int
) -> None:
    """Give up what is outside of the bands as the next call would see them.

    A copy that found no place in its band, or was handed on, may have pushed others out. This ends:
    bands stay as they are, and each copy that moves leaves less outside of them.
    """
    # Where every client has just what it may have, the bands are the same for the next call.
    while any(board.room):
        held = np.bincount(board.copies()[1], minlength=len(load)).astype(np.int64)
        board.room = _room(state, load, held, copies).tolist()
        if not _shed_all(board, ends):
            return


def _room(state: GroupState, load: IntArray, held: IntArray, copies: int) -> IntArray:
    """Standbys that each client may take beyond those it holds; below 0 where it has too many."""
    total = int(load.sum()) + copies
    return quotas(load + held, state.capacity(), total, at_least=load) - load - held


def _too_few(state: GroupState, wanted: int) -> tuple[str, ...]:
    asked = state.config.num_standby_replicas
    if wanted >= asked or not state.stateful.any():
        return ()
    usable = int((state.capacity() > 0).sum())
    return (f"of {asked} standby replicas only {wanted} fit on {usable} clients; start more",)


def _candidates(state: GroupState, target: IntArray) -> tuple[IntArray, IntArray]:
    """Copies that may stay, best first within a task: caught up, not the old owner's, nearest."""
    task = state.copy_task()
    capacity = state.capacity()
    fits = state.stateful[task] & (state.copy_client != target[task])
    fits &= capacity[state.copy_client] > 0
    where = np.flatnonzero(fits)
    client, of_task = state.copy_client[where], task[where]
    lag = state.copy_lag[where]
    is_behind = lag > state.config.acceptable_recovery_lag
    was_owner = client == state.owner[of_task]
    order = np.lexsort((client, np.where(is_behind, lag, 0), was_owner, is_behind, of_task))
    return of_task[order], client[order]


def _keep(
    state: GroupState, target: IntArray, wanted: int, spread: Spread
) -> tuple[IntArray, IntArray]:
    """The best `wanted` copies of each task, sorted by task and client."""
    task, client = _candidates(state, target)
    if not len(task):
        return task, client
    first = np.searchsorted(task, task, side="left")
    best = np.arange(len(task)) - first < wanted
    if spread.is_needed and wanted == 1:
        fits = np.flatnonzero(spread.allowed(target[task], client))
        best = np.zeros(len(task), dtype=np.bool_)
        best[fits[np.diff(task[fits], prepend=-1) != 0]] = True
    elif spread.is_needed:
        best = np.zeros(len(task), dtype=np.bool_)
        clients, active = client.tolist(), target.tolist()
        starts = [*np.flatnonzero(np.diff(task, prepend=-1)).tolist(), len(clients)]
        for start, end in pairwise(starts):
            kept = set(spread.keep(clients[start:end], active[int(task[start])], wanted))
            best[start:end] = [c in kept for c in clients[start:end]]
    task, client = task[best], client[best]
    order = np.lexsort((client, task))
    return task[order], client[order]


def _shed_all(board: Board, ends: Sequence[int]) -> int:
    """Clients over their bands give copies up; returns how many copies went."""
    over = [client for client, room in enumerate(board.room) if room < 0]
    if not over:
        return 0
    # A client gets copies only while it has room: what those without hold is known beforehand.
    task, client = board.copies()
    chosen = np.array(board.room, dtype=np.int64)[client] < 0
    held = rows_by_value(client[chosen], task[chosen])
    takers = Takers.of(board.room, board.spread.cells)
    return sum(
        _shed_to_copies(board, takers, held.get(client, []), client)
        + _shed(board, takers, ends, held.get(client, []), client)
        for client in over
    )


def _shed_to_copies(board: Board, takers: Takers, held: Sequence[int], client: int) -> int:
    """Give up what another client with room has a copy of: nothing is restored."""
    shed = 0
    for task in held:
        if board.room[client] >= 0:
            break
        for other in board.others.get(task, ()):
            fits = board.room[other] > 0 and board.can_hold(task, other)
            if fits and board.may_replace(task, client, other):
                board.drop(task, client)
                board.add(task, other)
                takers.filled(other)
                shed += 1
                break
    return shed


def _shed(
    board: Board, takers: Takers, ends: Sequence[int], held: Sequence[int], client: int
) -> int:
    """Give up new copies first, then those that double a pair of clients most, cheapest first.

    Each goes to somebody, or it stays: what is given up and comes back would be restored.
    """
    if board.room[client] >= 0 or not takers.count:
        return 0
    fresh = board.fresh.get(client, {})
    by_active: dict[tuple[bool, int], list[int]] = {}
    for task in held:
        if client in board.holders[task]:
            by_active.setdefault((task not in fresh, board.active[task]), []).append(task)
    heap = []
    for key, part in by_active.items():
        # Popped from the end: cheapest last, and the highest number among equals.
        part.sort(key=ends.__getitem__, reverse=True)
        heap.append((key[0], -board.pairs[key[1], client], key[1]))
    heapq.heapify(heap)
    shed = 0
    while board.room[client] < 0 and heap and takers.count:
        is_old, _, active = heapq.heappop(heap)
        task = by_active[is_old, active].pop()
        taker = _taker(board, takers, task, client)
        if taker is not None:
            shed += 1
            board.drop(task, client)
            board.add_new(task, taker)
            fresh.pop(task, None)
            takers.filled(taker)
        if by_active[is_old, active]:
            heapq.heappush(heap, (is_old, -board.pairs[active, client], active))
    return shed


def _taker(board: Board, takers: Takers, task: int, client: int) -> int | None:
    """Who takes a copy from a client over its band; None: it stays, for nobody can."""
    active, held_by = board.active[task], board.holders[task]
    best: tuple[float, float, int] | None = None
    for other in takers.first(board.successors(task, client), _TAKERS):
        if other == active or other in held_by:
            continue
        threads = board.capacity[other]
        shared = board.pairs.get((active, other), 0)
        found = (shared / threads, -board.room[other] / threads, other)
        if best is None or found < best:
            best = found
    return None if best is None else best[2]
