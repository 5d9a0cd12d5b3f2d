"""Place lines where they are read, in one pass over the files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_assign.batch.huge_groups import noted_groups
from spark_assign.batch.plans import Plans
from spark_assign.batch.worth import Ranked, Ranking
from spark_assign.huge import LongGroup, groups_of_long_lines
from spark_assign.tables import (
    Groups,
    refused,
    repeated_names,
    repeated_rejects,
    step,
    without,
)
from spark_assign.workers import (
    Notes,
    Options,
    noting_reader,
    placing,
    set_batch_rows,
    set_partition_bytes,
    spread_rows,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one pass over the groups has written.

    Attributes:
        groups: the input, with the lines that are no rows of it.
        counts: of placed groups and rejects, and the totals of `COUNTS`.
        ranked: the first groups by worth, without huge ones.
        repeated: rejects of groups that share a name, which are not written; one table or none.
        large: huge groups, which are not placed yet; None if there is none.
        long: groups of long lines, which are not placed yet.
    """

    groups: Groups
    counts: Counter[str]
    ranked: Ranked = ()
    repeated: tuple[DataFrame, ...] = ()
    large: Groups | None = None
    long: tuple[LongGroup, ...] = ()


def write_lines(groups: Groups, plans: Plans, options: Options, *, huge_tasks: int) -> Written:
    """Place lines in one pass; again without those that share a name, if there are such.

    Raises:
        BadTable: groups share a name, and `stop_at_reject` asks to fail.
    """
    long = tuple(groups_of_long_lines(groups, command="batch"))
    groups = replace(groups, skipped=tuple(group.line for group in long))
    notes, counts, ranked = _place_lines(groups, plans, options, huge_tasks)
    unique = groups
    repeated: tuple[DataFrame, ...] = ()
    if notes.may_repeat(line.name for line in groups.skipped if line.name):
        unique, repeated = unique_groups(groups, options)
    if repeated:
        plans.clear()
        notes, counts, ranked = _place_lines(unique, plans, options, huge_tasks)
        long = _with_own_names(long, repeated[0])
    large = noted_groups(unique, notes)
    return Written(
        groups=groups, counts=counts, ranked=ranked, repeated=repeated, large=large, long=long
    )


def unique_groups(groups: Groups, options: Options) -> tuple[Groups, tuple[DataFrame, ...]]:
    """The groups that share their names with no other, and the rejects of the others, if any.

    Raises:
        BadTable: groups share a name, and `stop_at_reject` asks to fail.
    """
    repeated = repeated_names(groups)
    with step(groups.frame.sparkSession, "batch: look for repeated names"):
        if repeated.isEmpty():
            return groups, ()
    rejects = repeated_rejects(groups, repeated)
    if options.stop_at_reject:
        raise refused([rejects])
    return without(groups, repeated), (rejects,)


def _with_own_names(long: Sequence[LongGroup], rejects: DataFrame) -> tuple[LongGroup, ...]:
    """The groups whose names no other group has."""
    names = [group.line.name for group in long]
    rows = rejects.where(f.col("name").isin(names)).select("name").distinct().collect()
    shared = {row.name for row in rows}
    return tuple(group for group in long if group.line.name not in shared)


def _place_lines(
    groups: Groups, plans: Plans, options: Options, huge_tasks: int
) -> tuple[Notes, Counter[str], Ranked]:
    frame = groups.frame
    spark = frame.sparkSession
    ranking = Ranking.of(spark.sparkContext)
    notes = Notes.of(spark.sparkContext, huge_tasks=huge_tasks)
    if groups.skipped:
        # One Spark task reads each file, others place what it reads.
        frame = spread_rows(frame)
        set_batch_rows(spark)
    else:
        set_partition_bytes(spark, sum((groups.sizes or {}).values()))
    read = noting_reader(options, notes)
    kernel = placing(options, read, keep=groups.keep, note=ranking.note)
    with step(spark, "batch: place the groups"):
        counts = plans.write_answers(frame.mapInArrow(kernel, plans.schema))
    return notes, counts, ranking.first.value
