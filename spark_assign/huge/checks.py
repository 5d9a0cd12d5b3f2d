"""Error messages for invalid rows of a huge group.

The first pass only counts invalid rows; their keys and values are looked up here.
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
    """Raise an error that names the first invalid row, and the number of all.

    Raises:
        WrongRows: always.
    """
    more = f"; {count} rows are invalid" if count > 1 else ""
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
    unknown = lost.orderBy(*order, "column", "client").first()
    named = "a row names a client"
    if unknown is not None:
        task = f"{unknown.subtopology}_{unknown.partition}"
        named = f"column {unknown.column} of task {task} names {unknown.client},"
    raise WrongRows(f"the tasks: {named} which is not among the clients{more}")


def unknown_clients(tasks: DataFrame, clients: DataFrame) -> DataFrame:
    """Clients that tasks name and that are not in the group.

    Args:
        tasks: the table of tasks.
        clients: the clients of the group, with a column `client`.

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
    """Check that no task has two rows.

    If the partitions of a subtopology are 0, 1, ... without a gap, sums of hashes prove it;
    otherwise all tasks are grouped by key.

    Args:
        tasks: the table.
        counted: int [N, 4], subtopology, rows, highest partition, sum of hashes, chunk by chunk.

    Raises:
        WrongRows: a task has several rows.
    """
    for subtopology in np.unique(counted[:, 0]).tolist():
        rows = counted[counted[:, 0] == subtopology]
        count, most = int(rows[:, 1].sum()), int(rows[:, 2].max())
        with np.errstate(over="ignore"):
            total = int(rows[:, 3].sum()) & (2**64 - 1)
            expected = 0
            if count == most + 1:
                for start in range(0, count, _STEP):
                    part = np.arange(start, min(start + _STEP, count), dtype=np.int64)
                    expected += int(mixed(np.full(len(part), subtopology), part).sum())
        if count != most + 1 or expected & (2**64 - 1) != total:
            _refuse_repeated(tasks)
            return


def too_many_subtopologies(group: Group, counted: Ints) -> list[str]:
    """A warning if several subtopologies are balanced together.

    Args:
        group: the group.
        counted: as for `check_tasks`.
    """
    count = len(np.unique(counted[:, 0]))
    if count <= group.buckets:
        return []
    warning = (
        f"{count} subtopologies are balanced as {group.buckets}: those with equal number modulo "
        f"{group.buckets} are balanced together"
    )
    return [warning]


def _refuse_repeated(tasks: DataFrame) -> None:
    twice = tasks.groupBy(*KEY).count().where("count > 1")
    row = twice.orderBy(*KEY).first()
    if row is not None:
        raise WrongRows(
            f"the tasks: task {row.subtopology}_{row.partition} has {row['count']} rows; "
            "keep one of them"
        )
