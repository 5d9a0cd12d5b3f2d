"""Standbys placed so that after a crash no survivor has more than 1.2 times the average load.

Copies stay where their state is. So a client may hold nearly all standbys of another one, as in
assignments made by Kafka, and would take over all of its tasks. Where one crash would bring a
survivor above the limit, some of the copies that it would take over move to other clients. A copy
matters only for the crash of its own active client: each move improves one crash and affects no
other, so the loop ends.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from assignor.placement.bands import thread_bands
from assignor.placement.standbys.final_copies import Standbys, has_few_tasks
from assignor.placement.state import GroupState, IntArray

OVERLOAD = 1.2
# With more copies nothing is done: the check of every crash would take longer than the rest.
_MOST_COPIES = 6_000
# Most clients that are tried for an exchange of two copies.
_TRIES = 8


def even_out(state: GroupState, active: IntArray, standbys: Standbys) -> Standbys:
    """The standbys, some of them moved; every client stays within its band.

    Args:
        state: the group; it must have no tags and no racks, which restrict where copies may be.
        active: int [T], the client of every active task.
        standbys: the standbys of these tasks.
    """
    few = has_few_tasks(state)
    if few or not 0 < len(standbys.task) <= _MOST_COPIES or not _is_uneven(state, active, standbys):
        return standbys
    failover = _Failover.of(state, active, standbys)
    for crashed, threads in enumerate(failover.capacity):
        if 0 < threads < sum(failover.capacity):
            _mend(failover, crashed)
    pairs = [
        (task, c) for task, held_by in sorted(failover.holders.items()) for c in sorted(held_by)
    ]
    task, client = np.array(pairs, dtype=np.int64).T
    return Standbys(task=task, client=client, warnings=standbys.warnings)


def _is_uneven(state: GroupState, active: IntArray, standbys: Standbys) -> bool:
    """Whether a crash may overload a client that takes over all tasks of which it has a copy."""
    capacity, clients = state.capacity(), len(state.clients)
    pairs, shared = np.unique(active[standbys.task] * clients + standbys.client, return_counts=True)
    crashed, heir = pairs // clients, pairs % clients
    runs = np.bincount(active[state.stateful], minlength=clients)
    left = int(capacity.sum()) - capacity[crashed]
    average = np.maximum(1.0, int(state.stateful.sum()) / np.maximum(left, 1))
    load = (runs[heir] + shared) / np.maximum(capacity[heir], 1)
    return bool(((load > OVERLOAD * average + 1e-9) & (left > 0)).any())


@dataclass(slots=True, kw_only=True)
class _Failover:
    """The placement, and the load of each client after each crash.

    Attributes:
        active: the client of each active task.
        tasks_of: client -> its stateful tasks.
        holders: task -> clients of its standbys.
        held: client -> tasks of which it has a standby.
        copies: (task, client) of every reported copy; a move to one restores nothing.
        capacity: threads of each client.
        runs: number of stateful active tasks of each client.
        load, low, high: all active tasks and copies of each client, and its band.
        ends: end offset sum of each task.
        crashes: crashed client -> computed loads; removed when a copy of its tasks moves.
        limits: threads of the crashed client -> most tasks per thread after its crash.
        ranked: (stateful active tasks per thread, client) of all usable clients, ascending.
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
    def of(cls, state: GroupState, active: IntArray, standbys: Standbys) -> "_Failover":
        """A failover with everything in place."""
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
            load=[own + len(copies) for own, copies in zip(actives.tolist(), held, strict=True)],
            low=bands.low.tolist(),
            high=bands.high.tolist(),
            ends=state.end_offset_sums.tolist(),
            crashes={},
            limits={},
            ranked=sorted((runs[c] / n, c) for c, n in enumerate(threads) if n),
            others=others,
        )

    def crash(self, client: int) -> "_Crash":
        """The loads after a crash of the client."""
        if client not in self.crashes:
            # Clients that take nothing over keep the load of the tasks that they run.
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
            # The limit depends only on the threads of the crashed client.
            threads = self.capacity[client]
            if threads not in self.limits:
                self.limits[threads] = self._limit(client)
            raised = sorted((n / self.capacity[c], c) for c, n in load.items())
            is_wide = 4 * len(load) > len(self.ranked)
            ranked = (
                [entry for entry in self.ranked if entry[1] not in load] if is_wide else self.ranked
            )
            limit = self.limits[threads]
            self.crashes[client] = _Crash(client, load, taken, limit, raised, ranked)
        return self.crashes[client]

    def _limit(self, crashed: int) -> float:
        """The most tasks per thread after a crash: 1.2 times the average, or the least possible."""
        threads = [n for c, n in enumerate(self.capacity) if c != crashed and n]
        total = len(self.holders)
        average = max(1.0, total / sum(threads))
        height = average
        while sum(int(height * n + 1e-9) for n in threads) < total:
            height = min((int(height * n + 1e-9) + 1) / n for n in threads)
        return max(OVERLOAD * average, height) + 1e-9

    def can_take(self, crash: "_Crash", client: int) -> bool:
        """Whether one more task keeps the client within the limit of a crash."""
        threads = self.capacity[client]
        return threads > 0 and (crash.load[client] + 1) / threads <= crash.limit

    def move(self, task: int, old: int, new: int) -> None:
        """Move a standby from one client to another."""
        self.holders[task].remove(old)
        self.holders[task].add(new)
        self.held[old].remove(task)
        self.held[new].add(task)
        self.load[old] -= 1
        self.load[new] += 1
        self.crashes.pop(self.active[task], None)


