"""Tasks handed along clients that are caught up on them, so that nothing is restored.

A task without a home goes to a caught-up client with room in its band. Where all of those are full,
the other tasks without a home make room for it first, over as many clients as it takes: that costs
nothing, and as many find a place as at all can. Then one task may leave its home on the way. That
costs a hand-off and saves a restore, which is worth it for a task without a home, since it would
burden a full client meanwhile, and for no other.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.bands import thread_bands
from assignor.placement.giving_order import GivingOrder
from assignor.placement.state import NOBODY, GroupState, IntArray


@dataclass(slots=True, kw_only=True)
class Board:
    """Scratchpad of one call: who holds what, and which other clients are caught up on it.

    `anywhere` are tasks that any client counts as caught up on; `others` has those with state.
    `near` are, for each client, the clients that are caught up on a task of it, or were.
    `orders` are those of the clients that were asked to give.
    """

    place: list[int]
    count: list[int]
    low: list[int]
    high: list[int]
    capacity: list[int]
    total: int
    others: dict[int, list[int]]
    movable: list[dict[int, None]]
    near: list[set[int]]
    subtopology: list[int]
    anywhere: list[bool]
    spare: int = 0
    orders: dict[int, GivingOrder] = field(default_factory=dict)

    def is_open(self, client: int) -> bool:
        """Whether one more task fits without taking another client's due."""
        if self.count[client] < self.low[client]:
            return True
        return self.spare > 0 and self.count[client] < self.high[client]

    def put(self, client: int) -> None:
        """Count one more task on a client."""
        self.spare -= self.low[client] <= self.count[client] < self.high[client]
        self.count[client] += 1

    def take(self, client: int) -> None:
        """Count one task less on a client."""
        self.count[client] -= 1
        self.spare += self.low[client] <= self.count[client] < self.high[client]

    def move(self, task: int, client: int) -> None:
        """Hand a task to a client that is caught up on it."""
        old = self.place[task]
        self.place[task] = client
        kept = [other for other in self.others[task] if other != client]
        if old != NOBODY:
            self.movable[old].pop(task, None)
            if old in self.orders:
                self.orders[old].discard(task)
            kept.append(old)
            kept.sort()
        self.others[task] = kept
        self.movable[client][task] = None
        if client in self.orders:
            self.orders[client].add(task)
        self.near[client].update(kept)

    def in_giving_order(self, client: int) -> GivingOrder:
        """The client's tasks that another is caught up on."""
        order = self.orders.get(client)
        if order is None:
            order = GivingOrder(self.movable[client], self.subtopology)
            self.orders[client] = order
        return order


def _board(state: GroupState, home: IntArray, count: IntArray) -> Board:
    task = state.copy_task()
    capacity = state.capacity()
    is_other = state.is_caught_up() & state.stateful[task] & (capacity[state.copy_client] > 0)
    is_other &= state.copy_client != home[task]
    tasks, clients, own = task[is_other], state.copy_client[is_other], home[task[is_other]]
    others = rows_by_value(tasks, clients)
    movable: list[dict[int, None]] = [{} for _ in state.clients]
    near: list[set[int]] = [set() for _ in state.clients]
    for client, found in rows_by_value(own, tasks).items():
        if client != NOBODY:
            movable[client] = dict.fromkeys(found)
    for client, able in rows_by_value(own, clients).items():
        if client != NOBODY:
            near[client] = set(able)
    total = int(state.stateful.sum())
    bands = thread_bands(capacity, total)
    return Board(
        place=home.tolist(),
        count=count.tolist(),
        low=bands.low.tolist(),
        high=bands.high.tolist(),
        capacity=capacity.tolist(),
        total=total,
        others=others,
        movable=movable,
        near=near,
        subtopology=state.subtopology.tolist(),
        anywhere=state.starts_anywhere().tolist(),
    )


