"""Which client gets the task of rank k, without a list of tasks.

The spare capacity of clients is filled in laps: each lap visits every thread that has some left.
Laps of equal length differ by a shift only, so they are one row of a table, and two divisions give
the client of a rank. Tables have at most one row per client.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laps:
    """The spare capacity of some clients in the order in which it is filled.

    Attributes:
        order: int [E], a client for each of its threads with free capacity, the most free first.
        start: int [B + 1], the first rank of each block of laps of equal length, and the end.
        length: int [B], threads that a lap of the block visits.
        first_lap: int [B], laps before the block.
        shift: number of threads by which each lap starts after the one before.
    """

    order: Ints
    start: Ints
    length: Ints
    first_lap: Ints
    shift: int

    @property
    def places(self) -> int:
        """The number of ranks."""
        return int(self.start[-1])

    def client(self, rank: Ints) -> Ints:
        """Int [M]: the client of each rank, 0 <= rank < places."""
        block = np.searchsorted(self.start, rank, side="right") - 1
        length = self.length[block]
        lap, place = np.divmod(rank - self.start[block], length)
        turn = self.shift * (1 + (self.first_lap[block] + lap) % np.maximum(length - 1, 1))
        found: Ints = self.order[(place + turn) % length]
        return found


def laps_of(spare: Ints, threads: Ints, *, shift: int = 0) -> Laps:
    """Laps that fill spare capacity evenly over the clients' threads; O(threads) time and memory.

    Args:
        spare: int [C], spare capacity of each client, >= 0; above 0 only with threads.
        threads: int [C].
        shift: 0 if all laps start with the same thread; 1 if each lap starts one thread further, so
            that standbys get another client than active tasks of the same rank.
    """
    clients = np.flatnonzero(spare > 0)
    share, rest = np.divmod(spare[clients], threads[clients])
    entries = np.repeat(clients, threads[clients])
    first = np.repeat(np.cumsum(threads[clients]) - threads[clients], threads[clients])
    number = np.arange(len(entries)) - first
    own = np.repeat(share, threads[clients]) + (number < np.repeat(rest, threads[clients]))
    # All first threads of clients, then all second ones.
    ranked = np.lexsort((entries, number, -own))
    ranked = ranked[own[ranked] > 0]
    sizes = own[ranked]
    # The first laps visit all entries; later laps only entries with more spare capacity.
    levels, last = np.unique(-sizes, return_index=True)
    levels = -levels[::-1]
    length = np.append(last[1:], len(sizes))[::-1].astype(np.int64)
    first_lap = np.concatenate([[0], levels[:-1]]).astype(np.int64)
    start = np.concatenate([[0], np.cumsum((levels - first_lap) * length)]).astype(np.int64)
    return Laps(
        order=entries[ranked].astype(np.int64),
        start=start,
        length=length,
        first_lap=first_lap,
        shift=shift,
    )


def running_ranks(ids: Ints, seen: Ints) -> Ints:
    """Int [M]: the number of equal ids before, in earlier calls too; updates `seen`.

    Args:
        ids: int [M], 0 <= id < len(seen).
        seen: int [I], changed.
    """
    order = np.argsort(ids, kind="stable")
    grouped = ids[order]
    is_first = np.ones(len(ids), dtype=np.bool_)
    is_first[1:] = grouped[1:] != grouped[:-1]
    position = np.arange(len(ids))
    begin = np.maximum.accumulate(np.where(is_first, position, 0))
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[order] = position - begin
    ranks += seen[ids]
    if len(ids):
        last = np.append(np.flatnonzero(is_first)[1:], len(ids)) - 1
        seen[grouped[last]] = ranks[order[last]] + 1
    return ranks
