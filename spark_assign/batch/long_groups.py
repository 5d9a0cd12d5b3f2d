"""Place groups whose lines are too long to be rows, each as a huge one."""

from collections.abc import Iterator, Sequence
from functools import partial

from pyspark.sql import DataFrame

from assignor.placement import strategy_name
from encoding import shown
from spark_assign.batch.huge_groups import HugePlan, on_workers, planned
from spark_assign.huge import LongGroup
from spark_assign.tables import Groups, Reject, path_column, quoted, step
from spark_assign.workers import Options


def placed_long(
    long_groups: Sequence[LongGroup], groups: Groups, options: Options
) -> Iterator[HugePlan | Reject]:
    """Plan the groups of long lines one after another; write each plan before you take the next.

    Args:
        long_groups: the groups.
        groups: the input.
        options: how they are placed.
    """
    spark = groups.frame.sparkSession
    for group in long_groups:
        name = group.line.name
        if group.reject is not None:
            yield group.reject
            continue
        plan = partial(_plan, group, groups, options)
        with step(spark, f"batch: plan huge group {shown(name)}"):
            huge = on_workers(name, None, plan, place=group.line.place)
        yield huge
        if isinstance(huge, HugePlan):
            huge.release()
        group.rows.unpersist()


def _plan(group: LongGroup, groups: Groups, options: Options) -> HugePlan:
    found = group.as_one(options.settings)
    kept = _kept(groups, group.line.file) if groups.keep else None
    return planned(
        found,
        strategy_name(options.strategy),
        kept=kept,
        place=group.line.place,
        warnings=group.warnings,
    )


def _kept(groups: Groups, file: str) -> DataFrame:
    """The columns to keep of a file's groups, one row."""
    # In pieces, because a line of the file is no row.
    pieces = groups.frame.sparkSession.read.option("lineSep", ",").text(groups.path)
    return pieces.where(path_column() == file).select(*map(quoted, groups.keep)).limit(1)
