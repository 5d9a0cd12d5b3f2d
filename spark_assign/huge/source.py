"""Read one huge group as rows of tasks and clients, from any input."""

import json
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from assignor import read_problem
from assignor.config import config_from_mapping
from assignor.problems import parse_problem
from assignor.stores import read_snapshot
from encoding import shown
from spark_assign.huge.group_rows import OneGroup, in_rows, several
from spark_assign.huge.long_groups import LINE_LIMIT, groups_of_long_lines
from spark_assign.tables import (
    BY_NAME,
    CLIENT,
    GROUP,
    TASK,
    BadTable,
    Files,
    Form,
    Groups,
    Reject,
    fitted,
    group_batch,
    guarded,
    name_key,
    read_groups,
)
from spark_assign.workers import Batches

SNAPSHOT_SUFFIX = ".bin"
# Bytes of a line in a message.
_BEGIN = 40


def read_one_group(
    spark: SparkSession,
    path: str,
    *,
    name: str | None = None,
    settings: tuple[tuple[str, object], ...] = (),
    form: Form = "auto",
) -> OneGroup:
    """The group under a path.

    Args:
        spark: the session.
        path: a state directory (`tasks/`, `clients/`), a snapshot of a plan store (`state.bin`), or
            any input of `read_groups`.
        name: of the group; needed if there are several.
        settings: override those of the group.
        form: as for `read_groups`.

    Raises:
        BadTable: there is no group, there are several, or the group is invalid.
        ConfigError: a setting is invalid.
    """
    files = Files(spark, path)
    if files.exists(f"{path}/tasks") and files.exists(f"{path}/clients"):
        tasks, clients = (
            _of_group(spark.read.parquet(f"{path}/{part}"), name, what=f"{path}/{part}")
            for part in ("tasks", "clients")
        )
        return OneGroup(
            name=name or path.rstrip("/").rpartition("/")[2],
            tasks=fitted(tasks, TASK, what=f"{path}/tasks", as_stored=BY_NAME),
            clients=fitted(clients, CLIENT, what=f"{path}/clients"),
            config=config_from_mapping(dict(settings)),
        )
    if path.endswith(SNAPSHOT_SUFFIX):
        if not files.exists(path):
            raise BadTable(f"{path} does not exist; a leader writes it when its group wants a plan")
        nested = spark.read.format("binaryFile").load(path).mapInArrow(_snapshots, GROUP)
    else:
        groups = read_groups(spark, path, form=form, line_limit=LINE_LIMIT)
        if (found := _of_long_line(groups, name, settings)) is not None:
            return found
        nested = nested_groups(groups, only=name)
    nested = nested if name is None else nested.where(f.col("name") == name)
    return in_rows(nested, settings=settings, what=path, name=name)


def _of_group(rows: DataFrame, name: str | None, *, what: str) -> DataFrame:
    """The rows of a group in a part of a state directory, which may hold several.

    Raises:
        BadTable: it has no rows of this group, or of several groups if none is named.
    """
    if name_key(rows.sparkSession)("name") not in map(name_key(rows.sparkSession), rows.columns):
        if name is not None:
            raise BadTable(f"{what} has no column name: it holds one group; leave out --name")
        return rows
    if name is None:
        names = [str(row.name) for row in rows.select("name").distinct().limit(2).collect()]
        if len(names) > 1:
            raise several(what, sorted(names))
        return rows
    own = rows.where(f.col("name") == name)
    if own.isEmpty():
        raise BadTable(f"{what} has no group {shown(name)}; give the name of one that it has")
    return own


def _of_long_line(
    groups: Groups, name: str | None, settings: tuple[tuple[str, object], ...]
) -> OneGroup | None:
    """The group with this name, or the only one, if its line is too long to be a row.

    Raises:
        BadTable: there are several, or the line is no valid problem.
        ConfigError: a setting is invalid.
    """
    chosen, unnamed = [], []
    for group in groups_of_long_lines(groups, command="group"):
        if name in (None, group.line.name):
            chosen.append(group)
            continue
        group.rows.unpersist()
        unnamed += [group.reject] if group.reject is not None and not group.line.name else []
    if not chosen and not unnamed:
        return None
    rows = nested_groups(groups, only=name).select("name")
    rows = rows if name is None else rows.where(f.col("name") == name)
    found = [row.name for row in rows.take(1)]
    if not chosen:
        if found:
            return None
        raise BadTable(str(unnamed[0]))  # it may be the one
    names = [group.line.name for group in chosen] + found
    if len(names) > 1:
        raise several(groups.path, names)
    [group] = chosen
    if group.reject is not None:
        raise BadTable(str(group.reject))
    return group.as_one(settings)


def nested_groups(
    groups: Groups, *, settings: tuple[tuple[str, object], ...] = (), only: str | None = None
) -> DataFrame:
    """Groups as a table in the schema `schemas.GROUP`, and the columns to keep.

    Workers read problems; an invalid one fails the job.

    Args:
        groups: any table of groups.
        settings: override those of problems.
        only: name of the group that is wanted; invalid problems without this text are left out.
    """
    if not groups.is_text:
        return groups.frame

    keep, what = groups.keep, groups.path
    # As it is, and as JSON may have it.
    wanted = only or ""
    texts = wanted.encode("utf-8", "surrogateescape"), json.dumps(wanted)[1:-1].encode()

    def problems(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row, line in enumerate(batch.column("value").cast(pa.binary()).to_pylist()):
                read = guarded("", partial(_problem, line or b"", settings))
                if isinstance(read, Reject):
                    if only is not None and not any(text in (line or b"") for text in texts):
                        continue
                    raise BadTable(_unread(read, line or b"", what))
                kept = batch.select(keep).slice(row, 1).columns
                names = [*read.schema.names, *keep]
                yield pa.RecordBatch.from_arrays([*read.columns, *kept], names)

    kept = [groups.frame.schema[name] for name in keep]
    return groups.filled().mapInArrow(problems, StructType([*GROUP, *kept]))


def snapshot_groups(spark: SparkSession, store: str) -> Groups:
    """All groups of which a plan store has a snapshot, as a table in the schema `schemas.GROUP`.

    Args:
        spark: the session.
        store: directory of the plan store; the workers must be able to read it.

    Raises:
        BadTable: the store has no snapshot. A damaged one fails the job with a StoreError.
    """
    snapshots = f"{store.rstrip('/')}/*/state{SNAPSHOT_SUFFIX}"
    if not Files(spark, store).data_files(snapshots):
        raise BadTable(f"no snapshot in {store}; leaders write them when their groups want plans")
    files = spark.read.format("binaryFile").load(snapshots)
    return Groups(frame=files.mapInArrow(_snapshots, GROUP), is_text=False)


def _unread(reject: Reject, line: bytes, what: str) -> str:
    """Why a line is refused. Its number is not known where it is read."""
    begin = shown(line[:_BEGIN].decode("utf-8", errors="replace"))
    reason = reject.reason.removeprefix("line 1, ")
    return f"{what}, the line that begins {begin}: {reason}"


def _problem(line: bytes, settings: tuple[tuple[str, object], ...]) -> pa.RecordBatch:
    data = parse_problem(line)
    problem = read_problem(data, settings=dict(settings))
    return group_batch([(problem.name, problem.state)])


def _snapshots(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = zip(batch.column("path").to_pylist(), batch.column("content"), strict=True)
        for path, content in rows:
            snapshot = read_snapshot(content.as_py(), name=path)
            yield group_batch([(snapshot.group, snapshot.state)])
