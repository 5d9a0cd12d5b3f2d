"""Thousands of groups, each placed by the same core as `assignor assign` does it.

One row is one group, in and out: a worker takes a batch of rows as Arrow, runs the core on each and
hands Arrow back. Groups of one size class share partitions of equal work (`balance`); a group above
`huge_tasks` is placed by all workers together (`huge`), and so holds up nobody.
"""

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from spark_assign.batch.huge_groups import Huge, on_workers, placed_huge, split
from spark_assign.tables import (
    ANSWER,
    COUNTS,
    RESULT,
    WRITTEN,
    Groups,
    Stage,
    error_of,
    first_of,
    refused,
    rejects_of,
    repeated_names,
    repeated_rejects,
    stored_rejects,
    without,
    write_rejects,
)
from spark_assign.workers import (
    Options,
    SizeClass,
    balanced,
    placing,
    problem_reader,
    size_classes,
    table_reader,
)

HUGE_TASKS = 100_000
EVERYTHING = "_all"
SUMMARY = "_summary.json"
# Rows that Arrow hands over at once; a row is a whole group.
_ARROW_ROWS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a batch did.

    Attributes:
        groups: read; rejects: of those, not placed.
        tasks, moved, restores, warmups: of all groups placed.
        huge: groups placed by all workers together.
        seconds: from the first look at the input to the last row written.
        first_rejects: sentences for the first few.
    """

    groups: int
    rejects: int
    tasks: int
    moved: int
    restores: int
    warmups: int
    seconds: float
    huge: int = 0
    first_rejects: tuple[str, ...] = field(default=())


def place_groups(
    groups: Groups, options: Options, *, classes: tuple[SizeClass, ...] | None = None
) -> DataFrame:
    """The answers of all groups: columns of `schemas.RESULT`, `error` and counts (`_tasks` ...).

    Args:
        groups: any table of groups.
        options: how they are placed.
        classes: the groups counted by size, where that has been done.
    """
    known = size_classes(groups) if classes is None else classes
    cores = groups.frame.sparkSession.sparkContext.defaultParallelism
    return _placed(balanced(groups, known, cores=cores), groups, options)


def _placed(frame: DataFrame, groups: Groups, options: Options) -> DataFrame:
    read = problem_reader(options) if groups.is_text else table_reader(options)
    frame.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ARROW_ROWS))
    return frame.mapInArrow(placing(options, read), ANSWER)


def run_batch(
    spark: SparkSession,
    groups: Groups,
    stage: Stage,
    options: Options,
    *,
    form: str = "parquet",
    huge_tasks: int = HUGE_TASKS,
) -> Summary:
    """Place all groups and write the answers, rejects apart.

    Args:
        spark: the session.
        groups: what to place.
        stage: where to write; the caller commits.
        options: how; with `stop_at_reject` nothing is written once a group is rejected.
        form: parquet or json.
        huge_tasks: groups with more tasks are placed by all workers together.

    Raises:
        BadTable: a group was rejected and `stop_at_reject` asks to fail.
    """
    started = time.perf_counter()
    source, twice = groups, repeated_names(groups)
    repeated = 0
    if not twice.isEmpty():
        groups, repeated = _without_repeated(groups, twice, stage, options, form=form)
    seen = Observation("batch")
    classes = size_classes(groups)
    has_huge = any(one.tasks_max > huge_tasks for one in classes)
    small, large = split(groups, huge_tasks) if has_huge else (groups, None)
    answers = place_groups(small, options, classes=classes).observe(
        seen,
        f.count(f.lit(1)).alias("groups"),
        f.count("error").alias("rejects"),
        *[f.coalesce(f.sum(f"_{name}"), f.lit(0)).alias(name) for name in COUNTS],
    )
    stage.write(answers.select(*RESULT.names, "error"), EVERYTHING, form=form)
    counted = Counter(seen.get) + Counter(groups=repeated)
    if large is not None and large.is_text:
        counted += _write_unreadable(stage, large, options, form=form)
    for one in placed_huge(large, options) if large is not None else ():
        counted += _write_huge(stage, one, form=form)
    if counted["rejects"]:
        _set_apart(spark, stage, source, options, form=form)
    else:
        stage.files.lift(f"{stage.path}/{EVERYTHING}")
    counted += Counter(rejects=repeated)
    rejects: tuple[str, ...] = ()
    if counted["rejects"]:
        rejects = first_of(stored_rejects(stage, form=form))
    summary = Summary(
        **{name: counted[name] for name in ("groups", "rejects", "huge", *COUNTS)},
        seconds=round(time.perf_counter() - started, 3),
        first_rejects=rejects,
    )
    stage.write_text(SUMMARY, json.dumps(asdict(summary)) + "\n")
    return summary


def _without_repeated(
    groups: Groups, twice: DataFrame, stage: Stage, options: Options, *, form: str
) -> tuple[Groups, int]:
    """The groups of other names, and how many were written to the rejects.

    Raises:
        BadTable: `stop_at_reject` asks to fail.
    """
    rejects = repeated_rejects(groups, twice)
    if options.stop_at_reject:
        raise refused(rejects)
    return without(groups, twice), write_rejects(rejects, stage, form=form).count()


def _write_unreadable(stage: Stage, large: Groups, options: Options, *, form: str) -> Counter[str]:
    """Write the reasons for huge problems that cannot be read; what that adds to the counts."""
    seen = Observation("unreadable")
    rejecting = placing(options, problem_reader(options), only_rejects=True)
    rows = large.frame.mapInArrow(rejecting, ANSWER).observe(seen, f.count("error").alias("n"))
    stage.write(rows.select(*RESULT.names, "error"), EVERYTHING, form=form)
    return Counter(groups=int(seen.get["n"]), rejects=int(seen.get["n"]))


def _write_huge(stage: Stage, one: Huge, *, form: str) -> Counter[str]:
    """Write the answer or the reason; what it adds to the counts."""
    answer, plan, reject = one.answer, one.plan, one.reject
    if answer is not None and plan is not None:
        rows = answer.withColumn("error", f.lit(None).cast("string"))
        reject = on_workers(one.name, partial(stage.write, rows, EVERYTHING, form=form))
        if reject is None:
            seen = plan.counts.get
            counts = {name: int(seen[name]) for name in COUNTS}
            return Counter(groups=1, huge=1, **counts)
    spark = stage.files.spark
    row = (one.name, error_of(reject, one.place))
    frame = spark.createDataFrame([row], "name string, error string")
    stage.write(frame.to(WRITTEN), EVERYTHING, form=form)
    return Counter(groups=1, rejects=1)


def _set_apart(
    spark: SparkSession, stage: Stage, groups: Groups, options: Options, *, form: str
) -> None:
    """Write the rejects into a table of their own.

    Raises:
        BadTable: `stop_at_reject` asks to fail.
    """
    path = f"{stage.path}/{EVERYTHING}"
    rows = spark.read.schema(WRITTEN).format(form).load(path)
    rejects = rejects_of(rows, groups.frame)
    if options.stop_at_reject:
        raise refused(rejects)
    write_rejects(rejects, stage, form=form)
    stage.write(rows.where("error is null"), form=form)
    stage.files.delete(path)
