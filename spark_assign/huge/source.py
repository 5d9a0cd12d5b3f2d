"""Read one huge group as rows of tasks and clients, from any input."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from assignor import AssignmentConfig, config_from_mapping, read_problem
from assignor.config import setting_value
from assignor.problems import parse_problem
from assignor.stores import read_snapshot
from encoding import shown
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
    read_groups,
)
from spark_assign.workers import Batches

SNAPSHOT_SUFFIX = ".bin"
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OneGroup:
    """A group as two tables.

    Attributes:
        name: of the group.
        tasks: a row per task (`schemas.TASK`), stored; sorted by task if the input had one row per
            group.
        clients: a row per client (`schemas.CLIENT`).
        config: its settings.
    """

    name: str
    tasks: DataFrame
    clients: DataFrame
    config: AssignmentConfig


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
        tasks, clients = (spark.read.parquet(f"{path}/{part}") for part in ("tasks", "clients"))
        if name is not None:
            tasks, clients = (rows.where(f.col("name") == name) for rows in (tasks, clients))
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
        nested = nested_groups(read_groups(spark, path, form=form))
    nested = nested if name is None else nested.where(f.col("name") == name)
    return in_rows(nested, settings=settings, what=path, name=name)


def in_rows(
    nested: DataFrame,
    *,
    settings: tuple[tuple[str, object], ...] = (),
    what: str,
    name: str | None = None,
) -> OneGroup:
    """The only group of a table (`schemas.GROUP`) as rows, sorted by task and stored on disks.

    Args:
        nested: the table.
        settings: override those of the group.
        what: how messages call the table.
        name: the only name that the table has rows of, if one was chosen.

    Raises:
        BadTable: there is no group, or there are several.
        ConfigError: a setting is invalid.
    """
    kept = nested.persist(StorageLevel.DISK_ONLY)
    heads = kept.select("name", "config").limit(_NAMES_SHOWN).collect()
    if not heads and name is not None:
        raise BadTable(f"{what} has no group {shown(name)}; give the name of one that it has")
    if len(heads) != 1:
        names = ", ".join(str(row.name) for row in heads)
        raise BadTable(
            f"{what} holds {f'several groups ({names}, ...)' if heads else 'no group'}; give one, "
            "by --name, or place them with spark-assign batch"
        )
    return group_in_rows(kept, heads[0].name, heads[0].config, settings)


def group_in_rows(
    row: DataFrame,
    name: str,
    config: Mapping[str, str | None] | None,
    settings: tuple[tuple[str, object], ...],
) -> OneGroup:
    """The group of a table with one row as rows, sorted by task and stored on disks.

    Args:
        row: in the schema `schemas.GROUP`; it is read several times.
        name: as in the row.
        config: settings of the row as texts.
        settings: override those of the row.

    Raises:
        ConfigError: a setting is invalid.
    """
    texts = {key: text for key, text in (config or {}).items() if text is not None}
    own = {key: setting_value(key, text) for key, text in texts.items()}
    return OneGroup(
        name=name,
        tasks=sorted_tasks(row.select(f.inline("tasks"))),
        clients=row.select(f.inline("clients")),
        config=config_from_mapping(own | dict(settings)),
    )


def sorted_tasks(tasks: DataFrame) -> DataFrame:
    """The rows of tasks, sorted over all partitions, and stored on disks once they are read."""
    order = ("subtopology", "partition")
    ordered = tasks.repartitionByRange(*order).sortWithinPartitions(*order)
    return ordered.persist(StorageLevel.DISK_ONLY)


def nested_groups(groups: Groups, *, settings: tuple[tuple[str, object], ...] = ()) -> DataFrame:
    """Groups as a table in the schema `schemas.GROUP`, and the columns to keep.

    Workers read problems; an invalid one fails the job.

    Args:
        groups: any table of groups.
        settings: override those of problems.
    """
    if not groups.is_text:
        return groups.frame

    keep = groups.keep

    def problems(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row, line in enumerate(batch.column("value").cast(pa.binary()).to_pylist()):
                read = guarded("", partial(_problem, line or b"", settings))
                if isinstance(read, Reject):
                    raise BadTable(read.reason)
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
