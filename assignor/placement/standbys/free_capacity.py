"""Clients with free capacity for standbys, found without a scan of all clients.

Free capacity is the number of copies that a client may still take. All structures here require that
it only shrinks while they are in use.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from assignor.placement.standbys.cell_sets import Cells, around
from assignor.placement.state import NOBODY


@dataclass(slots=True)
class Takers:
    """Clients with free capacity, by cell.

    Attributes:
        free: copies that each client may still take; the caller updates it, and never raises a 0.
        cells: the cell of each client.
        by_cell: cell -> its clients with free capacity, descending; a search removes full clients.
        by_list: set of cells -> the same, for sets of too many cells to merge their lists.
        count: number of clients with free capacity.
    """

    free: Sequence[int]
    cells: Sequence[int]
    by_cell: dict[int, list[int]]
    by_list: dict[Cells, list[int]]
    count: int

    @classmethod
    def of(cls, free: Sequence[int], cells: Sequence[int]) -> "Takers":
        """All clients whose free capacity is above 0."""
        by_cell: dict[int, list[int]] = {}
        clients = [client for client, left in enumerate(free) if left > 0]
        for client in reversed(clients):
            by_cell.setdefault(cells[client], []).append(client)
        return cls(free, cells, by_cell, {}, len(clients))

    def filled(self, client: int) -> None:
        """Lower `count` if the client, which just took a copy, has no free capacity left."""
        self.count -= self.free[client] == 0

    def first(self, cells: Cells, most: int) -> Iterator[int]:
        """The first `most` clients of these cells with free capacity, ascending."""
        if isinstance(cells, frozenset):
            lists = [self.by_cell[cell] for cell in cells if cell in self.by_cell]
            if len(lists) == 1:
                return iter(self._open(lists[0], most))
            return islice(heapq.merge(*(self._open(each, most) for each in lists)), most)
        listed = around(cells)
        if listed not in self.by_list:
            rows = reversed(list(zip(self.free, self.cells, strict=True)))
            last = len(self.free) - 1
            self.by_list[listed] = [
                last - n for n, (left, cell) in enumerate(rows) if left > 0 and cell in listed
            ]
        return iter(self._open(self.by_list[listed], most, cells))

    def _open(self, clients: list[int], most: int, cells: Cells | None = None) -> list[int]:
        """The last `most` clients of the list with free capacity, in `cells` if given.

        Removes full clients from the list on the way.
        """
        free = self.free
        found = [client for client in clients[: -most - 1 : -1] if free[client] > 0]
        if cells is None and len(found) == min(most, len(clients)):
            return found
        found = []
        place = len(clients) - 1
        while place >= 0 and len(found) < most:
            client = clients[place]
            if free[client] <= 0:
                # Cheap: the entry is near the end of the list.
                del clients[place]
            elif cells is None or self.cells[client] in cells:
                found.append(client)
            place -= 1
        return found


@dataclass(slots=True)
class MostFree:
    """Clients by free capacity per thread, for copies that may exceed it.

    Attributes:
        free: copies that each client may still take; the caller updates it, and never raises it.
        capacity: threads of each client.
        cells: the cell of each client.
        heaps: cells -> heap of (-free capacity per thread, client) of their usable clients, and of
            clients in other cells if there are many cells; entries are updated when read.
    """

    free: Sequence[int]
    capacity: Sequence[int]
    cells: Sequence[int]
    heaps: dict[Cells, list[tuple[float, int]]]

    def first(self, cells: Cells, without: Sequence[int]) -> int:
        """The client of these cells with most free capacity per thread, or NOBODY.

        Among equals the first client; the clients in `without` are left out.
        """
        listed = around(cells)
        if listed not in self.heaps:
            rows = zip(self.free, self.capacity, self.cells, strict=True)
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
            now = -self.free[client] / self.capacity[client]
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
    """Clients in round robin order; each stands in it in proportion to its threads, evenly."""
    smallest = min((threads for threads in capacity if threads > 0), default=1)
    share = [min(64, round(threads / smallest)) for threads in capacity]
    places = [((k + 0.5) / n, c) for c, n in enumerate(share) for k in range(n)]
    return [client for _, client in sorted(places)]


@dataclass(slots=True)
class Ring:
    """Clients of some cells in round robin order.

    Attributes:
        clients: the client at each place; a client may stand at several places.
        following: union-find over places: leads from a place to the next one that is not full.
        pointer: active client -> the place at which the search for its next standby starts.
    """

    clients: list[int]
    following: list[int]
    pointer: dict[int, int]

    @classmethod
    def of(cls, capacity: Sequence[int]) -> "Ring":
        """All clients with capacity above 0."""
        clients = _circle(capacity)
        # The first standby of an active client goes to the client after its own last place.
        place = {client: number + 1 for number, client in enumerate(clients)}
        return cls(clients, list(range(len(clients))), place)

    def open_place(self, free: Sequence[int], start: int) -> int:
        """The first place from `start` on whose client has free capacity; -1 if there is none."""
        path = []
        place, size = start, len(self.clients)
        while free[self.clients[place]] <= 0:
            path.append(place)
            after = self.following[place]
            place = after if after != place else (place + 1) % size
            if len(path) > size:
                return -1
        for passed in path:
            self.following[passed] = place
        return place
