"""Stateful active tasks while they are moved: their clients, and each client's giving order.

A client gives tasks to others in its giving order: tasks of its largest subtopology first.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from assignor.placement.arrays import rows_by_value
from assignor.placement.bands import thread_bands
from assignor.placement.state import NOBODY, GroupState, IntArray


class GivingOrder:
    """Tasks of one client, kept sorted while tasks are added and removed.

    A client may hold half of all tasks, and its first few tasks are read once for every other
    client: sorting them each time would be quadratic.
    """

    def __init__(self, tasks: Iterable[int], subtopology: Sequence[int]) -> None:
        """Sort the tasks.

        Args:
            tasks: the tasks of the client.
            subtopology: of every task of the group, by task.
        """
        self._subtopology = subtopology
        self._by_part: dict[int, list[int]] = {}
        for task in sorted(tasks):
            self._by_part.setdefault(subtopology[task], []).append(task)

    def add(self, task: int) -> None:
        """Add a task that is not in it."""
        insort(self._by_part.setdefault(self._subtopology[task], []), task)

    def discard(self, task: int) -> None:
        """Remove a task, if it is in it."""
        part = self._by_part.get(self._subtopology[task], [])
        at = bisect_left(part, task)
        if at < len(part) and part[at] == task:
            del part[at]

    def __iter__(self) -> Iterator[int]:
        """Tasks by how many of their subtopology remain afterwards, most first; then by number.

        Tasks must not be added or removed during the iteration.
        """
        parts = sorted(self._by_part.values(), key=len, reverse=True)
        longest = len(parts[0]) if parts else 0
        count = 0  # parts that have a task at this place
        for place in range(longest - 1, -1, -1):
            while count < len(parts) and len(parts[count]) > place:
                count += 1
            yield from sorted([part[place] for part in parts[:count]])


@dataclass(slots=True, kw_only=True)
class DraftActives:
    """The clients of stateful active tasks so far, and other clients that are caught up on them.

    Attributes:
        place: the client of each task, or NOBODY.
        count: number of tasks on each client.
        low, high: the band of each client.
        capacity: threads of each client.
        total: number of tasks.
        others: task -> other clients with state that are caught up on it, ascending.
        movable: client -> its tasks on which another client is caught up, as ordered keys.
        near: client -> other clients that are or were caught up on one of its tasks.
        subtopology: of each task.
        anywhere: whether every client counts as caught up on the task.
        spare: tasks that may go to clients above `low` while all others still reach theirs.
        orders: client -> its `movable` in giving order; only of clients searched so far.
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

    @classmethod
    def of(cls, state: GroupState, home: IntArray, count: IntArray) -> "DraftActives":
        """A draft in which every task is at its home.

        Args:
            state: the group.
            home: int [T], the home of each task, or NOBODY.
            count: int [C], tasks at home on each client.
        """
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
        return cls(
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

    def is_open(self, client: int) -> bool:
        """Whether the client may take one more task while all others still reach their `low`."""
        if self.count[client] < self.low[client]:
            return True
        return self.spare > 0 and self.count[client] < self.high[client]

    def put(self, client: int) -> None:
        """Count one more task on the client."""
        self.spare -= self.low[client] <= self.count[client] < self.high[client]
        self.count[client] += 1

    def take(self, client: int) -> None:
        """Count one task less on the client."""
        self.count[client] -= 1
        self.spare += self.low[client] <= self.count[client] < self.high[client]

    def move(self, task: int, client: int) -> None:
        """Move a task to a client that is caught up on it."""
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
        """The client's tasks on which another client is caught up, in giving order."""
        order = self.orders.get(client)
        if order is None:
            order = GivingOrder(self.movable[client], self.subtopology)
            self.orders[client] = order
        return order
