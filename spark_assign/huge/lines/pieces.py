"""Read a line that is too long to be a row: in pieces, by one worker, into rows of its tasks.

Spark gets the file as pieces between commas, so the JVM never holds more than a piece. The worker
that reads the file joins the pieces of the wanted line, and drops the others.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from assignor.problems import line_text
from spark_assign.huge.lines.problem import read_long_problem
from spark_assign.huge.lines.rows import client_array, task_batches
from spark_assign.tables import CLIENT, TASK, Reject, guarded, literal_path

Batches = Iterable[pa.RecordBatch]
SEPARATOR = ","
# Pieces that a worker gets at a time; a piece has some bytes.
PIECES = 1 << 16
# What is read of a line that is rejected.
_SHOWN = 80
HEAD = StructType(
    [
        StructField("name", StringType()),
        StructField("config", MapType(StringType(), StringType())),
        StructField("warnings", ArrayType(StringType())),
        # Numbers of the line in its file, from 1, and of the shorter lines before it.
        StructField("line", LongType()),
        StructField("before", LongType()),
        # Why the group is rejected, or null.
        StructField("column", StringType()),
        StructField("value", StringType()),
        StructField("reason", StringType()),
    ]
)
ROW = StructType(
    [StructField("head", HEAD), StructField("task", TASK), StructField("client", CLIENT)]
)
_ARROW = to_arrow_schema(ROW)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLine:
    """A line too long to be a row.

    Attributes:
        path: of the file.
        index: among the long lines of the file, from 0.
        size: bytes, with the line break, without a byte order mark.
        limit: lines of fewer bytes are rows.
    """

    path: str
    index: int
    size: int
    limit: int


def set_piece_batches(spark: SparkSession) -> None:
    """Let workers get many pieces at a time; the caller restores the settings."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(PIECES))
    # With a limit Spark computes the size of a batch again for each piece.
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))


def long_line_rows(spark: SparkSession, line: LongLine) -> DataFrame:
    """The group of a line in the schema `ROW`: one row is its head, one for each task and client.

    Of a rejected group there is the head only. The file must be read by one Spark task.
    """
    pieces = spark.read.option("lineSep", SEPARATOR).text(literal_path(line.path))

    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        found = _found(_chunks(batches), line)
        if found is not None:
            yield from _rows(*found)

    return pieces.mapInArrow(read, ROW)


def _chunks(batches: Batches) -> Iterator[bytes]:
    """The text of a file, from its pieces."""
    is_first = True
    for batch in batches:
        pieces = batch.column(0).cast(pa.binary())
        lists = pa.LargeListArray.from_arrays([0, len(pieces)], pieces)
        [chunk] = pc.binary_join(lists, SEPARATOR.encode()).to_pylist()
        yield chunk if is_first else SEPARATOR.encode() + chunk
        is_first = False


def _found(chunks: Iterable[bytes], line: LongLine) -> tuple[bytes, int, int] | None:
    """The wanted line, its number from 1, and the number of shorter lines before it."""
    parts: list[bytes] = []
    size = number = longer = 0
    for chunk in chunks:
        ends = chunk.split(b"\n")
        for place, part in enumerate(ends):
            parts.append(part)
            size += len(part)
            if place == len(ends) - 1:
                break
            number += 1
            if size + 1 >= line.limit:
                if longer == line.index:
                    return b"".join(parts), number, number - 1 - longer
                longer += 1
            parts, size = [], 0
    # Without a line break at its end; Spark leaves a separator there out.
    if longer == line.index and line.size - size in (0, len(SEPARATOR)):
        last = SEPARATOR.encode() * (line.size - size)
        return b"".join(parts) + last, number + 1, number - longer
    return None


def _rows(text: bytes, number: int, before: int) -> Iterator[pa.RecordBatch]:
    """The rows of a group."""
    start = text[:_SHOWN].decode("utf-8", errors="replace")
    head = {"line": number, "before": before}
    read = guarded(
        "", lambda: read_long_problem(line_text(text)), column="value", value=f"{start}..."
    )
    if isinstance(read, Reject):
        rejected = {"column": read.column, "value": read.value, "reason": read.reason}
        yield _batch("head", pa.array([head | rejected], _ARROW.field("head").type))
        return
    known = {"name": read.name, "config": list(read.config), "warnings": list(read.warnings)}
    yield _batch("head", pa.array([head | known], _ARROW.field("head").type))
    yield _batch("client", client_array(read))
    for tasks in task_batches(read):
        yield _batch("task", tasks)


def _batch(name: str, column: pa.Array) -> pa.RecordBatch:
    """A batch of rows that have one column only."""
    columns = [
        column.cast(kind.type) if kind.name == name else pa.nulls(len(column), kind.type)
        for kind in _ARROW
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)
