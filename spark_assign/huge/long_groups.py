"""Groups whose lines are too long to be rows: found by their bytes, and read in pieces.

A row goes through the memory of the JVM several times, so a line of some hundred megabytes would
end it. The driver looks for such lines without reading the others.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from encoding import shown
from spark_assign.huge.group_rows import OneGroup, one_group
from spark_assign.huge.lines.pieces import LongLine, long_line_rows, set_piece_batches
from spark_assign.tables import BadTable, Files, Groups, Reject, SkippedLine, file_of, step
from spark_assign.workers import set_whole_files

LINE_LIMIT = 8 << 20
"""Lines of so many bytes and more are not read as rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongGroup:
    """A group whose line is no row.

    Attributes:
        line: the line.
        rows: its tasks and clients (`pieces.ROW`), stored.
        config: its settings as texts.
        warnings: what was ignored in it.
        reject: why it cannot be placed, or None.
    """

    line: SkippedLine
    rows: DataFrame
    config: Mapping[str, str]
    warnings: tuple[str, ...]
    reject: Reject | None

    def as_one(self, settings: tuple[tuple[str, object], ...]) -> OneGroup:
        """The group as rows; settings override its own.

        Raises:
            ConfigError: a setting is invalid.
        """
        return one_group(
            self.line.name,
            self.rows.where("task is not null").select("task.*"),
            self.rows.where("client is not null").select("client.*"),
            self.config,
            settings,
        )


def groups_of_long_lines(groups: Groups, *, command: str) -> Iterator[LongGroup]:
    """Find and read the groups of lines that are no rows of an input; none if each line is one.

    Each takes memory of one worker, a few times its size. Afterwards, Spark reads each file of an
    input that has such lines as a whole.

    Args:
        groups: the input.
        command: which reads them.
    """
    spark = groups.frame.sparkSession
    if groups.line_limit is None or groups.sizes is None:
        return
    lines = tuple(long_lines(Files(spark, groups.path), groups.sizes, groups.line_limit))
    if lines:
        set_whole_files(spark, max(groups.sizes.values()))
    for line in lines:
        file = file_of(line.path)
        with step(spark, f"{command}: read a line of {line.size >> 20} MB of {shown(file)}"):
            yield _read(spark, line, file)


def long_lines(files: Files, sizes: Mapping[str, int], limit: int) -> Iterator[LongLine]:
    """Find the lines of at least `limit` bytes, with their line breaks, by file and position.

    A line of so many bytes fills a block of half as many without a line break. So of every such
    block only the first line break is looked for.

    Args:
        files: the file system.
        sizes: bytes of the files, by path.
        limit: bytes.
    """
    block = max(1, limit // 2)
    for path, size in sorted(sizes.items()):
        if size < limit:
            continue
        # Spark leaves it out, and it counts for no limit.
        mark = len(BOM_UTF8) if files.head(path, len(BOM_UTF8)) == BOM_UTF8 else 0
        lines, at, index = files.lines_of(path), 0, 0
        try:
            while at < size:
                if lines.end(at, block) - at < block:
                    at += block
                    continue
                start = lines.start(at)
                end = lines.end(start)
                length = end - start - (0 if start else mark)
                if length >= limit:
                    yield LongLine(path=path, index=index, size=length, limit=limit)
                    index += 1
                at = max(end, at + block)
        finally:
            lines.close()


def _read(spark: SparkSession, line: LongLine, file: str) -> LongGroup:
    set_piece_batches(spark)
    rows = long_line_rows(spark, line).persist(StorageLevel.DISK_ONLY)
    heads = rows.where("head is not null").select("head.*").collect()
    if len(heads) != 1:
        raise BadTable(f"{shown(file)} has changed while it was read; run the command again")
    head = heads[0]
    name = head.name or ""
    skipped = SkippedLine(name=name, file=file, line=head.line, before=head.before)
    reject = None
    if head.reason is not None:
        reject = Reject(
            name=name,
            column=head.column,
            value=head.value,
            reason=head.reason,
            place=skipped.place,
        )
    return LongGroup(
        line=skipped,
        rows=rows,
        config=head.config or {},
        warnings=tuple(head.warnings or ()),
        reject=reject,
    )
