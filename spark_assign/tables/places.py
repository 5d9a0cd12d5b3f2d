"""Where a group stands in its input, as file and row or file and line, for those who must mend it.

Every row carries a few numbers from where it is read. What they mean is worked out only when there
is something to say: a text file is read in blocks, so its lines before a block are counted then.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

PLACE = "_place"
PLACE_TYPE = StructType(
    [
        StructField("file", StringType()),
        # Of the block that a line is in; null for rows of a table.
        StructField("start", LongType()),
        StructField("number", LongType()),
    ]
)


def with_rows(frame: DataFrame) -> DataFrame:
    """A table just read from Parquet, with the file and row of each row."""
    return _with(frame, f.lit(None).cast("long"), f.col("_metadata.row_index"))


def with_lines(frame: DataFrame) -> DataFrame:
    """Lines just read from text, with the block of each and a number that counts on in it."""
    return _with(frame, f.col("_metadata.file_block_start"), f.monotonically_increasing_id())


def _with(frame: DataFrame, start: Column, number: Column) -> DataFrame:
    file = f.regexp_replace("_metadata.file_path", "^file:/+", "/")
    place = f.struct(file.alias("file"), start.alias("start"), number.alias("number"))
    return frame.select("*", place.cast(PLACE_TYPE).alias(PLACE))


def said(rows: DataFrame, source: DataFrame) -> DataFrame:
    """Rows with a column `place` instead of `_place`: "FILE, row 3" or "FILE, line 3".

    Args:
        rows: any with a column `_place`, null where nothing is known.
        source: the whole input, as it was read.
    """
    if PLACE not in source.columns:
        return rows.withColumn("place", f.lit(None).cast("string")).drop(PLACE)
    before = Window.partitionBy("file").orderBy("start").rowsBetween(Window.unboundedPreceding, -1)
    blocks = (
        source.where(f.col(f"{PLACE}.start").isNotNull())
        .select(f"{PLACE}.*")
        .groupBy("file", "start")
        .agg(f.count("*").alias("_lines"), f.min("number").alias("_first"))
        .withColumn("_before", f.coalesce(f.sum("_lines").over(before), f.lit(0)))
        .select(f.struct("file", "start").alias("_block"), "_first", "_before")
    )
    mine = f.struct(f.col(f"{PLACE}.file").alias("file"), f.col(f"{PLACE}.start").alias("start"))
    joined = rows.join(f.broadcast(blocks), mine == f.col("_block"), "left")
    number = f.col(f"{PLACE}.number")
    line = f.concat(f.lit(", line "), f.col("_before") + number - f.col("_first") + 1)
    row = f.concat(f.lit(", row "), number + 1)
    where = f.concat(f.col(f"{PLACE}.file"), f.coalesce(line, row))
    return joined.withColumn("place", where).drop("_block", "_first", "_before", PLACE)
