"""Passes over the rows of a huge group: count, ask, place; each repeats what the ones before did.

A pass reads every chunk once, in the order of its rows, and keeps counters only. That the rows are
the same in every pass is checked, since ranks mean nothing otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, TaskContext

from assignor import NOBODY
from spark_assign.collapse_actives import (
    LEVELS,
    PREFERRED,
    Belonging,
    Taking,
    belonging,
    taken_up,
)
from spark_assign.collapse_answer import answer
from spark_assign.collapse_dealing import Dealer, Dealing, Tally, keys_of, packed
from spark_assign.collapse_group import Group
from spark_assign.collapse_rows import Ints, Reading, Rows, rows_of
from spark_assign.collapse_settle import KINDS, granted, settled
from spark_assign.collapse_standbys import (
    Copies,
    Pools,
    copies_of,
    deal_standbys,
    levels_of,
)

Batches = Iterable[pa.RecordBatch]
Pass = Callable[[Batches], Iterator[pa.RecordBatch]]
ChunkNumber = Callable[[], int]

_NUMBERS = ("wrong", "unsure", "first", "rows", "mark")
_BLOBS = ("tasks", "cells", "counts", "free")
_COPY_BLOBS = ("copies", "copy_counts", "lacking", "held", "asked", "warming")
COUNTED = pa.schema(
    {"chunk": pa.int32()}
    | dict.fromkeys(_NUMBERS, pa.int64())
    | dict.fromkeys((*_BLOBS, *_COPY_BLOBS), pa.binary())
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plans:
    """What the driver has decided so far; None: not yet.

    Attributes:
        actives: where active tasks go.
        copies: where standbys go, a layer for each copy that a task may lack.
        grants: warm-ups, by chunk.
        load: int [C], active tasks of each client.
        taking: who goes on with what warms up.
        marks: by chunk, what its rows add up to, in their order.
    """

    actives: Dealing | None = None
    copies: tuple[Dealing, ...] | None = None
    grants: Mapping[int, Ints] | None = None
    load: Ints | None = None
    taking: Taking | None = None
    marks: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """What every worker gets."""

    group: Group
    pools: Pools
    reading: Reading
    plans: Plans


def spark_partition() -> int:
    """The number of the partition that this worker is at."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def mixed(subtopology: Ints, partition: Ints) -> Ints:
    """A well mixed 64-bit number for each task (splitmix64)."""
    x = ((subtopology << 32) ^ partition).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).view(np.int64)


@dataclass(slots=True, kw_only=True, eq=False)
class Chunk:
    """The scratchpad of a pass over one chunk."""

    known: Known
    number: int
    mark: int = 0
    rows: int = 0
    actives: Dealer | None = None
    copies: tuple[Dealer, ...] = ()

    @classmethod
    def of(cls, known: Known, number: int) -> "Chunk":
        """A chunk at its start."""
        plans = known.plans
        actives = None if plans.actives is None else Dealer.of(plans.actives, number)
        copies = tuple(Dealer.of(layer, number) for layer in plans.copies or ())
        return cls(known=known, number=number, actives=actives, copies=copies)

    def read(self, batch: pa.RecordBatch) -> Rows:
        """The rows of a batch, counted."""
        rows = rows_of(batch, self.known.reading, self.known.group.names)
        places = np.arange(self.rows + 1, self.rows + 1 + len(batch), dtype=np.int64)
        with np.errstate(over="ignore"):
            own = int((mixed(rows.subtopology, rows.partition) * places).sum())
        self.mark = (self.mark + own) & (2**63 - 1)
        self.rows += len(batch)
        return rows

    def start(self, rows: Rows) -> tuple[Belonging, Copies]:
        """Where tasks belong, and their standbys if none moves."""
        group = self.known.group
        where = belonging(rows, group)
        taking = self.known.plans.taking
        if taking is not None:
            where = taken_up(rows, where, taking)
        copies = copies_of(rows, group, self.known.pools, where.at)
        level = levels_of(rows, group, where, copies)
        return replace(where, level=np.where(where.level == PREFERRED, PREFERRED, level)), copies

    def move(self, rows: Rows, where: Belonging, copies: Copies) -> tuple[Ints, Copies]:
        """Where active tasks go by the plan, and the standbys that stay then."""
        if self.actives is None:
            return where.at, copies
        at = self.actives.stays(where.level, where.pool, where.at)
        movers = np.flatnonzero(at == NOBODY)
        if not len(movers):
            return at, copies
        target = at.copy()
        target[movers], _ = self.actives.deal(where.pool[movers])
        group, pools = self.known.group, self.known.pools
        if not group.standbys:
            return target, copies
        some = copies_of(chosen(rows, movers), group, pools, target[movers])
        return target, _merged(copies, some, movers)

    def fill(self, rows: Rows, target: Ints, copies: Copies) -> Ints:
        """All standbys, int [B, N]."""
        if not self.copies:
            return copies.kept
        group, pools, kind = self.known.group, self.known.pools, self.kinds(rows)
        return deal_standbys(copies, group, pools, self.copies, kind=kind, active=target)

    def kinds(self, rows: Rows) -> Ints:
        """Int [B]: classes of the changelogs, where they matter."""
        if self.known.pools.classes == 1:
            return np.zeros(len(rows.owner), dtype=np.int64)
        return self.known.group.changelogs.find(rows.changelog_class)

    def finish(self) -> None:
        """Check that the rows were those of the first pass.

        Raises:
            RuntimeError: they were not.
        """
        marks = self.known.plans.marks
        if marks is not None and marks.get(self.number) != self.mark:
            raise RuntimeError(
                f"chunk {self.number} of the tasks has other rows, or another order, than when it "
                "was counted; write the table to Parquet first and give that"
            )


