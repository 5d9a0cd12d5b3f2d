"""Exchanges between two places at a time, for groups whose tasks x racks are too many to look at.

With a rack for each client the exact optimum looks at each task in each rack. Here a task knows the
racks of its replicas only, and changes places with one that is there: with one whose replicas or
state are where the task is now, or with the one that loses least by leaving. Those of both kinds
are kept by rack, so that nobody is looked for. Each exchange saves something, so groups come to
rest. O((tasks + copies) log) a turn, and a few turns.
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

# Up to so many racks, or copies x racks, the exact solvers are fast enough.
_FEW_RACKS, _FEW_PLACES = 16, 20_000
# Those of each kind that are asked in a rack, and turns.
_ASKED, _TURNS = 16, 6

Places = Sequence[frozenset[int]]


def has_many_racks(racks: Sequence[str | None], copies: int) -> bool:
    """Whether so many tasks or copies over the racks of these clients are for exchanges of two."""
    count = len(set(racks))
    return count > _FEW_RACKS and copies * count > _FEW_PLACES


def unknown_racks(racks: RacksByTask | None, tasks: IntArray) -> int:
    """How many of the tasks have a partition whose replica racks are not known."""
    if racks is None:
        return len(tasks)
    return sum(not all(racks[task]) for task in tasks.tolist())


def replicas_by_rack(
    racks: RacksByTask, tasks: IntArray, number: dict[str | None, int]
) -> list[dict[int, int]]:
    """For each task, rack -> partitions that have a replica there; racks without are left out.

    Args:
        racks: of the partitions of each task.
        tasks: int [M].
        number: the racks of clients, as numbers.
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
    """The places of each task."""
    starts, clients = kept.start.tolist(), kept.client.tolist()
    return [frozenset(clients[starts[row] : starts[row + 1]]) for row in range(len(starts) - 1)]


