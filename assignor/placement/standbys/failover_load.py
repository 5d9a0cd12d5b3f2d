"""Standbys so that a crash overloads nobody: no survivor above 1.2 times the average.

Copies stay where their state is, so pairs of clients that share many tasks stay too, such as Kafka
makes them: all standbys of one client on one neighbour. Where one crash would put a survivor above
the limit, some of the copies that it would take over go to others. A copy matters only when its own
active client crashes; so each move mends one crash and spoils no other, and this ends.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from assignor.placement.bands import thread_bands
from assignor.placement.standbys.final_copies import Standbys
from assignor.placement.state import GroupState, IntArray

OVERLOAD = 1.2
# Up to so many copies; looking at every crash costs more than the rest in larger groups.
_MOST_COPIES = 6_000
# Clients that are asked for a copy in exchange.
_TRIES = 8
# Below so many tasks a client, one task more or less is beyond the limit already.
_FEWEST = 5


def even_out(state: GroupState, active: IntArray, standbys: Standbys) -> Standbys:
    """The standbys, some of them elsewhere; every client stays within its band.

    Args:
        state: the group, without tags and racks, which bind copies to where they are.
        active: int [T], the client of every task.
        standbys: of them.
    """
    few = int(state.stateful.sum()) < _FEWEST * int((state.capacity() > 0).sum())
    if few or not 0 < len(standbys.task) <= _MOST_COPIES or not _is_uneven(state, active, standbys):
        return standbys
    board = _Board.of(state, active, standbys)
    for crashed, threads in enumerate(board.capacity):
        if 0 < threads < sum(board.capacity):
            _mend(board, crashed)
    pairs = [(task, c) for task, held_by in sorted(board.holders.items()) for c in sorted(held_by)]
    task, client = np.array(pairs, dtype=np.int64).T
    return Standbys(task=task, client=client, warnings=standbys.warnings)


def _is_uneven(state: GroupState, active: IntArray, standbys: Standbys) -> bool:
    """Whether some crash may overload a client, if it took over all that it has copies of."""
    capacity, clients = state.capacity(), len(state.clients)
    pairs, shared = np.unique(active[standbys.task] * clients + standbys.client, return_counts=True)
    crashed, heir = pairs // clients, pairs % clients
    runs = np.bincount(active[state.stateful], minlength=clients)
    left = int(capacity.sum()) - capacity[crashed]
    average = np.maximum(1.0, int(state.stateful.sum()) / np.maximum(left, 1))
    load = (runs[heir] + shared) / np.maximum(capacity[heir], 1)
    return bool(((load > OVERLOAD * average + 1e-9) & (left > 0)).any())


@dataclass(slots=True, kw_only=True)
class _Board:
    """Scratchpad of one call.

    Attributes:
        active: the client of each task.
        tasks_of: client -> its stateful tasks.
        holders: task -> clients of its standbys.
        held: client -> tasks of which it has a standby.
        copies: (task, client) of every reported copy: to go there restores nothing.
        capacity: threads.
        runs: stateful actives of each client.
        load, low, high: all copies of each client, and its band.
        ends: end offset sums.
        crashes: what is known of each crash; forgotten when a copy of its tasks moves.
        limits: threads of a crashed client -> most tasks a thread that its crash may bring.
        ranked: (stateful actives a thread, client) of all that can hold tasks, ascending.
        others: task -> clients with a reported copy of it.
    """

    active: list[int]
    tasks_of: dict[int, list[int]]
    holders: dict[int, set[int]]
    held: list[set[int]]
    copies: frozenset[tuple[int, int]]
    capacity: list[int]
    runs: list[int]
    load: list[int]
    low: list[int]
    high: list[int]
    ends: list[int]
    crashes: dict[int, "_Crash"]
    limits: dict[int, float]
    ranked: list[tuple[float, int]]
    others: dict[int, list[int]]

    @classmethod
    def of(cls, state: GroupState, active: IntArray, standbys: Standbys) -> "_Board":
        """A board with everything in place."""
        clients, stateful = len(state.clients), np.flatnonzero(state.stateful).tolist()
        capacity, where = state.capacity(), active.tolist()
        tasks_of: dict[int, list[int]] = {}
        for task in stateful:
            tasks_of.setdefault(where[task], []).append(task)
        holders: dict[int, set[int]] = {task: set() for task in stateful}
        held: list[set[int]] = [set() for _ in state.clients]
        for task, client in zip(standbys.task.tolist(), standbys.client.tolist(), strict=True):
            holders[task].add(client)
            held[client].add(task)
        actives = np.bincount(active, minlength=clients)
        bands = thread_bands(capacity, len(active) + len(standbys.task), actives)
        places = list(zip(state.copy_task().tolist(), state.copy_client.tolist(), strict=True))
        others: dict[int, list[int]] = {}
        for task, client in places:
            others.setdefault(task, []).append(client)
        runs = np.bincount(active[state.stateful], minlength=clients).tolist()
        threads = capacity.tolist()
        return cls(
            active=where,
            tasks_of=tasks_of,
            holders=holders,
            held=held,
            copies=frozenset(places),
            capacity=threads,
            runs=runs,
            load=[own + len(mine) for own, mine in zip(actives.tolist(), held, strict=True)],
            low=bands.low.tolist(),
            high=bands.high.tolist(),
            ends=state.end_offset_sums.tolist(),
            crashes={},
            limits={},
            ranked=sorted((runs[c] / n, c) for c, n in enumerate(threads) if n),
            others=others,
        )

    def crash(self, client: int) -> "_Crash":
        """What a crash of the client would bring."""
        if client not in self.crashes:
            # Clients that take nothing over have what they run.
            load = _Load(self.runs)
            taken: dict[int, list[int]] = {}
            for task in self.tasks_of.get(client, ()):
                heirs = [c for c in self.holders[task] if self.capacity[c]]
                if heirs:
                    heir = heirs[0]
                    if len(heirs) > 1:
                        heir = min(heirs, key=lambda c: (load[c] / self.capacity[c], c))
                    load[heir] += 1
                    taken.setdefault(heir, []).append(task)
            # Whoever has as many threads leaves as much behind.
            threads = self.capacity[client]
            if threads not in self.limits:
                self.limits[threads] = self._limit(client)
            raised = sorted((n / self.capacity[c], c) for c, n in load.items())
            is_wide = 4 * len(load) > len(self.ranked)
            ranked = [one for one in self.ranked if one[1] not in load] if is_wide else self.ranked
            limit = self.limits[threads]
            self.crashes[client] = _Crash(client, load, taken, limit, raised, ranked)
        return self.crashes[client]

    def _limit(self, crashed: int) -> float:
        """The most tasks a thread that a crash may bring: 1.2 times the average, or the least."""
        threads = [n for c, n in enumerate(self.capacity) if c != crashed and n]
        total = len(self.holders)
        average = max(1.0, total / sum(threads))
        height = average
        while sum(int(height * n + 1e-9) for n in threads) < total:
            height = min((int(height * n + 1e-9) + 1) / n for n in threads)
        return max(OVERLOAD * average, height) + 1e-9

    def can_take(self, crash: "_Crash", client: int) -> bool:
        """Whether the client stays below the limit of a crash with one task more."""
        threads = self.capacity[client]
        return threads > 0 and (crash.load[client] + 1) / threads <= crash.limit

    def move(self, task: int, old: int, new: int) -> None:
        """A standby goes from one client to another."""
        self.holders[task].remove(old)
        self.holders[task].add(new)
        self.held[old].remove(task)
        self.held[new].add(task)
        self.load[old] -= 1
        self.load[new] += 1
        self.crashes.pop(self.active[task], None)


class _Load(dict[int, int]):
    """Tasks of each client; what is not set is what it runs."""

    def __init__(self, runs: Sequence[int]) -> None:
        """Everyone has what it runs."""
        self.runs = runs

    def __missing__(self, client: int) -> int:
        """What the client runs."""
        return self.runs[client]


class _Crash(NamedTuple):
    """One client is gone: load of each client then, the tasks each takes over, and the limit.

    `raised` are the clients of `load`, `ranked` those of the board and perhaps without them; (tasks
    a thread, client), ascending.
    """

    client: int
    load: _Load
    taken: dict[int, list[int]]
    limit: float
    raised: list[tuple[float, int]]
    ranked: list[tuple[float, int]]


def _mend(board: _Board, crashed: int) -> None:
    """Move copies of the crashed client's tasks until no survivor that can be helped is over."""
    while True:
        crash = board.crash(crashed)
        heirs = [(c, board.capacity[c]) for c in sorted(crash.taken)]
        over = [c for c, n in heirs if crash.load[c] / n > crash.limit]
        if not sum(_relieve(board, crash, client) for client in over):
            return


