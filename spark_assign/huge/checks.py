"""Rows of a huge group that make no sense: found by the first pass, named here.

The pass only counts; names, values and rows are looked up when there is something to say.
"""

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_assign.huge.group import Group
from spark_assign.huge.worker.counts import mixed
from spark_assign.huge.worker.rows import REASONS, Ints, wrong_column
from spark_assign.tables import WrongRows

KEY = ("subtopology", "partition")
_STEP = 1 << 20


def refuse_wrong_row(tasks: DataFrame, group: Group, count: int) -> None:
    """Say which row is wrong, and how many are.

    Raises:
        WrongRows: always.
    """
    more = f"; {count} rows in all are wrong" if count > 1 else ""
    order = [sql.col(name).asc_nulls_first() for name in KEY]
    number = wrong_column().alias("_wrong")
    first = tasks.select("*", number).where("_wrong > 0").orderBy(*order).limit(1).collect()
    if first:
        row = first[0]
        column, reason = REASONS[row["_wrong"] - 1]
        value = "" if row[column] is None else f", which is {row[column]!r},"
        raise WrongRows(
            f"the tasks: column {column}{value} of task {row.subtopology}_{row.partition} "
            f"{reason}{more}"
        )
    known = tasks.sparkSession.createDataFrame([(name,) for name in group.clients], "client string")
    lost = unknown_clients(tasks, known)
    one = lost.orderBy(*order, "column", "client").first()
    said = (
        "a row names a client"
        if one is None
        else f"column {one.column} of task {one.subtopology}_{one.partition} names {one.client},"
    )
    raise WrongRows(f"the tasks: {said} which is not among the clients{more}")


def unknown_clients(tasks: DataFrame, clients: DataFrame) -> DataFrame:
    """Every client that a task names and that is not in the group.

    Args:
        tasks: the table.
        clients: those of the group, with a column `client`.

    Returns:
        columns of the task's key, `column` (owner or copies) and `client`.
    """
    owner = sql.struct(sql.lit("owner").alias("column"), sql.col("owner").alias("client"))
    holders = sql.transform(
        sql.coalesce("copies", sql.array()),
        lambda copy: sql.struct(sql.lit("copies").alias("column"), copy.client.alias("client")),
    )
    named = tasks.select(*KEY, sql.inline(sql.concat(sql.array(owner), holders)))
    known = clients.select(sql.col("client").alias("_known"))
    return named.where("client is not null").join(
        known, sql.col("client") == sql.col("_known"), "left_anti"
    )


def check_tasks(tasks: DataFrame, counted: Ints) -> None:
    """Refuse a task that is there twice.

    Where the partitions of every subtopology are 0, 1, ... without a gap, sums of hashes tell; only
    otherwise all tasks are grouped.

    Args:
        tasks: the table.
        counted: int [N, 4], subtopology, rows, highest partition, sum of hashes, chunk by chunk.

    Raises:
        WrongRows: a task is there twice.
    """
    for subtopology in np.unique(counted[:, 0]).tolist():
        mine = counted[counted[:, 0] == subtopology]
        count, most = int(mine[:, 1].sum()), int(mine[:, 2].max())
        with np.errstate(over="ignore"):
            total = int(mine[:, 3].sum()) & (2**64 - 1)
            expected = 0
            if count == most + 1:
                for start in range(0, count, _STEP):
                    part = np.arange(start, min(start + _STEP, count), dtype=np.int64)
                    expected += int(mixed(np.full(len(part), subtopology), part).sum())
        if count != most + 1 or expected & (2**64 - 1) != total:
            _refuse_repeated(tasks)
            return


def too_many_subtopologies(group: Group, counted: Ints) -> list[str]:
    """A warning where not every subtopology is balanced by itself.

    Args:
        group: the group.
        counted: as for `check_tasks`.
    """
    count = len(np.unique(counted[:, 0]))
    if count <= group.buckets:
        return []
    said = (
        f"{count} subtopologies are balanced as {group.buckets}: those whose numbers leave the "
        f"same remainder by {group.buckets} as if they were one"
    )
    return [said]


def _refuse_repeated(tasks: DataFrame) -> None:
    twice = tasks.groupBy(*KEY).count().where("count > 1")
    row = twice.orderBy(*KEY).first()
    if row is not None:
        raise WrongRows(
            f"the tasks: task {row.subtopology}_{row.partition} is there {row['count']} times; "
            "drop all rows of it but one"
        )
