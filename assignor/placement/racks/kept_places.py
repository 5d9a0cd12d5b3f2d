"""Where each task may stay without a move: its running owner, or the copies that can take it over.

A task has no place, one or several. Being placed outside of all of them costs the non-overlap cost,
so a task that nobody runs any more is worth as much on a client that has its state as a running
task is on its owner.
"""

from dataclasses import dataclass

import numpy as np

from assignor.placement.actives import homes
from assignor.placement.state import LAG_UNKNOWN, NOBODY, BoolArray, GroupState, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptPlaces:
    """Clients on which tasks may stay at no cost.

    Attributes:
        start: int [M + 1]; the places of task m are the slice start[m]:start[m + 1] of the next.
        client: int [N]; ascending within a task.
    """

    start: IntArray
    client: IntArray

    @classmethod
    def of(cls, row: IntArray, client: IntArray, rows: int) -> "KeptPlaces":
        """The places of `rows` tasks from (row, client) pairs in any order, each pair once."""
        order = np.lexsort((client, row))
        start = np.searchsorted(row[order], np.arange(rows + 1)).astype(np.int64)
        return cls(start=start, client=client[order].astype(np.int64))

    @classmethod
    def of_owner(cls, owner: IntArray) -> "KeptPlaces":
        """One place a task, the client in `owner` (int [M]), or none where that is NOBODY."""
        row = np.flatnonzero(owner != NOBODY)
        return cls.of(row, owner[row], len(owner))

    def row(self) -> IntArray:
        """Int [N]: the task of each place."""
        return np.repeat(np.arange(len(self.start) - 1, dtype=np.int64), self.count())

    def count(self) -> IntArray:
        """Int [M]: places of each task."""
        return np.diff(self.start)

    def includes(self, client: IntArray) -> BoolArray:
        """Bool [M]: whether each task is on a place of its own when placed as in `client`."""
        row = self.row()
        found = np.zeros(len(client), dtype=np.bool_)
        found[row[self.client == client[row]]] = True
        return found

    def part(self, tasks: IntArray, can_hold: BoolArray) -> "KeptPlaces":
        """The places of `tasks` (int [M], distinct) on clients in `can_hold` (bool [C])."""
        number = np.full(len(self.start) - 1, NOBODY, dtype=np.int64)
        number[tasks] = np.arange(len(tasks))
        row = number[self.row()]
        fits = (row != NOBODY) & can_hold[self.client]
        return KeptPlaces.of(row[fits], self.client[fits], len(tasks))


def kept_places(
    state: GroupState, active: IntArray, under_way: IntArray | None = None
) -> KeptPlaces:
    """The places of all tasks of a group; O((T + N) log N).

    First row that holds: where a move of the task is under way; the running owner, unless it is
    behind while another client is caught up; all clients that are caught up; the nearest copies.
    Stateless tasks have their owner, and tasks so small that any client can start them have no
    place besides it. A caught-up client that balance hands the task to is a place, too: its
    hand-off makes room for a task that would be restored elsewhere.

    Args:
        state: the group.
        active: int [T], the client of every task as balance has it.
        under_way: int [T], the client where a copy is warming up for a move, or NOBODY.
    """
    tasks = len(state.tasks)
    alone = np.where(state.stateful, homes(state), state.owner)
    if under_way is not None:
        alone = np.where(under_way == NOBODY, alone, under_way)
    task, lag = state.copy_task(), state.copy_lag
    usable = state.stateful[task] & (alone[task] == NOBODY) & ~state.starts_anywhere()[task]
    usable &= state.capacity()[state.copy_client] > 0
    # Of copies that are caught up one is as good as another.
    behind = np.where(state.is_caught_up(), 0, lag)
    nearest = np.full(tasks, LAG_UNKNOWN, dtype=np.int64)
    np.minimum.at(nearest, task[usable], behind[usable])
    usable &= (behind == nearest[task]) & (behind != LAG_UNKNOWN)
    is_chosen = state.copy_client == active[task]
    usable |= state.is_caught_up() & state.stateful[task] & is_chosen
    usable &= state.copy_client != alone[task]
    if under_way is not None:
        usable &= under_way[task] == NOBODY
    owned = np.flatnonzero(alone != NOBODY)
    row = np.concatenate([owned, task[usable]])
    client = np.concatenate([alone[owned], state.copy_client[usable]])
    return KeptPlaces.of(row, client, tasks)
