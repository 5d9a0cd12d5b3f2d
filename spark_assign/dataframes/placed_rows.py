"""Flat tables: one row per placed task, from the plans of groups."""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

_ROLES = ("active", "standby", "warmup")


def to_rows(placed: DataFrame) -> DataFrame:
    """One row per placed copy: group, topic, subtopology, partition, member, role.

    The role is active, standby or warmup. A member without tasks has one row, with nulls. The topic
    is null unless `place` kept the column `topics` of `from_rows`; a task of several topics has a
    row for each that has its partition.

    Args:
        placed: a result of `place`, or plans of `spark-assign batch`. Rejected groups have no rows.
    """
    has_topics = "topics" in placed.columns
    roles = [f.transform(f.col(f"placed.{role}"), partial(_with_role, role)) for role in _ROLES]
    kept = ["topics"] if has_topics else []
    members = placed.select("name", *kept, f.explode("clients").alias("member", "placed"))
    tasks = members.select(
        "name", *kept, "member", f.explode_outer(f.concat(*roles)).alias("copy")
    ).withColumns(
        {
            "subtopology": _part("copy.task", 1),
            "partition": _part("copy.task", 2),
            "role": f.col("copy.role"),
        }
    )
    if has_topics:
        own = f.try_element_at("topics", f.col("subtopology"))
        read = f.filter(own, lambda topic: f.exists(topic["partitions"], _has_partition))
        names = f.transform(read, lambda topic: topic["topic"])
        tasks = tasks.withColumn("topic", f.explode_outer(names))
    else:
        tasks = tasks.withColumn("topic", f.lit(None).cast("string"))
    return tasks.select(
        f.col("name").alias("group"), "topic", "subtopology", "partition", "member", "role"
    )


def _has_partition(bounds: Column) -> Column:
    return f.col("partition").between(bounds["first"], bounds["last"])


def _with_role(role: str, task: Column) -> Column:
    return f.struct(task.alias("task"), f.lit(role).alias("role"))


def _part(task: str, number: int) -> Column:
    """A number of a task such as 0_3, counted from 1."""
    return f.split_part(task, f.lit("_"), f.lit(number)).cast("int")