def moved_along_hot_paths(state: GroupState, home: IntArray, count: IntArray) -> IntArray:
    """Hand tasks along caught-up copies: homeless ones, then surplus, then for those below.

    Args:
        state: the group.
        home: int [T], as `assignor.placement.actives.homes`.
        count: int [C], tasks at home on each client.

    Returns:
        int [T], the client of each task, NOBODY where no caught-up client could take it.
    """
    board = _board(state, home, count)
    clients = range(len(board.count))
    board.spare = board.total - sum(
        max(board.low[c], min(board.count[c], board.high[c])) for c in clients
    )
    homeless = [t for t in sorted(board.others) if board.place[t] == NOBODY]
    homeless.sort(key=lambda t: (len(board.others[t]), t))
    guests: set[int] = set()
    for owned in (0, 1):
        search = _Search.of(board, guests, owned)
        left = [task for task in homeless if not search.take_in(task)]
        # What can be started anywhere fills the gaps in the end.
        homeless = [task for task in left if not board.anywhere[task]]
    for client in _most_loaded(board):
        _give(board, client, down_to=board.high[client])
    for client in _most_loaded(board):
        # Inside its band nobody has to give, unless others stay below theirs.
        if board.spare < 0 and board.count[client] <= board.high[client]:
            _give(board, client, down_to=board.low[client], is_voluntary=True)
    return np.array(board.place, dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class _Search:
    """Shortest ways to room for homeless tasks, one after another.

    A place on the way is (client, tasks that may still leave their home). Places from where no room
    was found are closed: no later way can lead through them, so each is looked at once.

    Attributes:
        board: the scratchpad.
        guests: tasks that were homeless too, and may go elsewhere at no cost.
        owned: how many tasks may leave their home on one way.
        closed: places that lead nowhere.
        came: place -> the task that goes there (NOBODY: none does) and the place before.
        givers: tasks that may still leave their home -> clients above the low end of their bands
            that are not closed, ascending; but for `touched`, which are not entered yet.
        touched: clients whose count or closed places changed.
        unseen: the same, those that the present search has not looked at yet.
    """

    board: Board
    guests: set[int]
    owned: int
    closed: set[tuple[int, int]] = field(default_factory=set)
    came: dict[tuple[int, int], tuple[int, tuple[int, int] | None]] = field(default_factory=dict)
    givers: dict[int, list[int]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    unseen: dict[int, Iterator[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, board: Board, guests: set[int], owned: int) -> "_Search":
        """A search with nothing closed yet."""
        givers = [c for c, count in enumerate(board.count) if count > board.low[c]]
        by_left = {left: list(givers) for left in range(owned + 1)}
        return cls(board=board, guests=guests, owned=owned, givers=by_left)

    def take_in(self, task: int) -> bool:
        """Place the task on a caught-up client with room, or on one where others make room."""
        board, way = self.board, self._way_to_room(task)
        for one, client in reversed(way):
            old = board.place[one]
            if old != NOBODY:
                board.take(old)
            board.put(client)
            board.move(one, client)
            self.touched |= {client, old}
        if way:
            self.guests.add(task)
        return bool(way)

    def _way_to_room(self, task: int) -> list[tuple[int, int]]:
        """(task, its new client) of all that move, the last to where there is room; [] for none."""
        board = self.board
        taker = _least_loaded_open(board, task)
        if taker != NOBODY:
            return [(task, taker)]
        self.came = {}
        waiting: deque[tuple[int, int]] = deque()
        for client in sorted(board.others[task], key=lambda c: _load(board, c)):
            self._reach((client, self.owned), (task, None), waiting)
        while waiting:
            here = self._next_place(waiting)
            if here[0] == NOBODY:
                continue
            if board.count[here[0]] < board.high[here[0]]:
                self._reach_givers(here, waiting)
            for one in board.in_giving_order(here[0]):
                left = here[1] - (one not in self.guests)
                if left < 0:
                    continue
                taker = _least_loaded_open(board, one, is_guest=one in self.guests)
                if taker != NOBODY:
                    return [*self._steps(here), (one, taker)]
                for client in board.others[one]:
                    self._reach((client, left), (one, here), waiting)
        self._close()
        return []

    def _close(self) -> None:
        """No later way leads through what this search has reached."""
        self.closed.update(self.came)
        self.touched.update(client for client, _ in self.came)

    def _note_givers(self) -> None:
        """Enter all that was touched; most searches end before they ask who may give."""
        for client in sorted(self.touched - {NOBODY}):
            self._note_giver(client)
        self.touched.clear()

    def _note_giver(self, client: int) -> None:
        """List the client among the givers, or not, by what it holds now."""
        may_give = self.board.count[client] > self.board.low[client]
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
        # One of the givers that wait for their turn, or had it.
        may_give = self.board.count[client] > self.board.low[client]
        if may_give and (NOBODY, left) in self.came:
            return
        if left != self.owned:
            # Over a client a second time, with less to spend, leads nowhere new.
            most = (client, self.owned)
            is_giver = may_give and (NOBODY, self.owned) in self.came and most not in self.closed
            if is_giver or most in self.came:
                return
        self.came[place] = came
        waiting.append(place)

    def _reach_givers(self, here: tuple[int, int], waiting: deque[tuple[int, int]]) -> None:
        """A client inside its band is full for others' sake: any that is too may give instead.

        All of them wait as one place without a client: most ways end long before the last one.
        """
        place = (NOBODY, here[1])
        if place not in self.came:
            self._note_givers()
            self.came[place] = (NOBODY, here)
            self.unseen[here[1]] = iter(self.givers[here[1]])
            waiting.append(place)

    def _next_place(self, waiting: deque[tuple[int, int]]) -> tuple[int, int]:
        """The next place to look at; of the givers one, while the others wait on; or none."""
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
        """The moves that led to a place, in order."""
        steps = []
        while place is not None:
            task, before = self.came[place]
            if task != NOBODY:
                steps.append((task, place[0]))
            place = before
        return steps[::-1]


def _give(board: Board, client: int, *, down_to: int, is_voluntary: bool = False) -> int:
    """Hand tasks straight to caught-up clients with room; returns how many."""
    given = 0
    if board.count[client] <= down_to or not any(map(board.is_open, board.near[client])):
        return given
    for task in list(board.in_giving_order(client)):
        if board.count[client] <= down_to or (is_voluntary and board.spare >= 0):
            break
        taker = _least_loaded_open(board, task)
        if taker == NOBODY:
            continue
        board.put(taker)
        board.take(client)
        board.move(task, taker)
        given += 1
    return given


def _least_loaded_open(board: Board, task: int, *, is_guest: bool = False) -> int:
    """A client with room that is caught up; that is any client, for small tasks without a home."""
    # This is asked for every task of every client on the way: without a call for each client.
    count, low, high, has_spare = board.count, board.low, board.high, board.spare > 0
    able = [
        c for c in board.others[task] if count[c] < low[c] or (has_spare and count[c] < high[c])
    ]
    if not able and is_guest and board.anywhere[task]:
        able = [c for c, room in enumerate(board.capacity) if room and board.is_open(c)]
    if len(able) > 1:
        return min(able, key=lambda c: _load(board, c))
    return able[0] if able else NOBODY


def _most_loaded(board: Board) -> list[int]:
    usable = [c for c, threads in enumerate(board.capacity) if threads]
    return sorted(usable, key=lambda c: (-board.count[c] / board.capacity[c], c))


def _load(board: Board, client: int) -> tuple[float, int]:
    return (board.count[client] / board.capacity[client], client)
