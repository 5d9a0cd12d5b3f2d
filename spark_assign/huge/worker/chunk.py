"""One chunk of a huge group in a pass: read or unpack its rows, and apply the plans to them.

The first pass reads the table and packs its rows; the other passes read packed rows. A checksum
verifies that all passes see the same rows: Spark computes lost rows again, and ranks depend on the
order of rows.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from assignor.placement import NOBODY
from spark_assign.huge.group import Group
from spark_assign.huge.worker.actives import PREFERRED, Belonging, Taking, belonging, taken_up
from spark_assign.huge.worker.dealing import Dealer, Dealing
from spark_assign.huge.worker.packed import packed_rows, unpacked_rows
from spark_assign.huge.worker.rows import Ints, Reading, Rows, rows_of
from spark_assign.huge.worker.standbys import Copies, Pools, copies_of, deal_standbys, levels_of

Batches = Iterable[pa.RecordBatch]

_NUMBERS = ("wrong", "unsure", "first", "rows", "mark")
_BLOBS = ("tasks", "cells", "counts", "free")
_COPY_BLOBS = ("copies", "copy_counts", "lacking", "held", "asked", "warming", "running")
COUNTED = pa.schema(
    {"chunk": pa.int32()}
    | dict.fromkeys(_NUMBERS, pa.int64())
    | dict.fromkeys((*_BLOBS, *_COPY_BLOBS), pa.binary())
)
# Batches of packed rows; after the last one of a chunk, a row with counts and no data.
PACKED = COUNTED.append(pa.field("data", pa.binary()))
# Columns of `PACKED` that the later passes read.
STORED = ("chunk", "mark", "data")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plans:
    """The decisions so far; None where a decision is still to be made.

    Attributes:
        actives: where active tasks go.
        copies: where standbys go, a layer for each copy that a task may lack.
        grants: warm-ups that each chunk may place, by chunk and kind.
        load: int [C], active tasks of each client.
        taking: clients that take over tasks which warm up on them.
        marks: checksum of the rows of each chunk, in their order.
    """

    actives: Dealing | None = None
    copies: tuple[Dealing, ...] | None = None
    grants: Mapping[int, Ints] | None = None
    load: Ints | None = None
    taking: Taking | None = None
    marks: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """The data that is broadcast to all workers."""

    group: Group
    pools: Pools
    reading: Reading
    plans: Plans


class Stored(NamedTuple):
    """A row of `STORED`; the last one of a chunk has no data."""

    chunk: int
    mark: int | None
    data: memoryview | None


def stored(batches: Batches) -> Iterator[Stored]:
    """The rows of batches with the columns `STORED`, in order."""
    for batch in batches:
        chunks, marks, data = batch.columns
        for chunk, mark, value in zip(chunks.to_pylist(), marks.to_pylist(), data, strict=True):
            buffer = value.as_buffer()
            yield Stored(chunk, mark, None if buffer is None else memoryview(buffer))


@dataclass(slots=True, kw_only=True, eq=False)
class Chunk:
    """The state of a pass over one chunk; changes with every batch."""

    known: Known
    number: int
    mark: int = 0
    rows: int = 0
    actives: Dealer | None = None
    copies: tuple[Dealer, ...] = ()

    @classmethod
    def of(cls, known: Known, number: int) -> "Chunk":
        """A chunk before its first row."""
        plans = known.plans
        actives = None if plans.actives is None else Dealer.of(plans.actives, number)
        copies = tuple(Dealer.of(layer, number) for layer in plans.copies or ())
        return cls(known=known, number=number, actives=actives, copies=copies)

    def read(self, batch: pa.RecordBatch) -> Rows:
        """The rows of a batch of the table."""
        group, reading = self.known.group, self.known.reading
        rows = rows_of(batch, reading, group.names, group.clients)
        if not reading.with_racks:
            return rows
        return replace(
            rows,
            source_class=group.sources.find(rows.source_class),
            changelog_class=group.changelogs.find(rows.changelog_class),
        )

    def pack(self, rows: Rows) -> pa.RecordBatch:
        """A batch in the schema `PACKED`."""
        data = packed_rows(rows)
        self.mark = zlib.crc32(data, self.mark)
        self.rows += len(rows.owner)
        row = dict.fromkeys(PACKED.names) | {"chunk": self.number, "data": data}
        return pa.RecordBatch.from_pylist([row], schema=PACKED)

    def unpacked(self, lines: Iterable[Stored]) -> Iterator[Rows]:
        """The packed rows.

        Raises:
            RuntimeError: the rows are not those that were counted.
        """
        marks = self.known.plans.marks
        for line in lines:
            if line.data is not None:
                rows = unpacked_rows(line.data)
                self.rows += len(rows.owner)
                yield rows
                continue
            self.mark = line.mark or 0
            if marks is not None and marks.get(self.number) != self.mark:
                raise RuntimeError(
                    f"chunk {self.number} of the tasks has other rows, or another order, than when "
                    "it was counted; write the table to Parquet and pass that table"
                )

    def start(self, rows: Rows) -> tuple[Belonging, Copies]:
        """Where tasks belong, and which standbys stay if no task moves."""
        group = self.known.group
        where = belonging(rows, group)
        taking = self.known.plans.taking
        if taking is not None:
            where = taken_up(rows, where, taking)
        copies = copies_of(rows, group, self.known.pools, where.at)
        level = levels_of(rows, group, where, copies)
        return replace(where, level=np.where(where.level == PREFERRED, PREFERRED, level)), copies

    def move(self, rows: Rows, where: Belonging, copies: Copies) -> tuple[Ints, Copies]:
        """Clients of the active tasks by the plan, and the standbys that stay with them."""
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
        some = copies_of(rows.part(movers), group, pools, target[movers])
        return target, _merged(copies, some, movers)

    def fill(self, rows: Rows, target: Ints, copies: Copies) -> Ints:
        """Int [B, N]: all standbys, existing and new."""
        if not self.copies:
            return copies.kept
        group, pools, kind = self.known.group, self.known.pools, self.kinds(rows)
        return deal_standbys(copies, group, pools, self.copies, kind=kind, active=target)

    def kinds(self, rows: Rows) -> Ints:
        """Int [B]: classes of the changelogs; zeros without rack costs."""
        if self.known.pools.classes == 1:
            return np.zeros(len(rows.owner), dtype=np.int64)
        return rows.changelog_class


def _merged(copies: Copies, some: Copies, index: Ints) -> Copies:
    merged = {}
    for field in fields(Copies):
        column = getattr(copies, field.name).copy()
        column[index] = getattr(some, field.name)
        merged[field.name] = column
    return Copies(**merged)
