"""Where standbys belong in the end: existing copies stay, new ones spread over all others.

Bands count actives and standbys together. What is there already stays while its client is within
its band; new copies go round the clients, every active client with a pointer of its own, so that
the standbys of one client sit on all others and a crash is shared by all survivors. (Kafka takes
the least loaded client in order, which puts all standbys of one client on one neighbour.)
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from assignor.bands import quotas
from assignor.spread import Spread
from assignor.state import GroupState, IntArray

# Up to so many new copies each is weighed against all clients; beyond, pointers go round.
_WEIGHED = 1_200
# Clients and copies that are looked at for an exchange, each.
_TRIES = 32
# Exchanges that may fail before no more are tried.
_FAILURES = 16


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
    load = np.bincount(target, minlength=len(capacity)).astype(np.int64)
    copies = int(state.stateful.sum()) * wanted
    held = np.bincount(kept_client, minlength=len(capacity)).astype(np.int64)
    quota = quotas(load + held, capacity, int(load.sum()) + copies, at_least=load)
    room = quota - load - held
    if not (room < 0).any() and len(kept_task) == copies:
        return Standbys(task=kept_task, client=kept_client, warnings=_too_few(state, wanted))
    kept = (kept_task, kept_client)
    board = _Board.of(state, target, wanted=wanted, kept=kept, room=room, spread=spread)
    for client in np.flatnonzero(room < 0).tolist():
        _shed(board, state, client)
    _fill(board)
    pairs = sorted((task, client) for task, held_by in board.holders.items() for client in held_by)
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Standbys(
        task=table[:, 0], client=table[:, 1], warnings=_too_few(state, wanted) + spread.warnings
    )


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
    if spread.is_needed:
        best = np.zeros(len(task), dtype=np.bool_)
        clients, active = client.tolist(), target.tolist()
        starts = [*np.flatnonzero(np.diff(task, prepend=-1)).tolist(), len(clients)]
        for start, end in pairwise(starts):
            kept = set(spread.keep(clients[start:end], active[int(task[start])], wanted))
            best[start:end] = [c in kept for c in clients[start:end]]
    task, client = task[best], client[best]
    order = np.lexsort((client, task))
    return task[order], client[order]


@dataclass(slots=True, kw_only=True)
class _Board:
    """Scratchpad of one call."""

    active: list[int]
    holders: dict[int, set[int]]
    others: dict[int, list[int]]
    room: list[int]
    capacity: list[int]
    pairs: dict[tuple[int, int], int]
    fresh: dict[int, dict[int, None]] = field(default_factory=dict)
    wanted: int
    spread: Spread

    @classmethod
    def of(
        cls,
        state: GroupState,
        target: IntArray,
        *,
        wanted: int,
        kept: tuple[IntArray, IntArray],
        room: IntArray,
        spread: Spread,
    ) -> "_Board":
        holders: dict[int, set[int]] = {t: set() for t in np.flatnonzero(state.stateful).tolist()}
        active = target.tolist()
        pairs: dict[tuple[int, int], int] = {}
        for task, client in zip(kept[0].tolist(), kept[1].tolist(), strict=True):
            holders[task].add(client)
            pair = (active[task], client)
            pairs[pair] = pairs.get(pair, 0) + 1
        others: dict[int, list[int]] = {}
        task_of, client_of = _candidates(state, target)
        for task, client in zip(task_of.tolist(), client_of.tolist(), strict=True):
            if client not in holders[task]:
                others.setdefault(task, []).append(client)
        return cls(
            active=active,
            holders=holders,
            others=others,
            room=room.tolist(),
            capacity=state.capacity().tolist(),
            pairs=pairs,
            wanted=wanted,
            spread=spread,
        )

    def add(self, task: int, client: int) -> None:
        self.holders[task].add(client)
        self.room[client] -= 1
        pair = (self.active[task], client)
        self.pairs[pair] = self.pairs.get(pair, 0) + 1

    def drop(self, task: int, client: int) -> None:
        self.holders[task].remove(client)
        self.room[client] += 1
        self.pairs[self.active[task], client] -= 1

    def can_hold(self, task: int, client: int) -> bool:
        return client != self.active[task] and client not in self.holders[task]

    def may_replace(self, task: int, old: int, new: int) -> bool:
        return self.spread.may_replace([self.active[task], *self.holders[task]], old, new)


def _shed(board: _Board, state: GroupState, client: int) -> None:
    """A client over its band gives copies up: where another copy exists, else the doubled pairs."""
    mine = [task for task, held_by in board.holders.items() if client in held_by]
    for task in mine:
        if board.room[client] >= 0:
            return
        for other in board.others.get(task, ()):
            fits = board.room[other] > 0 and board.can_hold(task, other)
            if fits and board.may_replace(task, client, other):
                board.drop(task, client)
                board.add(task, other)
                break
    ends = state.end_offset_sums.tolist()
    by_active: dict[int, list[tuple[int, int]]] = {}
    for task in mine:
        if client in board.holders[task]:
            # Popped from the end: cheapest last, and the highest number among equals.
            by_active.setdefault(board.active[task], []).append((-ends[task], task))
    for part in by_active.values():
        part.sort()
    heap = [(-board.pairs[active, client], active) for active in by_active]
    heapq.heapify(heap)
    while board.room[client] < 0 and heap:
        _, active = heapq.heappop(heap)
        board.drop(by_active[active].pop()[1], client)
        if by_active[active]:
            heapq.heappush(heap, (-board.pairs[active, client], active))


def _fill(board: _Board) -> None:
    """New copies for the tasks that lack some, those of the busiest givers last."""
    missing = [
        t for t, held_by in board.holders.items() for _ in range(board.wanted - len(held_by))
    ]
    if not missing:
        return
    is_weighed = board.spread.is_needed or len(missing) <= _WEIGHED
    blocked = _fill_weighed(board, missing) if is_weighed else _fill_round(board, missing)
    failures = 0
    for task in blocked:
        # What is blocked once is blocked for all alike: holders and room on the same clients.
        if failures < _FAILURES and _exchange(board, task):
            continue
        failures += 1
        _relax(board, task)


def _fill_weighed(board: _Board, missing: Sequence[int]) -> list[int]:
    """Each copy to the best client with room; returns the tasks for which there is none."""
    room = np.array(board.room, dtype=np.int64)
    capacity = np.maximum(np.array(board.capacity, dtype=np.int64), 1)
    clients = len(capacity)
    rows: dict[int, IntArray] = {}
    for (active, client), count in board.pairs.items():
        if active not in rows:
            rows[active] = np.zeros(clients, dtype=np.int64)
        rows[active][client] = count
    held = np.zeros(clients, dtype=np.int64)
    for held_by in board.holders.values():
        held[list(held_by)] += 1
    total, left = max(len(board.holders), 1), len(set(missing))
    numbers = np.arange(clients)
    blocked, last = [], -1
    for task in missing:
        left -= task != last
        last, active = task, board.active[task]
        pair = rows.setdefault(active, np.zeros(clients, dtype=np.int64))
        where = numbers[board.spread.fits([active, *board.holders[task]], room > 0)]
        if not len(where):
            blocked.append(task)
            continue
        # A client with much room may run out of tasks that it does not hold yet: it comes first.
        is_urgent = 2 * room[where] * total > (left + 1) * (total - held[where])
        keys = (
            (where - active) % clients,
            -room[where] / capacity[where],
            np.where(is_urgent, -room[where], pair[where] / capacity[where]),
            ~is_urgent,
        )
        client = int(where[np.lexsort(keys)[0]])
        board.add(task, client)
        pair[client] += 1
        room[client] -= 1
        held[client] += 1
        board.fresh.setdefault(client, {})[task] = None
    return blocked


def _circle(capacity: Sequence[int]) -> list[int]:
    """Clients in a ring, big ones more often and evenly between the others."""
    smallest = min(threads for threads in capacity if threads > 0)
    share = [min(64, round(threads / smallest)) for threads in capacity]
    places = [((k + 0.5) / n, c) for c, n in enumerate(share) for k in range(n)]
    return [client for _, client in sorted(places)]


def _fill_round(board: _Board, missing: Sequence[int]) -> list[int]:
    """Pointers go round the ring, over a union-find that skips clients without room."""
    ring = _circle(board.capacity)
    size = len(ring)
    following = list(range(size))
    for place, client in enumerate(ring):
        if board.room[client] <= 0:
            following[place] = (place + 1) % size
    pointer = {client: place + 1 for place, client in enumerate(ring)}
    blocked = []
    for task in missing:
        active = board.active[task]
        place = pointer.get(active, 0) % size
        for _ in range(len(board.holders[task]) + 2):
            place = _open_place(following, board.room, ring, place)
            if place < 0 or board.can_hold(task, ring[place]):
                break
            place = (place + 1) % size
        if place < 0 or board.room[ring[place]] <= 0 or not board.can_hold(task, ring[place]):
            blocked.append(task)
            continue
        board.add(task, ring[place])
        board.fresh.setdefault(ring[place], {})[task] = None
        pointer[active] = place + 1
    return blocked


def _open_place(following: list[int], room: Sequence[int], ring: Sequence[int], start: int) -> int:
    """The first place from `start` on whose client has room; -1 when there is none."""
    path = []
    place, steps = start, 0
    while room[ring[place]] <= 0:
        path.append(place)
        place = following[place] if following[place] != place else (place + 1) % len(ring)
        steps += 1
        if steps > len(ring):
            return -1
    for passed in path:
        following[passed] = place
    return place


def _exchange(board: _Board, task: int) -> bool:
    """Make room on a client that may hold the task, by moving one of its new copies elsewhere."""
    takers = [c for c, room in enumerate(board.room) if room > 0]
    donors = [c for c in sorted(board.fresh) if board.can_hold(task, c)]
    for client in donors[:_TRIES]:
        for other in list(board.fresh[client])[:_TRIES]:
            for taker in takers[:_TRIES]:
                if not board.can_hold(other, taker):
                    continue
                if not board.may_replace(other, client, taker):
                    continue
                board.drop(other, client)
                board.add(other, taker)
                del board.fresh[client][other]
                board.fresh.setdefault(taker, {})[other] = None
                board.add(task, client)
                board.fresh[client][task] = None
                return True
    return False


def _relax(board: _Board, task: int) -> None:
    """Nobody with room may hold it: the client that goes least above its band takes it."""
    able = [c for c, n in enumerate(board.capacity) if n > 0 and board.can_hold(task, c)]
    if able:
        board.add(task, min(able, key=lambda c: (-board.room[c] / board.capacity[c], c)))
