"""Place many groups, each as `assignor assign` does.

One row is one group, in the input and in the output. Workers read Arrow batches, place each group
and return Arrow batches. Groups are distributed over partitions of about equal work (`balance`). A
group of more than `huge_tasks` tasks is placed by all workers together (`huge`).
"""

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from spark_assign.batch.huge_groups import HugePlan, on_workers, placed_huge, split
from spark_assign.tables import (
    ANSWER,
    COUNTS,
    WRITTEN,
    Groups,
    Reject,
    Stage,
    first_sentences,
    refused,
    rejects_with_places,
    repeated_names,
    repeated_rejects,
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
# Results and rejects are written by one job, each into a folder of their own below this one.
EVERYTHING = "_all"
_IS_REJECT = "is_reject"
SUMMARY = "_summary.json"
# Rows of an Arrow batch; a row is a whole group.
_ARROW_ROWS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Totals of a batch.

    Attributes:
        groups: number of groups read.
        rejects: number of those that are not placed.
        tasks, moved, restores, warmups: totals over all groups placed.
        huge: number of groups placed by all workers together.
        seconds: from reading the input to the last row written.
        first_rejects: sentences for the first few rejects.
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
    """Every group placed or rejected, in the schema `results.ANSWER`.

    Args:
        groups: any table of groups.
        options: how they are placed.
        classes: the groups counted by size, where that has been done.
    """
    known = size_classes(groups) if classes is None else classes
    cores = groups.frame.sparkSession.sparkContext.defaultParallelism
    read = problem_reader(options) if groups.is_text else table_reader(options)
    frame = balanced(groups, known, cores=cores)
    frame.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ARROW_ROWS))
    return frame.mapInArrow(placing(options, read), ANSWER)


def run_batch(
    groups: Groups,
    stage: Stage,
    options: Options,
    *,
    form: str = "parquet",
    huge_tasks: int = HUGE_TASKS,
) -> Summary:
    """Place all groups; write results and rejects in one pass, rejects in a folder of their own.

    Args:
        groups: what to place.
        stage: where to write; the caller commits.
        options: how; with `stop_at_reject` nothing is written once a group is rejected.
        form: parquet or json.
        huge_tasks: groups with more tasks are placed by all workers together.

    Raises:
        BadTable: a group was rejected and `stop_at_reject` asks to fail.
    """
    started = time.perf_counter()
    unique, rejects = groups, []
    repeated = repeated_names(groups)
    if not repeated.isEmpty():
        unique, rejects = without(groups, repeated), [repeated_rejects(groups, repeated)]
        if options.stop_at_reject:
            raise refused(rejects)
    counts, huge_rejects = _write_answers(unique, stage, options, form=form, huge_tasks=huge_tasks)
    if counts["rejects"]:
        rejects.append(rejects_with_places(_rejected(stage, form), huge_rejects, groups))
        if options.stop_at_reject:
            raise refused(rejects)
    _collect_results(stage, counts["placed"], form)
    stored = write_rejects(rejects, stage, form=form) if rejects else None
    rejected = stored.count() if stored is not None else 0
    stage.files.delete(f"{stage.path}/{EVERYTHING}")
    summary = Summary(
        groups=counts["placed"] + rejected,
        rejects=rejected,
        **{name: counts[name] for name in ("huge", *COUNTS)},
        seconds=round(time.perf_counter() - started, 3),
        first_rejects=first_sentences(stored) if stored is not None else (),
    )
    stage.write_text(SUMMARY, json.dumps(asdict(summary)) + "\n")
    return summary


def _write_answers(
    groups: Groups, stage: Stage, options: Options, *, form: str, huge_tasks: int
) -> tuple[Counter[str], list[Reject]]:
    """Write results and rejects; how many of each, and the rejects of huge groups, not written."""
    classes = size_classes(groups)
    has_huge = any(size.tasks_max > huge_tasks for size in classes)
    small, large = split(groups, huge_tasks) if has_huge else (groups, None)
    answers = place_groups(small, options, classes=classes)
    if large is not None and large.is_text:
        only_rejects = placing(options, problem_reader(options), only_rejects=True)
        answers = answers.unionByName(large.frame.mapInArrow(only_rejects, ANSWER))
    counts = _write_split(answers, stage, form)
    rejects = []
    for huge in placed_huge(large, options) if large is not None else ():
        written = _write_huge(huge, stage, form) if isinstance(huge, HugePlan) else huge
        if isinstance(written, Reject):
            rejects.append(written)
        else:
            counts += written
    return counts + Counter(rejects=len(rejects)), rejects


def _write_split(answers: DataFrame, stage: Stage, form: str) -> Counter[str]:
    """Write results and rejects into two folders by one job; how many of each."""
    seen = Observation("batch")
    is_reject = f.col("reject").isNotNull()
    observed = answers.observe(
        seen,
        f.count_if(~is_reject).alias("placed"),
        f.count_if(is_reject).alias("rejects"),
        *[f.coalesce(f.sum(f"_{name}"), f.lit(0)).alias(name) for name in COUNTS],
    )
    # A task writes both files at once; otherwise Spark sorts all results into one after the other.
    answers.sparkSession.conf.set("spark.sql.maxConcurrentOutputFileWriters", "2")
    rows = observed.select(*WRITTEN.names, is_reject.alias(_IS_REJECT))
    stage.write(rows, EVERYTHING, form=form, folders=[_IS_REJECT])
    return Counter(seen.get)


def _write_huge(huge: HugePlan, stage: Stage, form: str) -> Counter[str] | Reject:
    """Write the result of a huge group; what it adds to the counts, or why it is rejected."""
    write = partial(stage.write, huge.answer.to(WRITTEN), form=form)
    reject = on_workers(huge.name, huge.position, write)
    if isinstance(reject, Reject):
        return reject
    seen = huge.plan.counts.get
    return Counter(placed=1, huge=1, **{name: int(seen[name]) for name in COUNTS})


def _rejected(stage: Stage, form: str) -> DataFrame:
    """The rejects that the workers wrote, in the schema `results.WRITTEN`; maybe none."""
    spark, path = stage.files.spark, f"{stage.path}/{EVERYTHING}/{_IS_REJECT}=true"
    if not stage.files.exists(path):
        return spark.createDataFrame([], WRITTEN)
    return spark.read.schema(WRITTEN).format(form).load(path)


def _collect_results(stage: Stage, placed: int, form: str) -> None:
    """Move the files of the results to where they belong; without any, write an empty one."""
    path = f"{stage.path}/{EVERYTHING}/{_IS_REJECT}=false"
    if stage.files.exists(path):
        stage.files.move_all(path, stage.path)
    if not placed:
        stage.write(stage.files.spark.createDataFrame([], WRITTEN), form=form)
