"""Apply the driver's decision on counts to single tasks, by rank.

A *cell* is (level, pool, client). A pass counts the tasks of every cell, chunk by chunk (a chunk is
a partition of the table); the driver decides how many of each cell stay. In the order of the chunks
the first tasks of a cell stay and the others leave. A task that leaves or has no client gets a rank
in its pool. Ranges of ranks belong to destinations, and a rank within a destination to a client
(`slots.py`). So workers agree on every task without a list of tasks.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from assignor.placement import NOBODY
from spark_assign.huge.worker.rows import Ints
from spark_assign.huge.worker.slots import Laps, running_ranks

# Up to this number of cells, counters are dense arrays.
_DENSE = 1 << 23
_BUFFERED = 1 << 20


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of integer keys; changes with every batch.

    Attributes:
        size: all keys are below it.
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
        """The counted keys, ascending, and their counts."""
        self._count()
        if self._dense is not None:
            keys = np.flatnonzero(self._dense)
            return keys, self._dense[keys].astype(np.int64)
        return self._sums["key"], self._sums["count"]


def packed(numbers: Ints) -> bytes:
    """Integers as compressed bytes."""
    steps = np.diff(numbers, prepend=0)
    return zlib.compress(steps.astype(np.int64).tobytes(), 1)


def unpacked(data: bytes) -> Ints:
    """The integers of compressed bytes."""
    steps = np.frombuffer(zlib.decompress(data), dtype=np.int64)
    return np.cumsum(steps).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaving:
    """The cells of one chunk of which tasks leave.

    Attributes:
        cells: int [E], ascending.
        mark: int [E], number of the first tasks in the chunk that stay; the others leave.
        rank: int [P], the rank of the chunk's first leaving task in each pool.
        is_first: whether the first `mark` tasks leave and the others stay instead.
    """

    cells: Ints
    mark: Ints
    rank: Ints
    is_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dealing:
    """One decision of the driver: for active tasks, or for a layer of standbys.

    Attributes:
        clients: C.
        pools: P.
        leaving: chunk -> tasks that leave it.
        cut: int [P, D + 1], the first rank of each destination, and the end.
        base: int [P, D], the rank of the pool's first task within the destination.
        block_of: int [P], block of each pool, for the choice of laps.
        laps: (block, destination) -> laps.
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
    """The cells (level, pool, client) as integers."""
    return (level * pools + pool) * clients + at


@dataclass(slots=True, kw_only=True, eq=False)
class Dealer:
    """Applies one decision to the tasks of one chunk, batch after batch."""

    dealing: Dealing
    leaving: Leaving
    _seen: Ints
    _rank: Ints
    _entry: npt.NDArray[np.int32] | None

    @classmethod
    def of(cls, dealing: Dealing, chunk: int) -> "Dealer":
        """A dealer before the first batch of a chunk."""
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
        known = np.flatnonzero(entry >= 0)
        ranks = running_ranks(entry[known], self._seen)
        is_before = ranks < self.leaving.mark[entry[known]]
        gone = known[is_before == self.leaving.is_first]
        if not len(gone):
            return at
        left = at.copy()
        left[gone] = NOBODY
        return left

    def deal(self, pool: Ints) -> tuple[Ints, Ints]:
        """Clients and destinations, int [M] both, of tasks without a client."""
        dealing = self.dealing
        rank = running_ranks(pool, self._rank)
        planned = dealing.cut[pool, -1]
        client = np.full(len(pool), NOBODY, dtype=np.int64)
        # All ranks are planned if the rows are those that were counted; `Chunk.unpacked` checks it.
        known = np.flatnonzero(rank < planned)
        where = np.zeros(len(pool), dtype=np.int64)
        where[known] = dealing.destination(pool[known], rank[known])
        inside = dealing.base[pool, where] + rank - dealing.cut[pool, where]
        code = dealing.block_of[pool] * dealing.cut.shape[1] + where
        code[rank >= planned] = -1
        for laps_code in np.unique(code[known]).tolist():
            rows = code == laps_code
            laps = dealing.laps[divmod(laps_code, dealing.cut.shape[1])]
            client[rows] = laps.client(inside[rows])
        return client, where