class _Load(dict[int, int]):
    """Tasks of each client after a crash; by default the tasks that it runs now."""

    def __init__(self, runs: Sequence[int]) -> None:
        """Start with the tasks that each client runs."""
        self.runs = runs

    def __missing__(self, client: int) -> int:
        """The number of tasks that the client runs."""
        return self.runs[client]


class _Crash(NamedTuple):
    """Loads after the crash of one client.

    Attributes:
        client: the client that crashes.
        load: tasks of each client afterwards.
        taken: client -> tasks that it takes over.
        limit: most tasks per thread.
        raised: (tasks per thread, client) of the clients in `load`, ascending.
        ranked: `_Failover.ranked`; without the clients in `load` if those are many.
    """

    client: int
    load: _Load
    taken: dict[int, list[int]]
    limit: float
    raised: list[tuple[float, int]]
    ranked: list[tuple[float, int]]


def _mend(failover: _Failover, crashed: int) -> None:
    """Move copies of the crashed client's tasks while a move brings a survivor below the limit."""
    while True:
        crash = failover.crash(crashed)
        heirs = [(c, failover.capacity[c]) for c in sorted(crash.taken)]
        over = [c for c, n in heirs if crash.load[c] / n > crash.limit]
        if not sum(_relieve(failover, crash, client) for client in over):
            return


def _relieve(failover: _Failover, crash: _Crash, client: int) -> int:
    """Move copies off the client until it is within the limit; returns how many moved."""
    moved = 0
    ways: list[tuple[bool, int, int]] = []
    for task in crash.taken[client]:
        is_new = all(c in (crash.client, client) for c in failover.others.get(task, ()))
        ways.append((is_new, failover.ends[task], task))
    for _, _, task in sorted(ways):
        if crash.load[client] / failover.capacity[client] <= crash.limit:
            break
        new = _place(failover, crash, task, client)
        if new is not None:
            _count(failover, crash, client, -1)
            _count(failover, crash, new, 1)
            moved += 1
    return moved


def _count(failover: _Failover, crash: _Crash, client: int, change: int) -> None:
    """Add `change` to the load of a client after the crash."""
    threads = failover.capacity[client]
    if client in crash.load:
        del crash.raised[bisect_left(crash.raised, (crash.load[client] / threads, client))]
    crash.load[client] += change
    insort(crash.raised, (crash.load[client] / threads, client))


def _place(failover: _Failover, crash: _Crash, task: int, client: int) -> int | None:
    """Move a copy to a client with free capacity, or exchange it; its new client, or None."""
    asked: list[int] = []
    gives = failover.load[client] > failover.low[client]
    for new in _able(failover, crash, task, client):
        if gives and failover.load[new] < failover.high[new]:
            failover.move(task, client, new)
            return new
        if len(asked) < _TRIES:
            asked.append(new)
        elif not gives:
            break
    for new in asked:
        back = _given_back(failover, crash, client, new)
        if back is not None:
            failover.move(task, client, new)
            failover.move(back, new, client)
            return new
    return None


def _able(failover: _Failover, crash: _Crash, task: int, client: int) -> Iterator[int]:
    """Clients that may take the copy: first those with state of the task, then least loaded."""
    held_by, load = failover.holders[task], crash.load

    def is_able(other: int) -> bool:
        is_other = other not in (crash.client, client) and other not in held_by
        return is_other and failover.can_take(crash, other)

    with_state = [c for c in dict.fromkeys(failover.others.get(task, ())) if is_able(c)]
    yield from sorted(with_state, key=lambda c: (load[c] / failover.capacity[c], c))
    same = (entry for entry in crash.ranked if entry[1] not in load)
    for each, other in heapq.merge(crash.raised, same):
        if each > crash.limit:
            return
        if (task, other) not in failover.copies and is_able(other):
            yield other


def _given_back(failover: _Failover, crash: _Crash, client: int, new: int) -> int | None:
    """The cheapest copy on `new` that `client` may take; None if each would exceed its limit."""
    fitting = [
        (failover.ends[task], task)
        for task in failover.held[new]
        if client not in failover.holders[task]
        and failover.active[task] not in (crash.client, client)
        and failover.can_take(failover.crash(failover.active[task]), client)
    ]
    return min(fitting)[1] if fitting else None