@dataclass(slots=True, kw_only=True)
class Exchange:
    """Tasks or copies that may change places with each other, two at a time.

    Attributes:
        client: where each is; changed.
        hits: for each, rack -> partitions that need not be read from another rack.
        places: where each may stay at no cost; those without any pay nothing.
        group: only those of a group change places.
        rack_of: the rack of each client.
        price: of a partition from another rack.
        overlap: of one that has places and is on none of them.
        may_go: whether one may be on a client, besides what `client` says.
        moved: called with what moves, from where and to where.
        own: what each saves where it is.
        clients_of: rack -> number of its clients.
        asked: (group, rack) -> (loss, row) of those that are there or were, a heap; the loss is
            what leaving costs for a rack where one has neither replicas nor places.
        wanting: (group, rack, another rack) -> those in the rack with replicas or places in the
            other one.
        changes: (group, rack) -> exchanges there.
        tried: what found nobody -> exchanges until then in the racks that it asked in.
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
        """What is saved by one on that client."""
        near = self.price * self.hits[row].get(self.rack_of[client], 0)
        places = self.places[row]
        return near if not places or client in places else near - self.overlap

    def run(self) -> None:
        """Change places until nobody gains, or for some turns."""
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
        """Say in the rack of one where else it would like to be."""
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
        """Racks with replicas or places of one, each once."""
        hits = self.hits[row]
        more = {self.rack_of[client] for client in self.places[row]}.difference(hits)
        return [*hits, *sorted(more)] if more else list(hits)

    def _improve(self, row: int) -> bool:
        """The best exchange that takes one to a rack of its replicas, or to a place of its own."""
        here, now = self.rack_of[self.client[row]], self.own[row]
        hits = self.hits[row]
        wanted = [r for r in self._wanted(row) if self.price * hits.get(r, 0) > now]
        keys = [(self.group[row], r) for r in sorted(wanted)]
        seen = sum(self.changes.get(key, 0) for key in keys)
        if not keys or self.tried.get(row) == seen:
            return False
        found = (self._partner(row, key) for key in keys if key[1] != here)
        best = min((one for one in found if one is not None), default=None)
        if best is None:
            self.tried[row] = seen
            return False
        self._swap(row, best[1])
        return True

    def _partner(self, row: int, key: tuple[int, int]) -> tuple[int, int] | None:
        """(what is lost, below 0, and who) for the best in a rack that may change places, or None.

        The best of those that are to go where this one is, or of those that lose least by leaving.
        """
        best = (0, -1)
        for other in islice(self.wanting.get((*key, self.rack_of[self.client[row]]), ()), _ASKED):
            best = min(best, self._lost(row, other, best[0]))
        heap = self.asked.get(key, [])
        # On one of several clients there this one may save more than on the others.
        is_one = self.clients_of[key[1]] == 1 or all(
            self.rack_of[client] != key[1] for client in self.places[row]
        )
        passed: list[tuple[int, int]] = []
        while heap and len(passed) < _ASKED:
            entry = heap[0]
            other = entry[1]
            if self._key(other) != key or entry != self._entry(other) or entry in passed[-1:]:
                heapq.heappop(heap)  # it has left, or is in here once more
                continue
            least = self.own[row] - self.worth(row, self.client[other]) + entry[0]
            if is_one and least >= best[0]:
                break  # all that come after it lose as much
            best = min(best, self._lost(row, other, best[0]))
            passed.append(heapq.heappop(heap))
        for entry in passed:
            heapq.heappush(heap, entry)
        return best if best[1] >= 0 else None

    def _lost(self, row: int, other: int, most: int) -> tuple[int, int]:
        """(what is lost when two change places, who); (0, -1): above `most`, or not allowed."""
        mine, theirs = self.client[row], self.client[other]
        lost = self.own[row] + self.own[other] - self.worth(row, theirs) - self.worth(other, mine)
        if lost >= 0 or lost > most:
            return 0, -1
        if self.may_go is None or (self.may_go(row, theirs) and self.may_go(other, mine)):
            return lost, other
        return 0, -1

    def _swap(self, row: int, other: int) -> None:
        mine, theirs = self.client[row], self.client[other]
        for one in (row, other):
            self._unlist(one)
        self.client[row], self.client[other] = theirs, mine
        for one, old, new in ((row, mine, theirs), (other, theirs, mine)):
            if self.moved is not None:
                self.moved(one, old, new)
            self.own[one] = self.worth(one, new)
            self._list(one)
            key = self._key(one)
            self.changes[key] = self.changes.get(key, 0) + 1
            self.tried.pop(one, None)
            heapq.heappush(self.asked.setdefault(key, []), self._entry(one))


def exchange_actives(
    state: GroupState,
    active: IntArray,
    tasks: IntArray,
    racks: RacksByTask,
    *,
    kept: KeptPlaces,
    costs: tuple[int, int],
) -> IntArray:
    """Int [M]: clients of the tasks, for less traffic and moves; every client keeps its count.

    Args:
        state: the group.
        active: int [T], the client of every task.
        tasks: int [M], those that may change places.
        racks: of the source partitions of each task.
        kept: the places of these tasks.
        costs: of a partition from another rack, and of a task outside of its places.
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
    """Int [P]: clients of the standbys; every client keeps its count, and copies stay apart.

    Args:
        state: the group, with `changelog_racks`.
        task: int [P], of the standbys that may change places.
        client: int [P], where they are.
        others: for each, clients that hold its task and do not move.
        values_of: for each client, what copies of a task differ in.
        costs: of a partition from another rack, and of a copy where no state is.
    """
    names, rack_of = client_racks(state)
    number = {name: place for place, name in enumerate(names)}
    holders: dict[int, list[int]] = {}
    for one, at, held in zip(task.tolist(), client.tolist(), others, strict=True):
        holders.setdefault(one, list(held)).append(at)
    tasks = task.tolist()
    starts, clients = state.copy_start.tolist(), state.copy_client.tolist()
    places = [frozenset(clients[starts[one] : starts[one + 1]]) for one in tasks]

    def gain(there: int, rest: Sequence[int]) -> int:
        rows = [values_of[one] for one in rest]
        return sum(all(row[k] != v for row in rows) for k, v in enumerate(values_of[there]))

    def may_go(row: int, new: int) -> bool:
        held = holders[tasks[row]]
        old = exchange.client[row]
        rest = [one for one in held if one != old]
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
