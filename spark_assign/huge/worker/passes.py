"""Passes over the rows of a huge group: pack, count, place.

A pass reads every chunk once, in the order of its rows, and keeps counters only. Each pass applies
all earlier decisions again.
"""

from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, TaskContext

from spark_assign.huge.worker.answer import answer
from spark_assign.huge.worker.chunk import PACKED, Batches, Chunk, Known, stored
from spark_assign.huge.worker.counts import Counters
from spark_assign.huge.worker.rows import Rows
from spark_assign.huge.worker.settle import KINDS, granted, settled

Pass = Callable[[Batches], Iterator[pa.RecordBatch]]
ChunkNumber = Callable[[], int]


def spark_partition() -> int:
    """The number of the partition that this worker processes."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def packing(known: Broadcast[Known], chunk_number: ChunkNumber = spark_partition) -> Pass:
    """The first pass: packs the rows, and counts where active tasks belong."""

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        chunk = Chunk.of(known.value, chunk_number())
        counters = Counters.of(known.value)
        for batch in filter(len, batches):
            rows = chunk.read(batch)
            counters.see(rows)
            if rows.is_wrong.any():
                continue
            yield chunk.pack(rows)
            counters.add(chunk, rows)
        counts = counters.batch(chunk)
        yield pa.RecordBatch.from_arrays([*counts.columns, pa.nulls(1, pa.binary())], schema=PACKED)

    return pack


def counting(known: Broadcast[Known]) -> Pass:
    """A pass over packed rows that counts what the next decision needs."""

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for chunk, rows in _opened(known.value, batches):
            counters = Counters.of(known.value)
            for part in rows:
                counters.add(chunk, part)
            yield counters.batch(chunk)

    return count


def placing(known: Broadcast[Known]) -> Pass:
    """The last pass: a row for every copy of every task."""

    def place(batches: Batches) -> Iterator[pa.RecordBatch]:
        group, plans = known.value.group, known.value.plans
        names = pa.array(group.clients, pa.string())
        for chunk, parts in _opened(known.value, batches):
            seen = np.zeros(KINDS, dtype=np.int64)
            for rows in parts:
                where, copies = chunk.start(rows)
                target, copies = chunk.move(rows, where, copies)
                placed = chunk.fill(rows, target, copies)
                belongs = target, placed
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
                yield answer(
                    rows,
                    group,
                    names,
                    active=target,
                    placed=placed,
                    warm=warm,
                    settled=belongs,
                )

    return place


def _opened(known: Known, batches: Batches) -> Iterator[tuple[Chunk, Iterator[Rows]]]:
    """The chunk of packed rows and its rows; yields nothing without rows."""
    lines = stored(batches)
    for first in lines:
        chunk = Chunk.of(known, first.chunk)
        yield chunk, chunk.unpacked(chain([first], lines))
