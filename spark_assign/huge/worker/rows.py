"""Task rows of a huge group as columns of integers, in Spark and in its Python workers.

Python gets hashes instead of texts: Spark hashes client ids and rack lists to 64 bits. The driver
knows all names and rejects a group in which two names share a hash. The copies of a batch are a
matrix, as wide as the task with most copies. It is stored column by column, because numpy is slow
along short rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, StructType

from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, NOBODY

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Spark's xxhash64 of null is its seed.
NULL_HASH = 42
_UNKNOWN = -2
# Columns and reasons of invalid rows; `wrong_column` numbers them from 1.
REASONS = (
    ("subtopology", "is null"),
    ("partition", "is null"),
    ("stateful", "is null"),
    ("subtopology", "is below 0"),
    ("partition", "is below 0"),
    ("end_offset_sum", "is below 0"),
    ("end_offset_sum", "is 2^63 - 1; leave it null if it is not known"),
    ("weight", "is not 1: weights need the plan of one machine (`assignor assign`)"),
    ("copies", "has a copy without a client"),
    ("copies", "has a lag below -1"),
)
_HASHES, _LAGS, _STALLED = "copy{}", "lag{}", "stalled{}"
# Bits of `flags`: number of a reason, then whether the task is stateful, then number of copies.
_REASON_BITS = 4
_SIZE_SHIFT = _REASON_BITS + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Which columns a pass needs.

    Attributes:
        width: copies with columns of their own; a longer list is passed as a list too.
        with_stalled: whether to read stalled copies.
        with_racks: whether to read racks.
    """

    width: int
    with_stalled: bool
    with_racks: bool


def wrong_column(*, in_full: bool = True) -> Column:
    """The number of the first of `REASONS` that applies to a row, from 1; 0 for a valid row.

    Args:
        in_full: check the lists of copies too, which is slow; workers find these errors anyway.
    """
    copies = sql.col("copies")
    checks = [
        sql.col("subtopology").isNull(),
        sql.col("partition").isNull(),
        sql.col("stateful").isNull(),
        sql.col("subtopology") < 0,
        sql.col("partition") < 0,
        sql.col("end_offset_sum") < 0,
        sql.col("end_offset_sum") == LAG_UNKNOWN,
        sql.col("weight") != 1,
    ]
    if in_full:
        checks.append(sql.exists(copies, lambda copy: copy.isNull() | copy.client.isNull()))
        checks.append(sql.exists(copies, lambda copy: copy.lag < LAG_RUNNING))
    chosen = sql.when(checks[0], 1)
    for number, check in enumerate(checks[1:], start=2):
        chosen = chosen.when(check, number)
    return chosen.otherwise(0)


def reduced(tasks: DataFrame, reading: Reading) -> DataFrame:
    """The columns that Python workers get: numbers only, and flat if a task has few copies.

    Without lambdas over lists: a single one keeps Spark from compiling all columns.

    Args:
        tasks: in the schema `schemas.TASK`; structs of `copies` may be as they are stored.
        reading: which columns.
    """
    copies = sql.col("copies")
    part = [sql.get(copies, sql.lit(i)) for i in range(reading.width)]
    size = sql.greatest(sql.coalesce(sql.size(copies), sql.lit(0)), sql.lit(0))
    stateful = sql.coalesce("stateful", sql.lit(False)).cast("int")  # noqa: FBT003 a literal
    flags = wrong_column(in_full=False).bitwiseOR(sql.shiftleft(stateful, _REASON_BITS))
    columns = [
        flags.bitwiseOR(sql.shiftleft(size, _SIZE_SHIFT)).alias("flags"),
        sql.coalesce("subtopology", sql.lit(-1)).alias("subtopology"),
        sql.coalesce("partition", sql.lit(-1)).alias("partition"),
        sql.xxhash64("owner").alias("owner"),
        sql.coalesce("end_offset_sum", sql.lit(LAG_UNKNOWN)).alias("end"),
        *[sql.xxhash64(c.client).alias(_HASHES.format(i)) for i, c in enumerate(part)],
        *[
            sql.coalesce(c.lag.cast("long"), sql.lit(LAG_UNKNOWN)).alias(_LAGS.format(i))
            for i, c in enumerate(part)
        ],
        # Null for nearly all rows.
        sql.when(sql.size(copies) > reading.width, copies).alias("more"),
    ]
    if reading.with_stalled and _knows_stalled(tasks):
        columns += [
            sql.coalesce(c.stalled, sql.lit(False)).alias(_STALLED.format(i))  # noqa: FBT003 as above
            for i, c in enumerate(part)
        ]
    if reading.with_racks:
        columns.append(sql.xxhash64("partition_racks").alias("source_racks"))
        columns.append(sql.xxhash64("changelog_racks").alias("changelog_racks"))
    return tasks.select(*columns)


