"""Counts out of a worker, ranks back into it: which tasks stay, and where the others go.

A *cell* is (level, pool, client). A pass counts the tasks of every cell, chunk by chunk (a chunk is
a partition of the table); the driver says how many of each cell stay. The first ones stay and the
last ones leave, in the order of the chunks, and whoever leaves or belongs nowhere gets a rank in
its pool. Pools are cut into destinations by rank, and a rank in a destination is a client
(`slots.py`). So workers agree on every single task without anybody listing them.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from assignor.placement import NOBODY
from spark_assign.huge.worker.rows import Ints
from spark_assign.huge.worker.slots import Laps, running_ranks

# Counters of up to so many cells are kept dense.
_DENSE = 1 << 23
_BUFFERED = 1 << 20


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of integer keys, a scratchpad of one chunk.

    Attributes:
        size: keys are below it.
    """

    size: int
    _dense: Ints | None = None
    _waiting: list[Ints] = field(default_factory=list)
    _waits: int = 0
    _sums: dict[str, Ints] = field(default_factory=dict)

    def add(self, keys: Ints) -> None:
        """Count each of the keys once."""
        self._waiting.append(keys)
        self._waits += len(keys)
        if self._waits >= _BUFFERED:
            self._count()

    def _count(self) -> None:
        keys = np.concatenate(self._waiting) if self._waiting else np.zeros(0, dtype=np.int64)
        self._waiting, self._waits = [], 0
        if self.size <= _DENSE:
            if self._dense is None:
                self._dense = np.zeros(self.size, dtype=np.int64)
            np.add.at(self._dense, keys, 1)
            return
        old = self._sums or {"key": keys[:0], "count": keys[:0]}
        names, counts = np.unique(keys, return_counts=True)
        both = np.concatenate([old["key"], names])
        merged, place = np.unique(both, return_inverse=True)
        total = np.bincount(place, weights=np.concatenate([old["count"], counts]))
        self._sums = {"key": merged, "count": total.astype(np.int64)}

    def result(self) -> tuple[Ints, Ints]:
        """Keys that were counted, ascending, and their counts."""
        self._count()
        if self._dense is not None:
            keys = np.flatnonzero(self._dense)
            return keys, self._dense[keys].astype(np.int64)
        return self._sums["key"], self._sums["count"]


def packed(numbers: Ints) -> bytes:
    """Integers as few bytes, for the way to the driver."""
    steps = np.diff(numbers, prepend=0)
    return zlib.compress(steps.astype(np.int64).tobytes(), 1)


def unpacked(data: bytes) -> Ints:
    """The integers that were packed."""
    steps = np.frombuffer(zlib.decompress(data), dtype=np.int64)
    return np.cumsum(steps).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaving:
    """For one chunk: cells of which not all tasks stay.

    Attributes:
        cells: int [E], ascending.
        mark: int [E], the first so many of the chunk stay and the others leave, or the other way.
        rank: int [P], the rank of the chunk's first task in each pool.
        is_first: which way: whether the first ones leave.
    """

    cells: Ints
    mark: Ints
    rank: Ints
    is_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dealing:
    """One stage, as the driver decided it.

    Attributes:
        clients: C.
        pools: P.
        leaving: by chunk.
        cut: int [P, D + 1], the first rank of each destination, and the end.
        base: int [P, D], the rank there of the pool's first task.
        block_of: int [P], which laps of a destination a pool draws from.
        laps: by (block, destination).
    """

    clients: int
    pools: int
    leaving: Mapping[int, Leaving]
    cut: Ints
    base: Ints
    block_of: Ints
    laps: Mapping[tuple[int, int], Laps]

    def destination(self, pool: Ints, rank: Ints) -> Ints:
        """Int [M]: the destination of a rank in a pool."""
        past: Ints = (self.cut[pool][:, 1:] <= rank[:, None]).sum(axis=1).astype(np.int64)
        return past


def keys_of(level: Ints, pool: Ints, at: Ints, *, clients: int, pools: int) -> Ints:
    """Cells as integers."""
    return (level * pools + pool) * clients + at


@dataclass(slots=True, kw_only=True, eq=False)
class Dealer:
    """Deals one stage to the tasks of one chunk, batch after batch."""

    dealing: Dealing
    leaving: Leaving
    _seen: Ints
    _rank: Ints
    _entry: npt.NDArray[np.int32] | None

    @classmethod
    def of(cls, dealing: Dealing, chunk: int) -> "Dealer":
        """A dealer for a chunk, at its start."""
        leaving = dealing.leaving[chunk]
        cells = leaving.cells
        entry = None
        if len(cells) and int(cells[-1]) < 8 * _DENSE:
            entry = np.full(int(cells[-1]) + 2, -1, dtype=np.int32)
            entry[cells] = np.arange(len(cells), dtype=np.int32)
        return cls(
            dealing=dealing,
            leaving=leaving,
            _seen=np.zeros(len(cells), dtype=np.int64),
            _rank=leaving.rank.copy(),
            _entry=entry,
        )

    def stays(self, level: Ints, pool: Ints, at: Ints) -> Ints:
        """Int [M]: `at`, or NOBODY for the tasks that leave."""
        dealing, cells = self.dealing, self.leaving.cells
        if not len(cells):
            return at
        keys = keys_of(level, pool, at, clients=dealing.clients, pools=dealing.pools)
        keys = np.where(at == NOBODY, int(cells[-1]) + 1, keys)
        if self._entry is not None:
            entry = self._entry[np.minimum(keys, len(self._entry) - 1)].astype(np.int64)
        else:
            place = np.minimum(np.searchsorted(cells, keys), len(cells) - 1)
            entry = np.where(cells[place] == keys, place, -1)
        mine = np.flatnonzero(entry >= 0)
        ranks = running_ranks(entry[mine], self._seen)
        is_before = ranks < self.leaving.mark[entry[mine]]
        gone = mine[is_before == self.leaving.is_first]
        if not len(gone):
            return at
        left = at.copy()
        left[gone] = NOBODY
        return left

    def deal(self, pool: Ints) -> tuple[Ints, Ints]:
        """Clients and destinations, int [M] both, for tasks that belong nowhere."""
        dealing = self.dealing
        rank = running_ranks(pool, self._rank)
        planned = dealing.cut[pool, -1]
        client = np.full(len(pool), NOBODY, dtype=np.int64)
        # Counts and deals are made of the same rows; should they differ, somebody else decides.
        known = np.flatnonzero(rank < planned)
        where = np.zeros(len(pool), dtype=np.int64)
        where[known] = dealing.destination(pool[known], rank[known])
        inside = dealing.base[pool, where] + rank - dealing.cut[pool, where]
        code = dealing.block_of[pool] * dealing.cut.shape[1] + where
        code[rank >= planned] = -1
        for one in np.unique(code[known]).tolist():
            rows = code == one
            laps = dealing.laps[divmod(one, dealing.cut.shape[1])]
            client[rows] = laps.client(inside[rows])
        return client, where
