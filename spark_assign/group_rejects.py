"""Rows of a huge group that make no sense, set apart so that the others can be placed."""

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_assign.collapse_rows import REASONS, wrong_column
from spark_assign.one_group import OneGroup
from spark_assign.output import Stage
from spark_assign.rejects import first_of
from spark_assign.schemas import REJECT, TASK, fitted

REJECTS, SOUND = "_rejects", "_tasks"
_KEY = ("subtopology", "partition")


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
        stage: where both are written, the rejects under `REJECTS`.
    """
    spark = stage.files.spark
    tasks = fitted(group.tasks, TASK, what="the tasks")
    marked = tasks.withColumn("_wrong", wrong_column())
    own = marked.where("_wrong > 0").select(*_KEY, *_said(group.name))
    sound = marked.where("_wrong = 0").drop("_wrong")
    strangers = _strangers(sound, group)
    twice = sound.groupBy(*_KEY).agg(sql.count("*").alias("_n")).where("_n > 1")
    repeated = twice.select(
        *_KEY,
        *_reject(group.name, "partition", sql.col("partition"), "is given in more than one row"),
    )
    rejects = own.unionByName(strangers.dropDuplicates(list(_KEY))).unionByName(repeated)
    stage.write(rejects.select(*REJECT.names), REJECTS)
    keys = strangers.select(*_KEY).unionByName(repeated.select(*_KEY)).distinct()
    kept = sound.join(keys, list(_KEY), "left_anti").select(*TASK.names)
    # A plan needs rows that stay as they are: all passes must see the same ones.
    stage.write(kept.repartitionByRange(*_KEY).sortWithinPartitions(*_KEY), SOUND)
    written = spark.read.schema(REJECT).parquet(f"{stage.path}/{REJECTS}")
    stored = spark.read.schema(TASK).parquet(f"{stage.path}/{SOUND}")
    return Parted(
        group=replace(group, tasks=stored),
        rejects=tasks.count() - stored.count(),
        first_rejects=first_of(written),
    )


def _reject(name: str, column: str, value: Column, reason: str) -> list[Column]:
    """Columns of `schemas.REJECT` for a row of the table; the reason names its task."""
    task = sql.concat_ws(
        "_", *[sql.coalesce(sql.col(key).cast("string"), sql.lit("null")) for key in _KEY]
    )
    return [
        sql.lit(name).alias("name"),
        sql.lit(column).alias("column"),
        sql.coalesce(value.cast("string"), sql.lit("null")).alias("value"),
        sql.concat(sql.lit("task "), task, sql.lit(f" {reason}")).alias("reason"),
        sql.lit(None).cast("string").alias("place"),
    ]


def _said(name: str) -> list[Column]:
    """The same for rows with a number in `_wrong`."""
    found: list[Column] = []
    for field in REJECT.names:
        chosen = sql.lit(None).cast("string")
        for number, (column, reason) in enumerate(REASONS, start=1):
            columns = _reject(name, column, sql.col(column), reason)
            mine = columns[REJECT.names.index(field)]
            chosen = sql.when(sql.col("_wrong") == number, mine).otherwise(chosen)
        found.append(chosen.alias(field))
    return found


def _strangers(tasks: DataFrame, group: OneGroup) -> DataFrame:
    """Rows that name a client which is not in the group."""
    holders = sql.transform(
        sql.coalesce("copies", sql.array()),
        lambda copy: sql.struct(sql.lit("copies").alias("role"), copy.client.alias("client")),
    )
    owner = sql.struct(sql.lit("owner").alias("role"), sql.col("owner").alias("client"))
    named = tasks.select(*_KEY, sql.inline(sql.concat(sql.array(owner), holders)))
    known = group.clients.select(sql.col("client").alias("_known"))
    lost = named.where("client is not null").join(
        known, sql.col("client") == sql.col("_known"), "left_anti"
    )
    columns = _reject(group.name, "", sql.col("client"), "names a client that is not in the group")
    columns[REJECT.names.index("column")] = sql.col("role").alias("column")
    return lost.select(*_KEY, *columns)
