"""New standby copies: weighed one by one, or dealt by pointers that go round the clients.

Every active client has a pointer of its own, so that its standbys sit on all others and a crash is
shared by all survivors.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np

from assignor.placement.standbys.copies_apart import ONE_CELL, Spread
from assignor.placement.standbys.free_room import Ring, Roomiest, Takers
from assignor.placement.state import NOBODY, BoolArray, GroupState, IntArray

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
# Exchanges that may fail before no more are tried.
_FAILURES = 16


@dataclass(slots=True, kw_only=True)
class Board:
    """Scratchpad of one call: who holds which standbys, and who has room.

    Attributes:
        active: the client of each task.
        holders: task -> clients of its standbys; every stateful task has an entry.
        others: task -> clients with a reported copy that is not used.
        room: copies that each client may take; below 0 where it has too many.
        capacity: threads.
        pairs: (active client, standby client) -> tasks that they share.
        fresh: client -> tasks whose new copies it got in this call.
        wanted: standbys of a task.
        spread: what keeps the copies of a task apart.
    """

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
        candidates: tuple[IntArray, IntArray],
        spread: Spread,
    ) -> "Board":
        """A board with the kept copies on it; `candidates` are all that could be kept."""
        holders: dict[int, set[int]] = {t: set() for t in np.flatnonzero(state.stateful).tolist()}
        for task, client in zip(kept[0].tolist(), kept[1].tolist(), strict=True):
            holders[task].add(client)
        width = len(state.clients)
        shared, counts = np.unique(target[kept[0]] * width + kept[1], return_counts=True)
        keys = zip((shared // width).tolist(), (shared % width).tolist(), strict=True)
        others: dict[int, list[int]] = {}
        for task, client in zip(*(column.tolist() for column in candidates), strict=True):
            if client not in holders[task]:
                others.setdefault(task, []).append(client)
        return cls(
            active=target.tolist(),
            holders=holders,
            others=others,
            room=[0] * width,
            capacity=state.capacity().tolist(),
            pairs=dict(zip(keys, counts.tolist(), strict=True)),
            wanted=wanted,
            spread=spread,
        )

    def add(self, task: int, client: int) -> None:
        """Put a copy on a client."""
        self.holders[task].add(client)
        self.room[client] -= 1
        pair = (self.active[task], client)
        self.pairs[pair] = self.pairs.get(pair, 0) + 1

    def drop(self, task: int, client: int) -> None:
        """Take a copy from a client."""
        self.holders[task].remove(client)
        self.room[client] += 1
        self.pairs[self.active[task], client] -= 1

    def can_hold(self, task: int, client: int) -> bool:
        """Whether the client has no copy of the task yet."""
        return client != self.active[task] and client not in self.holders[task]

    def copies(self) -> tuple[IntArray, IntArray]:
        """Task and client of all standbys, by ascending task; int [P] both."""
        sizes = np.fromiter(map(len, self.holders.values()), np.int64, len(self.holders))
        clients = chain.from_iterable(self.holders.values())
        tasks = np.fromiter(self.holders, np.int64, len(sizes))
        return np.repeat(tasks, sizes), np.fromiter(clients, np.int64, int(sizes.sum()))

    def places(self, task: int) -> list[int]:
        """The clients of a task, the active one first."""
        return [self.active[task], *self.holders[task]]

    def roomiest(self) -> Roomiest:
        """Clients by room a thread."""
        return Roomiest(self.room, self.capacity, self.spread.cells, {})

    def best_cells(self, task: int) -> frozenset[int]:
        """The cells in which one more copy of the task spreads it most."""
        left = self.wanted - len(self.holders[task])
        return self.spread.best_for(self.places(task), left)

    def fits(self, task: int, has_room: BoolArray) -> BoolArray:
        """Bool [C]: the clients that the spread of the task asks for, with room if there are."""
        held_by = self.holders[task]
        left = self.wanted - len(held_by)
        return self.spread.fits([self.active[task], *held_by], has_room, left)

    def may_replace(self, task: int, old: int, new: int) -> bool:
        """Whether the copies stay as far apart when the one on `old` moves to `new`."""
        return self.spread.cells[new] in self.successors(task, old)

    def successors(self, task: int, old: int) -> frozenset[int]:
        """The cells in which the copy on `old` would be as far from the others."""
        if not self.spread.is_needed:
            return ONE_CELL
        held_by = self.holders[task]
        left = self.wanted - len(held_by)
        return self.spread.successors([self.active[task], *held_by], old, left)


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
        board.add(task, client)
        board.fresh.setdefault(client, {})[task] = None
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
    members: dict[frozenset[int], list[int]] = {}
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
            board.add(task, client)
            held[client] += 1
            board.fresh.setdefault(client, {})[task] = None
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
        board.add(task, client)
        pair[client] += counts_pairs
        room[client] -= 1
        held[client] += 1
        board.fresh.setdefault(client, {})[task] = None
    return blocked


def _fill_round(board: Board, missing: Sequence[int]) -> list[int]:
    """Pointers go round rings that skip clients without room; returns what found no place."""
    rings: dict[frozenset[int], Ring] = {}
    capacity = list(enumerate(board.capacity))
    full: set[frozenset[int]] = set()
    blocked = []
    for task in missing:
        active = board.active[task]
        left = board.wanted - len(board.holders[task])
        cells = board.spread.best_for([active, *board.holders[task]], left)
        if cells not in rings:
            within = [n if board.spread.cells[c] in cells else 0 for c, n in capacity]
            rings[cells] = Ring.of(within)
        ring, place = rings[cells], -1
        if cells not in full and ring.clients:
            start = ring.pointer.get(active, active)
            for _ in range(len(board.holders[task]) + 2):
                place = ring.open_place(board.room, start % len(ring.clients))
                if place < 0 or board.can_hold(task, ring.clients[place]):
                    break
                start = place + 1
            if place < 0:
                full.add(cells)
        if place < 0 or not board.can_hold(task, ring.clients[place]):
            blocked.append(task)
            continue
        client = ring.clients[place]
        board.add(task, client)
        board.fresh.setdefault(client, {})[task] = None
        ring.pointer[active] = place + 1
    return blocked


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
                board.drop(other, client)
                board.add(other, taker)
                del board.fresh[client][other]
                if taker not in board.fresh:
                    insort(donors, taker)
                board.fresh.setdefault(taker, {})[other] = None
                board.add(task, client)
                board.fresh[client][task] = None
                return True
    return False
