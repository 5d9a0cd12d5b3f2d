"""The counters of a counting pass; the driver gets one row per chunk."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from assignor.placement import NOBODY
from spark_assign.huge.worker.actives import LEVELS, Belonging
from spark_assign.huge.worker.chunk import COUNTED, Chunk, Known
from spark_assign.huge.worker.dealing import Tally, keys_of, packed
from spark_assign.huge.worker.rows import Ints, Rows
from spark_assign.huge.worker.settle import KINDS, settled
from spark_assign.huge.worker.standbys import Copies


def mixed(subtopology: Ints, partition: Ints) -> Ints:
    """A well mixed 64-bit number for each task (splitmix64)."""
    x = ((subtopology << 32) ^ partition).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).view(np.int64)


@dataclass(slots=True, kw_only=True, eq=False)
class Counters:
    """The counters of one chunk.

    `free` and `lacking` are by pool, `running` are the stateful tasks and all tasks of each client.
    """

    cells: Tally
    offered: Tally
    free: Ints
    lacking: Ints
    held: Ints
    asked: Ints
    warming: Ints
    running: Ints
    tasks: dict[int, tuple[int, int, int]]
    wrong: int = 0
    unsure: int = 0
    first: int = 2**62

    @classmethod
    def of(cls, known: Known) -> "Counters":
        """All zeros."""
        group, pools = known.group, known.pools
        clients = len(group.clients)
        return cls(
            cells=Tally(size=LEVELS * 2 * group.pools * clients),
            offered=Tally(size=len(pools.codes) * clients),
            free=np.zeros(2 * group.pools, dtype=np.int64),
            lacking=np.zeros(pools.count, dtype=np.int64),
            held=np.zeros(clients, dtype=np.int64),
            asked=np.zeros(KINDS + 1, dtype=np.int64),
            warming=np.zeros(clients, dtype=np.int64),
            running=np.zeros(2 * clients, dtype=np.int64),
            tasks={},
        )

    def see(self, rows: Rows) -> None:
        """Count invalid rows, and rows, partitions and hashes that reveal repeated tasks."""
        self.wrong += int(rows.is_wrong.sum())
        mix = mixed(rows.subtopology, rows.partition)
        for name in np.unique(rows.subtopology).tolist():
            if name < 0:
                continue
            index = np.flatnonzero(rows.subtopology == name)
            count, most, total = self.tasks.get(name, (0, -1, 0))
            with np.errstate(over="ignore"):
                total = (total + int(mix[index].sum())) & (2**64 - 1)
            most = max(0, most, int(rows.partition[index].max()))
            self.tasks[name] = (count + len(index), most, total)

    def add_actives(self, chunk: Chunk, rows: Rows, where: Belonging) -> None:
        """Count the active tasks by cell."""
        group = chunk.known.group
        clients, pools = len(group.clients), 2 * group.pools
        code = (rows.subtopology << 31) + rows.partition
        self.first = min(self.first, int(code.min()))
        has = where.at != NOBODY
        keys = keys_of(where.level, where.pool, where.at, clients=clients, pools=pools)
        self.cells.add(keys[has])
        self.free += np.bincount(where.pool[~has], minlength=pools)
        self.warming += np.bincount(where.home[where.warms_up], minlength=clients)
        for part, of_part in enumerate((rows.stateful, np.True_)):
            owner = rows.owner[(rows.owner != NOBODY) & of_part]
            self.running[part * clients :][:clients] += np.bincount(owner, minlength=clients)
        lost = ~has & rows.stateful
        if lost.any():
            self.unsure += int((lost & (rows.copy_client != NOBODY).any(axis=1)).sum())

    def add_copies(self, chunk: Chunk, rows: Rows, copies: Copies) -> None:
        """Count standbys that stay, that may be given up, and that are lacking."""
        known = chunk.known
        offered = copies.offered()
        can = offered != NOBODY
        clients = len(known.group.clients)
        self.offered.add((copies.pool[can] - known.pools.offered) * clients + offered[can])
        kept = copies.kept[copies.kept != NOBODY]
        self.held += np.bincount(kept, minlength=clients)
        lacks = copies.lacks > 0
        kind = chunk.kinds(rows)
        pool = known.pools.lacking(copies.code[lacks], kind[lacks], copies.lacks[lacks])
        self.lacking += np.bincount(pool, minlength=known.pools.count)

    def add(self, chunk: Chunk, rows: Rows) -> None:
        """Count what the next decision needs: actives, standbys, or warm-ups."""
        group, plans = chunk.known.group, chunk.known.plans
        where, copies = chunk.start(rows)
        if plans.actives is None:
            self.add_actives(chunk, rows, where)
        target, copies = chunk.move(rows, where, copies)
        if group.standbys and plans.copies is None:
            self.add_copies(chunk, rows, copies)
        if plans.copies is None or plans.load is None:
            return
        placed = chunk.fill(rows, target, copies)
        now = settled(rows, group, home=where.home, target=target, standbys=placed, load=plans.load)
        self.asked[:KINDS] += np.bincount(now.kind[now.asked != NOBODY], minlength=KINDS)
        self.asked[KINDS] += now.is_followed

    def batch(self, chunk: Chunk) -> pa.RecordBatch:
        """The counts as a batch of one row in the schema `COUNTED`."""
        keys, counts = self.cells.result()
        copy_keys, copy_counts = self.offered.result()
        tasks = np.array(
            [[name, *numbers] for name, numbers in sorted(self.tasks.items())], dtype=np.uint64
        )
        numbers = [chunk.number, self.wrong, self.unsure, self.first, chunk.rows, chunk.mark]
        columns = [keys, counts, self.free, copy_keys, copy_counts, self.lacking, self.held]
        blobs = [
            packed(tasks.reshape(-1).view(np.int64)),
            *map(packed, [*columns, self.asked, self.warming, self.running]),
        ]
        row = [[value] for value in (*numbers, *blobs)]
        return pa.RecordBatch.from_pydict(
            dict(zip(COUNTED.names, row, strict=True)), schema=COUNTED
        )
