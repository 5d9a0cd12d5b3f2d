"""The draft of a placement: standbys while they are being placed."""

from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from assignor.placement.standbys.cell_sets import Cells
from assignor.placement.standbys.copies_apart import ONE_CELL, Spread
from assignor.placement.standbys.free_capacity import MostFree
from assignor.placement.state import BoolArray, GroupState, IntArray


@dataclass(slots=True, kw_only=True)
class DraftStandbys:
    """Which clients hold which standbys so far, and how many more they may take.

    Attributes:
        active: the client of each active task.
        holders: task -> clients of its standbys; every stateful task has an entry.
        others: task -> clients with a reported copy that is not used.
        free: copies that each client may still take; below 0: it holds too many.
        capacity: threads of each client.
        pairs: (active client, standby client) -> number of tasks that they share.
        fresh: client -> tasks of which it got a new copy in this call, as ordered keys.
        wanted: standbys of each task.
        spread: tags and racks that keep the copies of a task apart.
    """

    active: list[int]
    holders: dict[int, set[int]]
    others: dict[int, list[int]]
    free: list[int]
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
    ) -> "DraftStandbys":
        """A draft that starts with the kept copies.

        Args:
            state: the group.
            target: int [T], the client of every active task.
            wanted: standbys of each task.
            kept: (task, client) of the copies that stay; int [K] both.
            candidates: (task, client) of all reported copies that could stay; int [N] both.
            spread: tags and racks that keep the copies of a task apart.
        """
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
            free=[0] * width,
            capacity=state.capacity().tolist(),
            pairs=dict(zip(keys, counts.tolist(), strict=True)),
            wanted=wanted,
            spread=spread,
        )

    def add(self, task: int, client: int) -> None:
        """Add a copy to a client."""
        self.holders[task].add(client)
        self.free[client] -= 1
        pair = (self.active[task], client)
        self.pairs[pair] = self.pairs.get(pair, 0) + 1

    def add_new(self, task: int, client: int) -> None:
        """Add a copy to a client that has no state of it."""
        # Repeats `add`: one call less for each of many copies.
        self.holders[task].add(client)
        self.free[client] -= 1
        pair = (self.active[task], client)
        self.pairs[pair] = self.pairs.get(pair, 0) + 1
        fresh = self.fresh.get(client)
        if fresh is None:
            self.fresh[client] = {task: None}
        else:
            fresh[task] = None

    def drop(self, task: int, client: int) -> None:
        """Remove a copy from a client; a new one is no longer among its new copies."""
        self.holders[task].remove(client)
        self.free[client] += 1
        self.pairs[self.active[task], client] -= 1
        fresh = self.fresh.get(client)
        if fresh:
            fresh.pop(task, None)

    def can_hold(self, task: int, client: int) -> bool:
        """Whether the client has no copy of the task, active or standby."""
        return client != self.active[task] and client not in self.holders[task]

    def copies(self) -> tuple[IntArray, IntArray]:
        """Task and client of all standbys, by ascending task; int [P] each."""
        sizes = np.fromiter(map(len, self.holders.values()), np.int64, len(self.holders))
        clients = chain.from_iterable(self.holders.values())
        tasks = np.fromiter(self.holders, np.int64, len(sizes))
        return np.repeat(tasks, sizes), np.fromiter(clients, np.int64, int(sizes.sum()))

    def places(self, task: int) -> list[int]:
        """The clients of a task, the active one first."""
        return [self.active[task], *self.holders[task]]

    def most_free(self) -> MostFree:
        """The clients by free capacity per thread."""
        return MostFree(self.free, self.capacity, self.spread.cells, {})

    def best_cells(self, task: int) -> Cells:
        """The cells in which one more copy spreads the task most."""
        left = self.wanted - len(self.holders[task])
        return self.spread.best_for(self.places(task), left)

    def fits(self, task: int, has_space: BoolArray) -> BoolArray:
        """Bool [C]: the clients for one more copy of the task, as `Spread.fits` gives them."""
        held_by = self.holders[task]
        left = self.wanted - len(held_by)
        return self.spread.fits([self.active[task], *held_by], has_space, left)

    def may_replace(self, task: int, old: int, new: int) -> bool:
        """Whether the copies stay as far apart when the one on `old` moves to `new`."""
        return self.spread.cells[new] in self.successors(task, old)

    def successors(self, task: int, old: int) -> Cells:
        """The cells in which the copy on `old` would be as far from the others."""
        if not self.spread.is_needed:
            return ONE_CELL
        held_by = self.holders[task]
        left = self.wanted - len(held_by)
        return self.spread.successors([self.active[task], *held_by], old, left)
