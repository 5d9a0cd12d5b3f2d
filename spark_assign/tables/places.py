"""The place of a group in its input: file and row, or file and line.

Every row has a column with its position. Only for rejects the place is computed from it: Spark
reads a text file in blocks, so line numbers need the number of lines in all blocks before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_assign.tables.rejects import POSITION_TYPE

POSITION = "position"
"""The column of an input's rows that says where they were read (`rejects.Position`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedLine:
    """A line that is no row of an input, because it is too long.

    Attributes:
        name: of its group, or "".
        file: as in the position of a row.
        line: its number, from 1.
        before: number of rows before it in the file.
    """

    name: str
    file: str
    line: int
    before: int

    @property
    def place(self) -> str:
        """The place as messages name it."""
        return f"{self.file}, line {self.line}"


_LOCAL = "^file:/+"


def file_of(path: str) -> str:
    """The path of a file as messages name it.

    >>> file_of("file:/data/a.jsonl")
    '/data/a.jsonl'
    """
    return re.sub(_LOCAL, "/", path)


def with_rows(frame: DataFrame) -> DataFrame:
    """A table just read from Parquet, with the file and row of each row."""
    return _with_position(frame, f.lit(None).cast("long"), f.col("_metadata.row_index"))


def with_lines(frame: DataFrame) -> DataFrame:
    """Lines just read from text, with the block of each and a number that grows in the block."""
    block = f.col("_metadata.file_block_start")
    return _with_position(frame, block, f.monotonically_increasing_id())


def path_column() -> Column:
    """The path of each row's file, as `file_of` has it: `_metadata` has it encoded for URLs."""
    plain = f.url_decode(f.replace(f.col("_metadata.file_path"), f.lit("+"), f.lit("%2B")))
    return f.regexp_replace(plain, _LOCAL, "/")


def _with_position(frame: DataFrame, block: Column, number: Column) -> DataFrame:
    file = path_column()
    position = f.struct(file.alias("file"), block.alias("block"), number.alias("number"))
    return frame.select("*", position.cast(POSITION_TYPE).alias(POSITION))


def with_places(
    rows: DataFrame, source: DataFrame, *, is_text: bool, skipped: Sequence[SkippedLine] = ()
) -> DataFrame:
    """Rows with a column `place`, "FILE, row 3" or "FILE, line 3"; null where it is not known.

    Args:
        rows: any with a column `position`, or with a `place` where that is known.
        source: the whole input, as it was read.
        is_text: whether the input is lines of text; otherwise rows of a table.
        skipped: lines of the input that are no rows of it.
    """
    file, number = f.col(f"{POSITION}.file"), f.col(f"{POSITION}.number")
    if not is_text or POSITION not in source.columns:
        return rows.withColumn("place", f.concat(file, f.lit(", row "), number + 1))
    before = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    blocks = (
        source.select(f"{POSITION}.*")
        .groupBy("file", "block")
        .agg(f.count("*").alias("_lines"), f.min("number").alias("_first"))
        .withColumn("_before", f.coalesce(f.sum("_lines").over(before), f.lit(0)))
        .select(f.struct("file", "block").alias("_block"), "_first", "_before")
    )
    own_block = f.struct(file.alias("file"), f.col(f"{POSITION}.block").alias("block"))
    joined = rows.join(f.broadcast(blocks), own_block == f.col("_block"), "left")
    index = line = f.col("_before") + number - f.col("_first")
    for longer in skipped:
        is_before = (file == longer.file) & (index >= longer.before)
        line += f.when(is_before, 1).otherwise(0)
    place = f.concat(file, f.lit(", line "), line + 1)
    known = [f.col("place")] if "place" in rows.columns else []
    placed = joined.withColumn("place", f.coalesce(*known, place))
    return placed.drop("_block", "_first", "_before")