def _relieve(board: _Board, crash: _Crash, client: int) -> int:
    """Copies leave the client until it is below the limit, or none can; returns how many left."""
    moved = 0
    ways: list[tuple[bool, int, int]] = []
    for task in crash.taken[client]:
        is_new = all(c in (crash.client, client) for c in board.others.get(task, ()))
        ways.append((is_new, board.ends[task], task))
    for _, _, task in sorted(ways):
        if crash.load[client] / board.capacity[client] <= crash.limit:
            break
        new = _place(board, crash, task, client)
        if new is not None:
            _count(board, crash, client, -1)
            _count(board, crash, new, 1)
            moved += 1
    return moved


def _count(board: _Board, crash: _Crash, client: int, change: int) -> None:
    """One task more or less on a client after the crash."""
    threads = board.capacity[client]
    if client in crash.load:
        del crash.raised[bisect_left(crash.raised, (crash.load[client] / threads, client))]
    crash.load[client] += change
    insort(crash.raised, (crash.load[client] / threads, client))


def _place(board: _Board, crash: _Crash, task: int, client: int) -> int | None:
    """Where a copy goes: to a client with room, or to one that gives another in exchange."""
    asked: list[int] = []
    gives = board.load[client] > board.low[client]
    for new in _able(board, crash, task, client):
        if gives and board.load[new] < board.high[new]:
            board.move(task, client, new)
            return new
        if len(asked) < _TRIES:
            asked.append(new)
        elif not gives:
            break
    for new in asked:
        back = _given_back(board, crash, client, new)
        if back is not None:
            board.move(task, client, new)
            board.move(back, new, client)
            return new
    return None


def _able(board: _Board, crash: _Crash, task: int, client: int) -> Iterator[int]:
    """Clients that may take a copy over: those with state of it first, then the least loaded."""
    held_by, load = board.holders[task], crash.load

    def is_able(other: int) -> bool:
        is_other = other not in (crash.client, client) and other not in held_by
        return is_other and board.can_take(crash, other)

    there = [c for c in dict.fromkeys(board.others.get(task, ())) if is_able(c)]
    yield from sorted(there, key=lambda c: (load[c] / board.capacity[c], c))
    same = (entry for entry in crash.ranked if entry[1] not in load)
    for each, other in heapq.merge(crash.raised, same):
        if each > crash.limit:
            return
        if (task, other) not in board.copies and is_able(other):
            yield other


def _given_back(board: _Board, crash: _Crash, client: int, new: int) -> int | None:
    """The cheapest copy on `new` that `client` can take without being over after its crash."""
    fitting = [
        (board.ends[task], task)
        for task in board.held[new]
        if client not in board.holders[task]
        and board.active[task] not in (crash.client, client)
        and board.can_take(board.crash(board.active[task]), client)
    ]
    return min(fitting)[1] if fitting else None
