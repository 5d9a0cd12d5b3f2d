"""Ranks instead of lists: who gets the k-th task of a pool, without listing any task.

A client's room is dealt in laps: each lap visits every thread that still has room. A lap of the
same length as the one before differs from it by a shift only, so laps of equal length are one row
of a table, and rank -> client is two divisions. Tables have a row per client at most, never per
task.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laps:
    """Places of some clients, in the order in which they are dealt.

    Attributes:
        order: int [E], a client for each of its threads that has room, roomiest first.
        start: int [B + 1], the first rank of each block of laps of equal length, and the end.
        length: int [B], threads that a lap of the block visits.
        first_lap: int [B], laps before the block.
        shift: how far each lap starts behind the one before.
    """

    order: Ints
    start: Ints
    length: Ints
    first_lap: Ints
    shift: int

    @property
    def places(self) -> int:
        """How many ranks there are."""
        return int(self.start[-1])

    def client(self, rank: Ints) -> Ints:
        """Int [M]: the client of each rank, 0 <= rank < places."""
        block = np.searchsorted(self.start, rank, side="right") - 1
        length = self.length[block]
        lap, place = np.divmod(rank - self.start[block], length)
        turn = self.shift * (1 + (self.first_lap[block] + lap) % np.maximum(length - 1, 1))
        found: Ints = self.order[(place + turn) % length]
        return found


def laps_of(room: Ints, threads: Ints, *, shift: int = 0) -> Laps:
    """Deal the room of clients evenly over their threads; O(threads) time and memory.

    Args:
        room: int [C], places of each client, >= 0; above 0 only with threads.
        threads: int [C].
        shift: 0 for laps that all start alike; 1 for laps that each start further on, never on the
            place of the lap itself, so that what was dealt without shift meets another client.
    """
    clients = np.flatnonzero(room > 0)
    share, rest = np.divmod(room[clients], threads[clients])
    entries = np.repeat(clients, threads[clients])
    first = np.repeat(np.cumsum(threads[clients]) - threads[clients], threads[clients])
    number = np.arange(len(entries)) - first
    own = np.repeat(share, threads[clients]) + (number < np.repeat(rest, threads[clients]))
    # A client's threads do not follow one another: all first threads, then all second ones.
    ranked = np.lexsort((entries, number, -own))
    ranked = ranked[own[ranked] > 0]
    sizes = own[ranked]
    # Laps up to the room of the last entry visit all entries, those up to the next one fewer.
    rooms, last = np.unique(-sizes, return_index=True)
    rooms = -rooms[::-1]
    length = np.append(last[1:], len(sizes))[::-1].astype(np.int64)
    first_lap = np.concatenate([[0], rooms[:-1]]).astype(np.int64)
    start = np.concatenate([[0], np.cumsum((rooms - first_lap) * length)]).astype(np.int64)
    return Laps(
        order=entries[ranked].astype(np.int64),
        start=start,
        length=length,
        first_lap=first_lap,
        shift=shift,
    )


def running_ranks(ids: Ints, seen: Ints) -> Ints:
    """Int [M]: how many of the same id came before, in earlier calls too; brings `seen` up to date.

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
