"""Read groups: from Parquet, JSON lines, a state directory, a catalog, or any DataFrame.

The file names tell the format. Columns are checked before anything runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from encoding import shown
from spark_assign.tables.errors import BadTable
from spark_assign.tables.files import Files
from spark_assign.tables.places import SkippedLine, file_of, with_lines, with_rows
from spark_assign.tables.schemas import (
    ANSWER_NAMES,
    CLIENT,
    GROUP,
    TASK,
    Key,
    fitted,
    name_key,
    quoted,
)

Form = Literal["auto", "parquet", "jsonl"]
_ENDINGS = {".parquet": "parquet", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}
_PACKED = (".gz", ".bz2", ".zst", ".snappy", ".lz4")
# How files of the usual tools begin. Hadoop has formats of its own with these endings, and reads
# other bytes as sizes that no memory has.
_FRAMES = {".lz4": b"\x04\x22\x4d\x18", ".snappy": b"\xff\x06\x00\x00sNaPpY"}
# Estimate of a problem's text for each task, to distribute lines by their work.
_BYTES_PER_TASK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """A table of groups.

    Attributes:
        frame: rows in the schema `schemas.GROUP`; or lines of text in a column `value`, one problem
            each. Read from files, it has a column `position` too (`places`).
        is_text: whether the rows are lines of text.
        keep: columns of `frame` that the result has too.
        path: of the files of lines.
        sizes: bytes of the files, by path, of lines that Spark can read in parts; None for
            compressed files, for more than 5,000 files, and for tables.
        line_limit: lines of so many bytes and more are no rows; None: every line is a row.
        skipped: those lines, once they are found.
    """

    frame: DataFrame
    is_text: bool
    keep: tuple[str, ...] = ()
    path: str = ""
    sizes: Mapping[str, int] | None = None
    line_limit: int | None = None
    skipped: tuple[SkippedLine, ...] = ()

    def filled(self) -> DataFrame:
        """The rows, without blank lines."""
        return self.frame.where(f.col("value").rlike(r"\S")) if self.is_text else self.frame

    def tasks(self) -> Column:
        """The number of tasks of each group; for lines of text an estimate."""
        if self.is_text:
            return (f.length("value") / f.lit(_BYTES_PER_TASK)).cast("long")
        return f.coalesce(f.size("tasks.subtopology"), f.lit(0)).cast("long")


def read_groups(
    spark: SparkSession,
    path: str,
    *,
    form: Form = "auto",
    keep: Sequence[str] = (),
    line_limit: int | None = None,
) -> Groups:
    """The groups under a path.

    Args:
        spark: the session.
        path: a file, a directory or a glob; a directory with `tasks` and `clients` in it is a state
            directory, whose rows have a column `name` for their group.
        form: format of the files; by default their names tell.
        keep: other columns that the table has, or the directories by their names (`team=web/`).
        line_limit: leave out lines of so many bytes and more, if no file is compressed and there
            are 5,000 at most. A file with such lines must be read by one Spark task.

    Raises:
        BadTable: there is no file with rows, there are files of two formats, a link leads to no
            file, or a column is missing or of another type.
    """
    files = Files(spark, path)
    if files.exists(f"{path}/tasks") and files.exists(f"{path}/clients"):
        check_kept(StructType([]), keep, what=path, key=name_key(spark))
        return from_state(
            spark.read.parquet(f"{path}/tasks"), spark.read.parquet(f"{path}/clients"), what=path
        )
    if (form_of(spark, path) if form == "auto" else form) == "jsonl":
        return _lines(spark, path, keep=keep, line_limit=line_limit)
    if form == "parquet":
        files.data_files(path)
    table, kept = _with_kept(spark.read.parquet(path), keep, what=path)
    return Groups(frame=with_rows(table), is_text=False, keep=kept)


def _lines(
    spark: SparkSession, path: str, *, keep: Sequence[str], line_limit: int | None
) -> Groups:
    files = Files(spark, path)
    sizes = files.data_sizes(path)
    for name in sizes or ():
        _check_frame(files, name)
    # Of so many files, no line may be too long: they are not looked through.
    is_whole = sizes is None or any(name.endswith(_PACKED) for name in sizes)
    # By default a carriage return within a line ends it, too.
    reader = spark.read.option("lineSep", "\n")
    if line_limit is not None and not is_whole:
        reader = reader.option("mapreduce.input.linerecordreader.line.maxlength", line_limit)
    lines = reader.text(path)
    kept = check_kept(lines.drop("value").schema, keep, what=path, key=name_key(spark))
    lines = lines.select("value", *[quoted(field.name) for field in kept])
    return Groups(
        frame=with_lines(lines),
        is_text=True,
        keep=tuple(keep),
        path=path,
        sizes=None if is_whole else sizes,
        line_limit=None if is_whole else line_limit,
    )


def _check_frame(files: Files, path: str) -> None:
    """Refuse a compressed file that Spark reads as another format.

    Raises:
        BadTable: the file begins as those of the tools `lz4` and `snzip`.
    """
    for ending, frame in _FRAMES.items():
        if path.endswith(ending) and files.head(path, len(frame)) == frame:
            raise BadTable(
                f"{file_of(path)} is compressed as by the tool {ending[1:]}, but Spark reads only "
                f"Hadoop's own {ending} files; compress it as .zst, .gz or .bz2"
            )


def read_table(spark: SparkSession, name: str, *, keep: Sequence[str] = ()) -> Groups:
    """The groups of a table in a catalog (`schemas.GROUP`), or of a view.

    Args:
        spark: the session.
        name: of the table, as CATALOG.SCHEMA.TABLE.
        keep: other columns of the table.

    Raises:
        BadTable: there is no such table, or a column is missing or of another type.
    """
    try:
        table, kept = _with_kept(spark.table(name), keep, what=name)
        return Groups(frame=table, is_text=False, keep=kept)
    except AnalysisException as error:
        if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
            raise
        raise BadTable(
            f"there is no table {shown(name)}; give CATALOG.SCHEMA.TABLE, and the catalog's "
            "settings with --conf"
        ) from None


def _with_kept(
    frame: DataFrame, keep: Sequence[str], *, what: str
) -> tuple[DataFrame, tuple[str, ...]]:
    """The columns of groups and those to keep; and the names of those to keep."""
    key = name_key(frame.sparkSession)
    own = {key(name): name for name in GROUP.names}
    names = [own.get(key(name), name) for name in keep]
    kept = check_kept(frame.schema, names, what=what, key=key)
    others = [field for field in kept if field.name not in GROUP.names]
    for field in others:
        if "." in field.name:
            raise BadTable(f"{what}: column {field.name} cannot be kept; rename it without dots")
    table = fitted(frame, StructType([*GROUP, *others]), what=what, keeps_wide=True)
    return table, tuple(field.name for field in kept)


def check_kept(
    schema: StructType, keep: Sequence[str], *, what: str, key: Key
) -> tuple[StructField, ...]:
    """The columns to keep, with the names that the caller gives.

    Args:
        schema: of the table.
        keep: names of its columns.
        what: how messages call the table.
        key: names with one key are those of one column (`name_key`).

    Raises:
        BadTable: one is missing, or has the name of a column of the result.
    """
    fields = {key(field.name): field for field in schema}
    results = {name.lower() for name in ANSWER_NAMES}
    for name in keep:
        if key(name) not in fields:
            have = f"its columns: {', '.join(schema.names)}"
            if not schema.names:
                have = f"lines have none; name their directories {name}=VALUE, or give a table"
            raise BadTable(f"{what}: column {name} to keep is missing ({have})")
        if name.lower() in results:
            raise BadTable(
                f"{what}: column {name} cannot be kept, the result has one of that name; rename it"
            )
    by_key = {key(name): name for name in keep}
    return tuple(StructField(name, fields[own].dataType) for own, name in by_key.items())


def from_table(frame: DataFrame, *, what: str = "the table of groups") -> Groups:
    """Groups from a table with one row per group (`schemas.GROUP`).

    Raises:
        BadTable: a column is missing or of another type.
    """
    return Groups(frame=fitted(frame, GROUP, what=what, keeps_wide=True), is_text=False)


def from_state(tasks: DataFrame, clients: DataFrame, *, what: str = "the state") -> Groups:
    """Groups from one row per task and one per client, each with a column `name` for its group.

    Raises:
        BadTable: a column is missing or of another type.
    """
    name = GROUP["name"]
    tasks = fitted(tasks, _named(name, TASK), what=f"{what}, tasks", keeps_wide=True)
    clients = fitted(clients, _named(name, CLIENT), what=f"{what}, clients", keeps_wide=True)
    nested = tasks.groupBy("name").agg(
        f.collect_list(f.struct(*TASK.names)).alias("tasks"),
    )
    members = clients.groupBy("name").agg(
        f.collect_list(f.struct(*CLIENT.names)).alias("clients"),
    )
    # A full join: a group with tasks and no clients must be rejected, not lost.
    frame = nested.join(members, "name", "full_outer")
    empty = f.lit(None).cast(GROUP["config"].dataType)
    return Groups(
        # A group without rows in `tasks` has no tasks; null would mean a missing list.
        frame=frame.select(
            "name",
            empty.alias("config"),
            f.coalesce("tasks", f.array().cast(nested.schema["tasks"].dataType)).alias("tasks"),
            "clients",
        ),
        is_text=False,
    )


def _named(name: StructField, rows: StructType) -> StructType:
    return StructType([name, *rows.fields])


def form_of(spark: SparkSession, path: str) -> str:
    """The format of a path, "parquet" or "jsonl", by the names of its files.

    Raises:
        BadTable: it has neither, or both.
    """
    names = Files(spark, path).data_files(path)
    if not names:
        raise BadTable(f"no file with rows under {path}; give Parquet or JSON lines")
    forms = {_ending(name) for name in names}
    unknown = next((name for name in names if _ending(name) is None), None)
    if unknown is not None:
        raise BadTable(
            f"{unknown} is neither .parquet nor .jsonl; give the format with --in-format"
        )
    if len(forms) > 1:
        raise BadTable(f"{path} holds both Parquet and JSON lines; give one of them, as a glob")
    return forms.pop() or ""


def _ending(name: str) -> str | None:
    bare = name.removesuffix(next((end for end in _PACKED if name.endswith(end)), ""))
    return next((form for end, form in _ENDINGS.items() if bare.endswith(end)), None)
