"""Reject the invalid rows of a huge group, so that the other tasks can be placed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_assign.huge.checks import KEY, unknown_clients
from spark_assign.huge.group_rows import OneGroup
from spark_assign.huge.worker.rows import REASONS, wrong_column
from spark_assign.tables import REJECT, TASK, Stage, first_sentences, fitted, write_rejects

VALID_TASKS = "_tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidRows:
    """A group without its invalid rows.

    Attributes:
        group: the valid rows, stored in the stage until it is committed.
        rejects: number of rejected rows.
        first_rejects: sentences for the first few rejects.
    """

    group: OneGroup
    rejects: int = 0
    first_rejects: tuple[str, ...] = ()


def without_invalid_rows(group: OneGroup, stage: Stage) -> ValidRows:
    """Write rejects and valid rows into a stage; all rows of a repeated task are rejects.

    Args:
        group: all rows.
        stage: the output; rejects go to its folder `reject_rows.REJECTS`.
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
    valid = marked.where("_wrong = 0").drop("_wrong")
    unknown = _rejected(
        unknown_clients(valid, group.clients),
        group.name,
        column=sql.col("column"),
        value=sql.col("client"),
        reason=sql.lit("names a client that is not in the group"),
    )
    twice = valid.groupBy(*KEY).agg(sql.count("*").alias("_n")).where("_n > 1")
    repeated = _rejected(
        twice,
        group.name,
        column=sql.lit("partition"),
        value=sql.col("partition"),
        reason=sql.lit("is given in more than one row"),
    )
    rejects = own.unionByName(unknown.dropDuplicates(list(KEY))).unionByName(repeated)
    written = write_rejects([rejects.to(REJECT)], stage)
    keys = unknown.select(*KEY).unionByName(repeated.select(*KEY)).distinct()
    kept = valid.join(keys, list(KEY), "left_anti").select(*TASK.names)
    # Stored, because all passes of a plan must read the same rows in the same order.
    stage.write(kept.repartitionByRange(*KEY).sortWithinPartitions(*KEY), VALID_TASKS)
    stored = spark.read.schema(TASK).parquet(f"{stage.path}/{VALID_TASKS}")
    return ValidRows(
        group=replace(group, tasks=stored),
        rejects=tasks.count() - stored.count(),
        first_rejects=first_sentences(written),
    )


def _rejected(
    rows: DataFrame, name: str, *, column: Column, value: Column, reason: Column
) -> DataFrame:
    """The key of each row and the columns of `rejects.REJECT`; the reason names the task."""
    task = sql.concat_ws(
        "_", *[sql.coalesce(sql.col(key).cast("string"), sql.lit("null")) for key in KEY]
    )
    return rows.select(
        *KEY,
        sql.lit(name).alias("name"),
        column.alias("column"),
        sql.coalesce(value.cast("string"), sql.lit("null")).alias("value"),
        sql.concat(sql.lit("task "), task, sql.lit(" "), reason).alias("reason"),
    )


def _by_reason(columns: Sequence[Column]) -> Column:
    """The column of the reason whose number is in `_wrong`."""
    return sql.element_at(sql.array(*columns), sql.col("_wrong"))
