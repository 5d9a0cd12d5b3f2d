"""Places: the clients on which each task costs no move, its running owner or caught-up copies.

A task has no place, one or several. If it is placed on another client, it costs the non-overlap
cost. So a task that no client runs any more is kept on a client with its state in the same way as a
running task is kept on its owner.
"""

from dataclasses import dataclass

import numpy as np

from assignor.placement.actives import homes
from assignor.placement.state import LAG_UNKNOWN, NOBODY, BoolArray, GroupState, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptPlaces:
    """Clients on which tasks may stay at no cost.

    Attributes:
        start: int [M + 1]; the places of task m are client[start[m]:start[m + 1]].
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

    def row(self) -> IntArray:
        """Int [N]: the task of each place."""
        return np.repeat(np.arange(len(self.start) - 1, dtype=np.int64), self.count())

    def count(self) -> IntArray:
        """Int [M]: places of each task."""
        return np.diff(self.start)

    def includes(self, client: IntArray) -> BoolArray:
        """Bool [M]: whether `client` (int [M]) puts each task on one of its places."""
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

    The places of a stateful task are, by the first rule that applies:

    1. the destination of a move that is under way;
    2. the running owner, unless it is behind while another client is caught up;
    3. all caught-up clients;
    4. the copies with the smallest lag.

    A stateless task, and a task so small that any client can start it, has at most its owner. A
    caught-up client to which balance gives the task is an additional place: that hand-off leaves
    capacity for a task that would be restored elsewhere.

    Args:
        state: the group.
        active: int [T], the client of every task by balance alone.
        under_way: int [T], the client where a copy is warming up for a move, or NOBODY.
    """
    tasks = len(state.tasks)
    alone = np.where(state.stateful, homes(state), state.owner)
    if under_way is not None:
        alone = np.where(under_way == NOBODY, alone, under_way)
    task, lag = state.copy_task(), state.copy_lag
    usable = state.stateful[task] & (alone[task] == NOBODY) & ~state.starts_anywhere()[task]
    usable &= state.capacity()[state.copy_client] > 0
    # All caught-up copies count as equally near.
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
