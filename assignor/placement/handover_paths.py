"""Paths of moves to clients that are caught up on the moved tasks, so that nothing is restored.

A task without a home goes to a caught-up client below the upper limit of its band. If all of those
are at the limit, other tasks without a home move on first, over as many clients as needed: that
costs nothing, and as many tasks as possible are placed. Then one task on the path may leave its
home. That costs a hand-off and saves a restore; it is done only for tasks without a home.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from assignor.placement.draft_actives import DraftActives
from assignor.placement.state import NOBODY, GroupState, IntArray


def moved_along_hot_paths(state: GroupState, home: IntArray, count: IntArray) -> IntArray:
    """Move tasks to caught-up clients: tasks without a home, then surplus, then to fill low bands.

    Args:
        state: the group.
        home: int [T], from `assignor.placement.actives.homes`.
        count: int [C], tasks at home on each client.

    Returns:
        int [T], the client of each task, NOBODY where no caught-up client could take it.
    """
    actives = DraftActives.of(state, home, count)
    clients = range(len(actives.count))
    actives.spare = actives.total - sum(
        max(actives.low[c], min(actives.count[c], actives.high[c])) for c in clients
    )
    homeless = [t for t in sorted(actives.others) if actives.place[t] == NOBODY]
    homeless.sort(key=lambda t: (len(actives.others[t]), t))
    guests: set[int] = set()
    for owned in (0, 1):
        search = _Search.of(actives, guests, owned)
        left = [task for task in homeless if not search.take_in(task)]
        # Tasks that any client can start are placed last.
        homeless = [task for task in left if not actives.anywhere[task]]
    for client in _most_loaded(actives):
        _give(actives, client, down_to=actives.high[client])
    for client in _most_loaded(actives):
        # A client inside its band gives tasks only while others are below theirs.
        if actives.spare < 0 and actives.count[client] <= actives.high[client]:
            _give(actives, client, down_to=actives.low[client], is_voluntary=True)
    return np.array(actives.place, dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class _Search:
    """Shortest paths to clients with free capacity, for tasks without a home, one after another.

    A place on a path is (client, number of tasks that may still leave their home). Places from
    which no free capacity was found are closed: no later path leads through them, so each is
    searched once.

    Attributes:
        actives: the draft.
        guests: placed tasks without a home, which may move on at no cost.
        owned: number of tasks that may leave their home on one path.
        closed: places from which no path leads to free capacity.
        came: place -> (the task that moves there, or NOBODY; the place before it).
        givers: number of tasks that may still leave their home -> clients above the low end of
            their bands that are not closed, ascending; without changes from `touched`.
        touched: clients whose count or closed places changed since `givers` was updated.
        unseen: number of tasks as in `givers` -> its clients that this search has not visited.
    """

    actives: DraftActives
    guests: set[int]
    owned: int
    closed: set[tuple[int, int]] = field(default_factory=set)
    came: dict[tuple[int, int], tuple[int, tuple[int, int] | None]] = field(default_factory=dict)
    givers: dict[int, list[int]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    unseen: dict[int, Iterator[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, actives: DraftActives, guests: set[int], owned: int) -> "_Search":
        """A search without closed places."""
        givers = [c for c, count in enumerate(actives.count) if count > actives.low[c]]
        by_left = {left: list(givers) for left in range(owned + 1)}
        return cls(actives=actives, guests=guests, owned=owned, givers=by_left)

    def take_in(self, task: int) -> bool:
        """Place the task on a caught-up client, after other tasks moved on if needed; whether."""
        actives, way = self.actives, self._path(task)
        for moved, client in reversed(way):
            old = actives.place[moved]
            if old != NOBODY:
                actives.take(old)
            actives.put(client)
            actives.move(moved, client)
            self.touched |= {client, old}
        if way:
            self.guests.add(task)
        return bool(way)

    def _path(self, task: int) -> list[tuple[int, int]]:
        """(task, new client) of all moves, the last to a client with free capacity; [] if none."""
        actives = self.actives
        taker = _least_loaded_open(actives, task)
        if taker != NOBODY:
            return [(task, taker)]
        self.came = {}
        waiting: deque[tuple[int, int]] = deque()
        for client in sorted(actives.others[task], key=lambda c: _load(actives, c)):
            self._reach((client, self.owned), (task, None), waiting)
        while waiting:
            here = self._next_place(waiting)
            if here[0] == NOBODY:
                continue
            if actives.count[here[0]] < actives.high[here[0]]:
                self._reach_givers(here, waiting)
            for held_task in actives.in_giving_order(here[0]):
                left = here[1] - (held_task not in self.guests)
                if left < 0:
                    continue
                taker = _least_loaded_open(actives, held_task, is_guest=held_task in self.guests)
                if taker != NOBODY:
                    return [*self._steps(here), (held_task, taker)]
                for client in actives.others[held_task]:
                    self._reach((client, left), (held_task, here), waiting)
        self._close()
        return []

    def _close(self) -> None:
        """Close all places that this search has reached: no later path leads through them."""
        self.closed.update(self.came)
        self.touched.update(client for client, _ in self.came)

    def _note_givers(self) -> None:
        """Update the givers among the touched clients, once a search asks for givers."""
        for client in sorted(self.touched - {NOBODY}):
            self._note_giver(client)
        self.touched.clear()

    def _note_giver(self, client: int) -> None:
        """Add the client to the givers, or remove it, by its present count."""
        may_give = self.actives.count[client] > self.actives.low[client]
        for left, clients in self.givers.items():
            at = bisect_left(clients, client)
            is_listed = at < len(clients) and clients[at] == client
            if is_listed and not (may_give and (client, left) not in self.closed):
                del clients[at]
            elif not is_listed and may_give and (client, left) not in self.closed:
                clients.insert(at, client)

    def _reach(
        self,
        place: tuple[int, int],
        came: tuple[int, tuple[int, int] | None],
        waiting: deque[tuple[int, int]],
    ) -> None:
        client, left = place
        if place in self.came or place in self.closed:
            return
        # The client is among the givers that are queued already.
        may_give = self.actives.count[client] > self.actives.low[client]
        if may_give and (NOBODY, left) in self.came:
            return
        if left != self.owned:
            # A second visit to a client, with fewer tasks that may leave, finds nothing new.
            most = (client, self.owned)
            is_giver = may_give and (NOBODY, self.owned) in self.came and most not in self.closed
            if is_giver or most in self.came:
                return
        self.came[place] = came
        waiting.append(place)

    def _reach_givers(self, here: tuple[int, int], waiting: deque[tuple[int, int]]) -> None:
        """Queue the givers: clients inside their bands, each of which may give a task instead.

        They are queued as one place without a client: most paths end before the last of them.
        """
        place = (NOBODY, here[1])
        if place not in self.came:
            self._note_givers()
            self.came[place] = (NOBODY, here)
            self.unseen[here[1]] = iter(self.givers[here[1]])
            waiting.append(place)

    def _next_place(self, waiting: deque[tuple[int, int]]) -> tuple[int, int]:
        """The next place to search from, givers one at a time; client NOBODY: all are done."""
        place = waiting.popleft()
        left = place[1]
        if place[0] != NOBODY:
            return place
        for client in self.unseen[left]:
            giver = (client, left)
            if giver not in self.came and (client, self.owned) not in self.came:
                self.came[giver] = (NOBODY, self.came[place][1])
                waiting.appendleft(place)
                return giver
        return place

    def _steps(self, place: tuple[int, int] | None) -> list[tuple[int, int]]:
        """(task, new client) of the moves that lead to a place, in order."""
        steps = []
        while place is not None:
            task, before = self.came[place]
            if task != NOBODY:
                steps.append((task, place[0]))
            place = before
        return steps[::-1]


def _give(actives: DraftActives, client: int, *, down_to: int, is_voluntary: bool = False) -> int:
    """Move tasks directly to caught-up clients with free capacity; returns how many.

    Args:
        actives: the draft.
        client: the client that gives tasks.
        down_to: tasks that it keeps at least.
        is_voluntary: whether to stop as soon as no client is below its band.
    """
    given = 0
    if actives.count[client] <= down_to or not any(map(actives.is_open, actives.near[client])):
        return given
    for task in list(actives.in_giving_order(client)):
        if actives.count[client] <= down_to or (is_voluntary and actives.spare >= 0):
            break
        taker = _least_loaded_open(actives, task)
        if taker == NOBODY:
            continue
        actives.put(taker)
        actives.take(client)
        actives.move(task, taker)
        given += 1
    return given


def _least_loaded_open(actives: DraftActives, task: int, *, is_guest: bool = False) -> int:
    """The least loaded caught-up client that may take the task, or NOBODY.

    For guests that any client can start, all clients count as caught up.
    """
    # Called for every task of every client on a path: avoids a call for each client.
    count, low, high, has_spare = actives.count, actives.low, actives.high, actives.spare > 0
    able = [
        c for c in actives.others[task] if count[c] < low[c] or (has_spare and count[c] < high[c])
    ]
    if not able and is_guest and actives.anywhere[task]:
        able = [c for c, free in enumerate(actives.capacity) if free and actives.is_open(c)]
    if len(able) > 1:
        return min(able, key=lambda c: _load(actives, c))
    return able[0] if able else NOBODY


def _most_loaded(actives: DraftActives) -> list[int]:
    usable = [c for c, threads in enumerate(actives.capacity) if threads]
    return sorted(usable, key=lambda c: (-actives.count[c] / actives.capacity[c], c))


def _load(actives: DraftActives, client: int) -> tuple[float, int]:
    return (actives.count[client] / actives.capacity[client], client)
