"""Exchanges of two tasks or copies at a time, for groups with too many tasks x racks.

With a rack for each client the exact optimum examines each task in each rack. Here each task only
examines the racks of its replicas, and is exchanged with a task in one of them: one whose replicas
or state are in the rack of the first task, or the one whose leaving costs least. Both kinds are
indexed by rack, so no search is needed. Each exchange reduces the cost, so the exchanges end.
O((tasks + copies) log) per turn, and a few turns.

A *row* is a task or copy that takes part.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from assignor.placement.racks.kept_places import KeptPlaces
from assignor.placement.racks.traffic import Replicas, client_racks
from assignor.placement.state import GroupState, IntArray, RacksByTask

# Up to this many racks, or copies x racks, the exact solvers are fast enough.
_FEW_RACKS, _FEW_PLACES = 16, 20_000
# Most rows of each kind that are tried in a rack; most turns.
_ASKED, _TURNS = 16, 6

Places = Sequence[frozenset[int]]


def has_many_racks(racks: Sequence[str | None], copies: int) -> bool:
    """Whether there are too many racks and tasks or copies for the exact solvers."""
    count = len(set(racks))
    return count > _FEW_RACKS and copies * count > _FEW_PLACES


def unknown_racks(racks: RacksByTask | None, tasks: IntArray) -> int:
    """Number of the tasks (int [M]) that have a partition with unknown replica racks."""
    if racks is None:
        return len(tasks)
    return sum(not all(racks[task]) for task in tasks.tolist())


def replicas_by_rack(
    racks: RacksByTask, tasks: IntArray, number: dict[str | None, int]
) -> list[dict[int, int]]:
    """For each task, rack -> number of its partitions with a replica in the rack, if above 0.

    Args:
        racks: replica racks of the partitions of each task.
        tasks: int [M].
        number: rack of clients -> its number.
    """
    known: dict[Replicas, dict[int, int]] = {}
    found = []
    for task in tasks.tolist():
        replicas = racks[task]
        if replicas not in known:
            hits: dict[int, int] = {}
            for rack in sorted(rack for names in replicas if names for rack in names):
                if rack in number:
                    hits[number[rack]] = hits.get(number[rack], 0) + 1
            known[replicas] = hits
        found.append(known[replicas])
    return found


def places_of(kept: KeptPlaces) -> list[frozenset[int]]:
    """The set of places of each task."""
    starts, clients = kept.start.tolist(), kept.client.tolist()
    return [frozenset(clients[starts[row] : starts[row + 1]]) for row in range(len(starts) - 1)]


@dataclass(slots=True, kw_only=True)
class Exchange:
    """Tasks or copies that may be exchanged with each other, two at a time.

    Attributes:
        client: the client of each row; changed.
        hits: for each row, rack -> partitions that are read inside the rack.
        places: for each row, the clients on which it costs no move; a row without places never
            costs a move.
        group: the group of each row; only rows of the same group are exchanged.
        rack_of: the rack of each client.
        price: cost of a partition read from another rack.
        overlap: cost of a row that has places and is on none of them.
        may_go: whether a row may move to a client; None: always.
        moved: called with (row, old client, new client) after each move; or None.
        own: what each row saves on its present client.
        clients_of: rack -> number of its clients.
        asked: (group, rack) -> heap of (loss, row) of rows that are or were there; the loss is the
            cost of moving to a rack in which the row has neither replicas nor places.
        wanting: (group, rack, other rack) -> rows in the rack that have replicas or places in the
            other rack, as ordered keys.
        changes: (group, rack) -> number of exchanges there.
        tried: row without a partner -> sum of `changes` of the racks that it tried.
    """

    client: list[int]
    hits: Sequence[dict[int, int]]
    places: Places
    group: Sequence[int]
    rack_of: Sequence[int]
    price: int
    overlap: int
    may_go: Callable[[int, int], bool] | None = None
    moved: Callable[[int, int, int], None] | None = None
    own: list[int] = field(default_factory=list)
    clients_of: Counter[int] = field(default_factory=Counter)
    asked: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    wanting: dict[tuple[int, int, int], dict[int, None]] = field(default_factory=dict)
    changes: dict[tuple[int, int], int] = field(default_factory=dict)
    tried: dict[int, int] = field(default_factory=dict)

    def worth(self, row: int, client: int) -> int:
        """The cost that the row saves on that client."""
        near = self.price * self.hits[row].get(self.rack_of[client], 0)
        places = self.places[row]
        return near if not places or client in places else near - self.overlap

    def run(self) -> None:
        """Exchange rows until no exchange reduces the cost, for a limited number of turns."""
        self.clients_of.update(self.rack_of)
        for row, client in enumerate(self.client):
            self.own.append(self.worth(row, client))
            self.asked.setdefault(self._key(row), []).append(self._entry(row))
            self._list(row)
        for heap in self.asked.values():
            heapq.heapify(heap)
        for _ in range(_TURNS):
            if not sum(self._improve(row) for row in range(len(self.client))):
                break

    def _key(self, row: int) -> tuple[int, int]:
        return self.group[row], self.rack_of[self.client[row]]

    def _entry(self, row: int) -> tuple[int, int]:
        return self.own[row] + (self.overlap if self.places[row] else 0), row

    def _list(self, row: int) -> None:
        """Add the row to `wanting`."""
        group, here = self._key(row)
        for rack in self._wanted(row):
            if rack != here:
                self.wanting.setdefault((group, here, rack), {})[row] = None

    def _unlist(self, row: int) -> None:
        group, here = self._key(row)
        for rack in self._wanted(row):
            if rack != here:
                self.wanting[group, here, rack].pop(row, None)

    def _wanted(self, row: int) -> list[int]:
        """Racks with replicas or places of the row, each once."""
        hits = self.hits[row]
        more = {self.rack_of[client] for client in self.places[row]}.difference(hits)
        return [*hits, *sorted(more)] if more else list(hits)

    def _improve(self, row: int) -> bool:
        """Make the best exchange that moves the row to a better rack; whether there was one."""
        here, now = self.rack_of[self.client[row]], self.own[row]
        hits = self.hits[row]
        wanted = [r for r in self._wanted(row) if self.price * hits.get(r, 0) > now]
        keys = [(self.group[row], r) for r in sorted(wanted)]
        seen = sum(self.changes.get(key, 0) for key in keys)
        if not keys or self.tried.get(row) == seen:
            return False
        found = (self._partner(row, key) for key in keys if key[1] != here)
        best = min((exchange for exchange in found if exchange is not None), default=None)
        if best is None:
            self.tried[row] = seen
            return False
        self._swap(row, best[1])
        return True

    def _partner(self, row: int, key: tuple[int, int]) -> tuple[int, int] | None:
        """(change of cost, below 0; row) of the best exchange partner in a rack; None: no partner.

        Tried are rows that gain in the rack of `row`, and rows that lose least by leaving theirs.

        Args:
            row: the row that is to move.
            key: (group, rack) of the partner.
        """
        best = (0, -1)
        for other in islice(self.wanting.get((*key, self.rack_of[self.client[row]]), ()), _ASKED):
            best = min(best, self._lost(row, other, best[0]))
        heap = self.asked.get(key, [])
        # If several clients are in the rack, the row may save more on one of them.
        is_single = self.clients_of[key[1]] == 1 or all(
            self.rack_of[client] != key[1] for client in self.places[row]
        )
        passed: list[tuple[int, int]] = []
        while heap and len(passed) < _ASKED:
            entry = heap[0]
            other = entry[1]
            if self._key(other) != key or entry != self._entry(other) or entry in passed[-1:]:
                heapq.heappop(heap)  # the row has left, or the entry is a duplicate
                continue
            least = self.own[row] - self.worth(row, self.client[other]) + entry[0]
            if is_single and least >= best[0]:
                break  # all later entries lose at least as much
            best = min(best, self._lost(row, other, best[0]))
            passed.append(heapq.heappop(heap))
        for entry in passed:
            heapq.heappush(heap, entry)
        return best if best[1] >= 0 else None

    def _lost(self, row: int, other: int, most: int) -> tuple[int, int]:
        """(change of cost, other) if the two rows are exchanged; (0, -1): too dear or forbidden.

        Args:
            row: the first row.
            other: the second row.
            most: the change of cost that must not be exceeded.
        """
        client, other_client = self.client[row], self.client[other]
        lost = (
            self.own[row]
            + self.own[other]
            - self.worth(row, other_client)
            - self.worth(other, client)
        )
        if lost >= 0 or lost > most:
            return 0, -1
        if self.may_go is None or (self.may_go(row, other_client) and self.may_go(other, client)):
            return lost, other
        return 0, -1

    def _swap(self, row: int, other: int) -> None:
        client, other_client = self.client[row], self.client[other]
        for moved in (row, other):
            self._unlist(moved)
        self.client[row], self.client[other] = other_client, client
        for moved, old, new in ((row, client, other_client), (other, other_client, client)):
            if self.moved is not None:
                self.moved(moved, old, new)
            self.own[moved] = self.worth(moved, new)
            self._list(moved)
            key = self._key(moved)
            self.changes[key] = self.changes.get(key, 0) + 1
            self.tried.pop(moved, None)
            heapq.heappush(self.asked.setdefault(key, []), self._entry(moved))


def exchange_actives(
    state: GroupState,
    active: IntArray,
    tasks: IntArray,
    racks: RacksByTask,
    *,
    kept: KeptPlaces,
    costs: tuple[int, int],
) -> IntArray:
    """Int [M]: clients of the tasks, with lower costs; every client keeps its count.

    Args:
        state: the group.
        active: int [T], the client of every task.
        tasks: int [M], the tasks that may be exchanged.
        racks: replica racks of the source partitions of each task.
        kept: the places of these tasks.
        costs: cost of a partition from another rack, and of a task outside its places.
    """
    names, rack_of = client_racks(state)
    number = {name: place for place, name in enumerate(names)}
    has_blocks = state.config.rack_aware_assignment_strategy == "balance_subtopology"
    exchange = Exchange(
        client=active[tasks].tolist(),
        hits=replicas_by_rack(racks, tasks, number),
        places=places_of(kept),
        group=(state.subtopology[tasks] if has_blocks else np.zeros_like(tasks)).tolist(),
        rack_of=rack_of.tolist(),
        price=costs[0],
        overlap=costs[1],
    )
    exchange.run()
    return np.array(exchange.client, dtype=np.int64)


def exchange_standbys(
    state: GroupState,
    task: IntArray,
    client: IntArray,
    *,
    others: Sequence[Sequence[int]],
    values_of: Sequence[tuple[int, ...]],
    costs: tuple[int, int],
) -> IntArray:
    """Int [P]: clients of the standbys, with lower costs; every client keeps its count.

    The copies of a task stay on as many different values.

    Args:
        state: the group, with `changelog_racks`.
        task: int [P], the tasks of the standbys that may be exchanged.
        client: int [P], their present clients.
        others: for each standby, clients that hold its task and do not move.
        values_of: for each client, the tag values or rack in which copies of a task should differ.
        costs: cost of a partition from another rack, and of a copy on a client without state.
    """
    names, rack_of = client_racks(state)
    number = {name: place for place, name in enumerate(names)}
    holders: dict[int, list[int]] = {}
    for copied, at, held in zip(task.tolist(), client.tolist(), others, strict=True):
        holders.setdefault(copied, list(held)).append(at)
    tasks = task.tolist()
    starts, clients = state.copy_start.tolist(), state.copy_client.tolist()
    places = [frozenset(clients[starts[copied] : starts[copied + 1]]) for copied in tasks]

    def gain(added: int, rest: Sequence[int]) -> int:
        rows = [values_of[held] for held in rest]
        return sum(all(row[k] != v for row in rows) for k, v in enumerate(values_of[added]))

    def may_go(row: int, new: int) -> bool:
        held = holders[tasks[row]]
        old = exchange.client[row]
        rest = [client for client in held if client != old]
        return new not in held and gain(new, rest) >= gain(old, rest)

    def moved(row: int, old: int, new: int) -> None:
        held = holders[tasks[row]]
        held[held.index(old)] = new

    racks = state.changelog_racks
    exchange = Exchange(
        client=client.tolist(),
        hits=[] if racks is None else replicas_by_rack(racks, task, number),
        places=places,
        group=[0] * len(tasks),
        rack_of=rack_of.tolist(),
        price=costs[0],
        overlap=costs[1],
        may_go=may_go,
        moved=moved,
    )
    exchange.run()
    return np.array(exchange.client, dtype=np.int64)