def _knows_stalled(tasks: DataFrame) -> bool:
    copies = tasks.schema["copies"].dataType
    element = copies.elementType if isinstance(copies, ArrayType) else copies
    return isinstance(element, StructType) and "stalled" in element.names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """A hash table from names to numbers.

    Attributes:
        hashes: int [N + 1], by number; the last is the hash of null.
        slot: int [2^k], number at hash & (2^k - 1), or N if the slot is empty.
        order: int [N + 1], numbers by ascending hash, for names whose slot another name has.
    """

    hashes: Ints
    slot: npt.NDArray[np.int32]
    order: Ints

    @classmethod
    def of(cls, hashes: Sequence[int]) -> "Names":
        """The table of these hashes, sparse enough that few names share a slot."""
        column = np.array(hashes, dtype=np.int64)
        size = 1 << max(8, (16 * len(column)).bit_length())
        slot = np.full(size, len(column), dtype=np.int32)
        slot[column & (size - 1)] = np.arange(len(column))
        known = np.append(column, NULL_HASH)
        return cls(hashes=known, slot=slot, order=np.argsort(known))

    def find(self, hashes: Ints) -> Ints:
        """Int, as `hashes`: the numbers; NOBODY for null, -2 for an unknown name."""
        found = self.slot[hashes & (len(self.slot) - 1)].astype(np.int64)
        missed = np.flatnonzero(self.hashes[found] != hashes)
        if len(missed):
            wanted = hashes[missed]
            place = np.searchsorted(self.hashes, wanted, sorter=self.order)
            number = self.order[np.minimum(place, len(self.order) - 1)]
            found[missed] = np.where(self.hashes[number] == wanted, number, _UNKNOWN)
        return np.where(found == len(self.hashes) - 1, NOBODY, found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Tasks of a batch.

    Attributes:
        subtopology, partition: int [B].
        stateful: bool [B].
        owner: int [B], the client that runs the task, or NOBODY.
        ends: int [B], end offset sums.
        copy_client: int [B, W], NOBODY after the last copy.
        copy_lag: int [B, W].
        copy_stalled: bool [B, W].
        source_class, changelog_class: int [B], first hashes of the racks, then numbers of their
            classes; zeros if not read.
        is_wrong: bool [B], invalid rows.
    """

    subtopology: Ints
    partition: Ints
    stateful: Bools
    owner: Ints
    ends: Ints
    copy_client: Ints
    copy_lag: Ints
    copy_stalled: Bools
    source_class: Ints
    changelog_class: Ints
    is_wrong: Bools

    def part(self, index: Ints) -> "Rows":
        """The rows with these indices."""
        return Rows(**{field.name: getattr(self, field.name)[index] for field in fields(Rows)})


def rows_of(batch: pa.RecordBatch, reading: Reading, names: Names, clients: Sequence[str]) -> Rows:
    """The columns of `reduced` with clients as numbers; -2 is a client that is not in the group.

    Args:
        batch: one row at least.
        reading: as for `reduced`.
        names: finds clients by the hashes of their ids.
        clients: their ids, by number.
    """
    column = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}

    def number(name: str) -> Ints:
        found: Ints = column[name].to_numpy().astype(np.int64, copy=False)
        return found

    flags = number("flags")
    copies = flags >> _SIZE_SHIFT
    size, width = len(batch), max(1, min(reading.width, int(copies.max())))
    client, lag = (np.empty((size, width), dtype=np.int64, order="F") for _ in range(2))
    stalled = np.zeros((size, width), dtype=np.bool_, order="F")
    for i in range(width):
        client[:, i] = names.find(number(_HASHES.format(i)))
        lag[:, i] = number(_LAGS.format(i))
        if (name := _STALLED.format(i)) in column:
            stalled[:, i] = column[name].to_numpy(zero_copy_only=False)
    if column["more"].null_count < size:
        client, lag, stalled = _widened(column["more"], client, lag, stalled, clients)
    nothing = np.zeros(size, dtype=np.int64)
    owner = names.find(number("owner"))
    is_wrong = (flags & ((1 << _REASON_BITS) - 1) != 0) | (owner == _UNKNOWN)
    is_wrong |= ((client != NOBODY).sum(axis=1) != copies) | (client == _UNKNOWN).any(axis=1)
    is_wrong |= (lag < LAG_RUNNING).any(axis=1)
    return Rows(
        subtopology=number("subtopology"),
        partition=number("partition"),
        stateful=flags >> _REASON_BITS & 1 == 1,
        owner=owner,
        ends=number("end"),
        copy_client=client,
        copy_lag=lag,
        copy_stalled=stalled,
        source_class=number("source_racks") if reading.with_racks else nothing,
        changelog_class=number("changelog_racks") if reading.with_racks else nothing,
        is_wrong=is_wrong,
    )


def _widened(
    more: pa.ListArray, client: Ints, lag: Ints, stalled: Bools, clients: Sequence[str]
) -> tuple[Ints, Ints, Bools]:
    """The matrices, widened for rows whose copies are passed as a list, with texts."""
    counts = np.nan_to_num(more.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
    shape = (len(counts), int(counts.max()))
    wide_client = np.full(shape, NOBODY, dtype=np.int64, order="F")
    wide_lag = np.full(shape, LAG_UNKNOWN, dtype=np.int64, order="F")
    wide_stalled = np.zeros(shape, dtype=np.bool_, order="F")
    wide_client[:, : client.shape[1]] = client
    wide_lag[:, : lag.shape[1]] = lag
    wide_stalled[:, : stalled.shape[1]] = stalled
    flat = more.flatten()
    part = dict(zip(flat.type.names, flat.flatten(), strict=True))
    row = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = pc.index_in(part["client"], pa.array(clients, pa.string())).fill_null(_UNKNOWN)
    is_null = part["client"].is_null().to_numpy(zero_copy_only=False)
    wide_client[row, place] = np.where(is_null, NOBODY, found.to_numpy())
    wide_lag[row, place] = part["lag"].cast(pa.int64()).fill_null(LAG_UNKNOWN).to_numpy()
    if "stalled" in part:
        known = part["stalled"].cast(pa.bool_()).fill_null(False)  # noqa: FBT003 has no name
        wide_stalled[row, place] = known.to_numpy(zero_copy_only=False)
    return wide_client, wide_lag, wide_stalled
