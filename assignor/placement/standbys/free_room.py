"""Clients with room for standbys, found without a look at all clients.

Both structures rest on room that only shrinks while they are used.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from assignor.placement.standbys.cell_sets import Cells, around
from assignor.placement.state import NOBODY


@dataclass(slots=True)
class Takers:
    """Clients with room for more copies, cell by cell.

    Attributes:
        room: copies that each client may take; kept by whoever moves copies, never raised from 0.
        cells: the cell of each client.
        by_cell: cell -> its clients with room in descending order; full ones leave when met.
        by_list: the same for cells that are too many to be looked at one by one.
        count: clients with room.
    """

    room: Sequence[int]
    cells: Sequence[int]
    by_cell: dict[int, list[int]]
    by_list: dict[Cells, list[int]]
    count: int

    @classmethod
    def of(cls, room: Sequence[int], cells: Sequence[int]) -> "Takers":
        """All clients with room above 0."""
        by_cell: dict[int, list[int]] = {}
        clients = [client for client, left in enumerate(room) if left > 0]
        for client in reversed(clients):
            by_cell.setdefault(cells[client], []).append(client)
        return cls(room, cells, by_cell, {}, len(clients))

    def filled(self, client: int) -> None:
        """Count a client out if the copy that it took was its last."""
        self.count -= self.room[client] == 0

    def first(self, cells: Cells, most: int) -> Iterator[int]:
        """The first clients of these cells with room, ascending, at most so many."""
        if isinstance(cells, frozenset):
            lists = [self.by_cell[cell] for cell in cells if cell in self.by_cell]
            if len(lists) == 1:
                return iter(self._open(lists[0], most))
            return islice(heapq.merge(*(self._open(each, most) for each in lists)), most)
        listed = around(cells)
        if listed not in self.by_list:
            rows = reversed(list(zip(self.room, self.cells, strict=True)))
            last = len(self.room) - 1
            self.by_list[listed] = [
                last - n for n, (left, cell) in enumerate(rows) if left > 0 and cell in listed
            ]
        return iter(self._open(self.by_list[listed], most, cells))

    def _open(self, clients: list[int], most: int, cells: Cells | None = None) -> list[int]:
        """The last of these clients with room, of these cells only if given; full ones go."""
        room = self.room
        found = [client for client in clients[: -most - 1 : -1] if room[client] > 0]
        if cells is None and len(found) == min(most, len(clients)):
            return found
        found = []
        place = len(clients) - 1
        while place >= 0 and len(found) < most:
            client = clients[place]
            if room[client] <= 0:
                # Near the end, for nearly all before it were found just now: little is moved.
                del clients[place]
            elif cells is None or self.cells[client] in cells:
                found.append(client)
            place -= 1
        return found


@dataclass(slots=True)
class Roomiest:
    """Clients by room a thread, for copies that may go beyond it.

    Attributes:
        room: copies that each client may take; kept by whoever moves copies, never raised.
        capacity: threads.
        cells: the cell of each client.
        heaps: cells -> (-room a thread, client) of their usable clients, and of some others where
            cells are many; lazily brought up to date.
    """

    room: Sequence[int]
    capacity: Sequence[int]
    cells: Sequence[int]
    heaps: dict[Cells, list[tuple[float, int]]]

    def first(self, cells: Cells, without: Sequence[int]) -> int:
        """The client of these cells with most room a thread, then the first; or NOBODY."""
        listed = around(cells)
        if listed not in self.heaps:
            rows = zip(self.room, self.capacity, self.cells, strict=True)
            # Sorted, so it is a heap.
            self.heaps[listed] = sorted(
                (-left / threads, client)
                for client, (left, threads, cell) in enumerate(rows)
                if threads > 0 and cell in listed
            )
        heap, found = self.heaps[listed], NOBODY
        passed = []
        while heap and found == NOBODY:
            key, client = heap[0]
            now = -self.room[client] / self.capacity[client]
            if now != key:
                heapq.heapreplace(heap, (now, client))
            elif client in without or self.cells[client] not in cells:
                passed.append(heapq.heappop(heap))
            else:
                found = client
        for entry in passed:
            heapq.heappush(heap, entry)
        return found


def _circle(capacity: Sequence[int]) -> list[int]:
    """Clients in a ring, big ones more often and evenly between the others."""
    smallest = min((threads for threads in capacity if threads > 0), default=1)
    share = [min(64, round(threads / smallest)) for threads in capacity]
    places = [((k + 0.5) / n, c) for c, n in enumerate(share) for k in range(n)]
    return [client for _, client in sorted(places)]


@dataclass(slots=True)
class Ring:
    """Clients of some cells in a ring, a pointer for each active client, and a union-find."""

    clients: list[int]
    following: list[int]
    pointer: dict[int, int]

    @classmethod
    def of(cls, capacity: Sequence[int]) -> "Ring":
        """All clients with capacity above 0."""
        clients = _circle(capacity)
        # Each active client starts behind its own place, or where that would be.
        place = {client: number + 1 for number, client in enumerate(clients)}
        return cls(clients, list(range(len(clients))), place)

    def open_place(self, room: Sequence[int], start: int) -> int:
        """The first place from `start` on whose client has room; -1 when there is none."""
        path = []
        place, size = start, len(self.clients)
        while room[self.clients[place]] <= 0:
            path.append(place)
            after = self.following[place]
            place = after if after != place else (place + 1) % size
            if len(path) > size:
                return -1
        for passed in path:
            self.following[passed] = place
        return place
