"""Rows of a huge group that make no sense, set apart so that the others can be placed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_assign.huge.checks import KEY, unknown_clients
from spark_assign.huge.source import OneGroup
from spark_assign.huge.worker.rows import REASONS, wrong_column
from spark_assign.tables import TASK, Stage, first_of, fitted, write_rejects

SOUND = "_tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """A group without the rows that make no sense.

    Attributes:
        group: the others, stored in the stage until it is committed.
        rejects: how many rows were set apart.
        first_rejects: sentences for the first few.
    """

    group: OneGroup
    rejects: int = 0
    first_rejects: tuple[str, ...] = ()


def parted(group: OneGroup, stage: Stage) -> Parted:
    """Write the rows that make no sense, and those that do; of a task given twice no row does.

    Args:
        group: as it was read.
        stage: where both are written, the rejects under `rejects.REJECTS`.
    """
    spark = stage.files.spark
    tasks = fitted(group.tasks, TASK, what="the tasks")
    marked = tasks.withColumn("_wrong", wrong_column())
    own = _rejected(
        marked.where("_wrong > 0"),
        group.name,
        column=_by_reason([sql.lit(column) for column, _ in REASONS]),
        value=_by_reason([sql.col(column).cast("string") for column, _ in REASONS]),
        reason=_by_reason([sql.lit(reason) for _, reason in REASONS]),
    )
    sound = marked.where("_wrong = 0").drop("_wrong")
    strangers = _rejected(
        unknown_clients(sound, group.clients),
        group.name,
        column=sql.col("column"),
        value=sql.col("client"),
        reason=sql.lit("names a client that is not in the group"),
    )
    twice = sound.groupBy(*KEY).agg(sql.count("*").alias("_n")).where("_n > 1")
    repeated = _rejected(
        twice,
        group.name,
        column=sql.lit("partition"),
        value=sql.col("partition"),
        reason=sql.lit("is given in more than one row"),
    )
    rejects = own.unionByName(strangers.dropDuplicates(list(KEY))).unionByName(repeated)
    written = write_rejects(rejects, stage)
    keys = strangers.select(*KEY).unionByName(repeated.select(*KEY)).distinct()
    kept = sound.join(keys, list(KEY), "left_anti").select(*TASK.names)
    # A plan needs rows that stay as they are: all passes must see the same ones.
    stage.write(kept.repartitionByRange(*KEY).sortWithinPartitions(*KEY), SOUND)
    stored = spark.read.schema(TASK).parquet(f"{stage.path}/{SOUND}")
    return Parted(
        group=replace(group, tasks=stored),
        rejects=tasks.count() - stored.count(),
        first_rejects=first_of(written),
    )


def _rejected(
    rows: DataFrame, name: str, *, column: Column, value: Column, reason: Column
) -> DataFrame:
    """The key of each row and the columns of `schemas.REJECT`; the reason names the task."""
    task = sql.concat_ws(
        "_", *[sql.coalesce(sql.col(key).cast("string"), sql.lit("null")) for key in KEY]
    )
    return rows.select(
        *KEY,
        sql.lit(name).alias("name"),
        column.alias("column"),
        sql.coalesce(value.cast("string"), sql.lit("null")).alias("value"),
        sql.concat(sql.lit("task "), task, sql.lit(" "), reason).alias("reason"),
        sql.lit(None).cast("string").alias("place"),
    )


def _by_reason(columns: Sequence[Column]) -> Column:
    """The column of the reason whose number is in `_wrong`."""
    return sql.element_at(sql.array(*columns), sql.col("_wrong"))