def chosen(rows: Rows, index: Ints) -> Rows:
    """Some of the rows."""
    return Rows(**{field.name: getattr(rows, field.name)[index] for field in fields(Rows)})


def _merged(copies: Copies, some: Copies, index: Ints) -> Copies:
    merged = {}
    for field in fields(Copies):
        column = getattr(copies, field.name).copy()
        column[index] = getattr(some, field.name)
        merged[field.name] = column
    return Copies(**merged)


@dataclass(slots=True, kw_only=True, eq=False)
class _Counters:
    """What a counting pass adds up; `free` and `lacking` by pool."""

    cells: Tally
    offered: Tally
    free: Ints
    lacking: Ints
    held: Ints
    asked: Ints
    warming: Ints
    tasks: dict[int, tuple[int, int, int]]
    wrong: int = 0
    unsure: int = 0
    first: int = 2**62

    @classmethod
    def of(cls, known: Known) -> "_Counters":
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
            tasks={},
        )

    def see(self, rows: Rows) -> None:
        """Add what tells whether a task is there twice, and what is wrong."""
        self.wrong += int(rows.is_wrong.sum())
        mix = mixed(rows.subtopology, rows.partition)
        names, place = np.unique(rows.subtopology, return_inverse=True)
        for number, name in enumerate(names.tolist()):
            if name < 0:
                continue
            mine = place.reshape(-1) == number
            count, most, total = self.tasks.get(name, (0, -1, 0))
            with np.errstate(over="ignore"):
                total = (total + int(mix[mine].sum())) & (2**64 - 1)
            most = max(0, most, int(rows.partition[mine].max()))
            self.tasks[name] = (count + int(mine.sum()), most, total)
        code = (rows.subtopology << 31) + rows.partition
        self.first = min(self.first, int(code.min(initial=2**62)))

    def add_actives(self, where: Belonging, clients: int, pools: int) -> None:
        """Count where active tasks belong."""
        has = where.at != NOBODY
        keys = keys_of(where.level, where.pool, where.at, clients=clients, pools=pools)
        self.cells.add(keys[has])
        self.free += np.bincount(where.pool[~has], minlength=pools)
        self.warming += np.bincount(where.home[where.warms_up], minlength=clients)

    def add_copies(self, chunk: Chunk, rows: Rows, copies: Copies) -> None:
        """Count standbys that stay, may be given up, or are lacking."""
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

    def batch(self, chunk: Chunk) -> pa.RecordBatch:
        """The one row that the pass answers."""
        keys, counts = self.cells.result()
        copy_keys, copy_counts = self.offered.result()
        tasks = np.array(
            [[name, *numbers] for name, numbers in sorted(self.tasks.items())], dtype=np.uint64
        )
        numbers = [chunk.number, self.wrong, self.unsure, self.first, chunk.rows, chunk.mark]
        columns = [keys, counts, self.free, copy_keys, copy_counts, self.lacking, self.held]
        blobs = [
            packed(tasks.reshape(-1).view(np.int64)),
            *map(packed, [*columns, self.asked, self.warming]),
        ]
        row = [[value] for value in (*numbers, *blobs)]
        return pa.RecordBatch.from_pydict(
            dict(zip(COUNTED.names, row, strict=True)), schema=COUNTED
        )


def counting(known: Broadcast[Known], chunk_number: ChunkNumber = spark_partition) -> Pass:
    """A pass that counts what the next decision needs: actives, standbys, or warm-ups."""

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        chunk = Chunk.of(known.value, chunk_number())
        counters = _Counters.of(known.value)
        group, plans = known.value.group, known.value.plans
        for batch in filter(len, batches):
            rows = chunk.read(batch)
            if plans.actives is None:
                counters.see(rows)
                if rows.is_wrong.any():
                    continue
            where, copies = chunk.start(rows)
            if plans.actives is None:
                counters.add_actives(where, len(group.clients), 2 * group.pools)
                lost = (where.at == NOBODY) & rows.stateful & (rows.copy_client != NOBODY).any(1)
                counters.unsure += int(lost.sum())
            target, copies = chunk.move(rows, where, copies)
            if group.standbys and plans.copies is None:
                counters.add_copies(chunk, rows, copies)
            if plans.copies is not None and plans.load is not None:
                placed = chunk.fill(rows, target, copies)
                now = settled(
                    rows,
                    group,
                    home=where.home,
                    target=target,
                    standbys=placed,
                    load=plans.load,
                )
                counters.asked[:KINDS] += np.bincount(
                    now.kind[now.asked != NOBODY], minlength=KINDS
                )
                counters.asked[KINDS] += now.is_followed
        chunk.finish()
        yield counters.batch(chunk)

    return count


def placing(known: Broadcast[Known], chunk_number: ChunkNumber = spark_partition) -> Pass:
    """The last pass: a row for every copy of every task."""

    def place(batches: Batches) -> Iterator[pa.RecordBatch]:
        chunk = Chunk.of(known.value, chunk_number())
        group, plans = known.value.group, known.value.plans
        names = pa.array(group.clients, pa.string())
        seen = np.zeros(KINDS, dtype=np.int64)
        for batch in filter(len, batches):
            rows = chunk.read(batch)
            where, copies = chunk.start(rows)
            target, copies = chunk.move(rows, where, copies)
            placed = chunk.fill(rows, target, copies)
            warm = placed[:, :0]
            if plans.grants is not None and plans.load is not None:
                now = settled(
                    rows,
                    group,
                    home=where.home,
                    target=target,
                    standbys=placed,
                    load=plans.load,
                )
                target, placed = now.active, now.placed
                warm = granted(now, plans.grants[chunk.number], seen)
            yield answer(rows, group, names, active=target, placed=placed, warm=warm)
        chunk.finish()

    return place
