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

from pyspark.sql import DataFrame

from encoding import shown
from spark_assign.batch.huge_groups import HugePlan, on_workers, placed_huge, split
from spark_assign.batch.plans import Output, Plans, answer_schema
from spark_assign.batch.worth import GroupWorth
from spark_assign.tables import (
    COUNTS,
    Groups,
    Reject,
    Stage,
    first_sentences,
    refused,
    rejects_with_places,
    repeated_names,
    repeated_rejects,
    step,
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
SUMMARY = "_summary.json"
# Rows of an Arrow batch; a row is a whole group.
_ARROW_ROWS = 256
_ALL_PLANS = Output()


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
        worth: number of groups whose worth is above 0.
        most_worth: those with the most, as many as the output keeps, else a few.
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
    worth: int = 0
    most_worth: tuple[GroupWorth, ...] = field(default=())


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
    return frame.mapInArrow(placing(options, read, keep=groups.keep), answer_schema(groups))


def run_batch(
    groups: Groups,
    stage: Stage,
    options: Options,
    *,
    output: Output = _ALL_PLANS,
    huge_tasks: int = HUGE_TASKS,
) -> Summary:
    """Place all groups; write results and rejects in one pass, rejects in a folder of their own.

    Args:
        groups: what to place.
        stage: where to write; the caller commits.
        options: how; with `stop_at_reject` nothing is written once a group is rejected.
        output: what of it is written, and how.
        huge_tasks: groups with more tasks are placed by all workers together.

    Raises:
        BadTable: a group was rejected and `stop_at_reject` asks to fail.
    """
    started = time.perf_counter()
    unique, rejects = groups, []
    repeated = repeated_names(groups)
    with step(stage.files.spark, "batch: look for repeated names"):
        is_any_repeated = not repeated.isEmpty()
    if is_any_repeated:
        unique, rejects = without(groups, repeated), [repeated_rejects(groups, repeated)]
        if options.stop_at_reject:
            raise refused(rejects)
    plans = Plans(stage=stage, output=output, schema=answer_schema(groups))
    counts, huge_rejects = _write_answers(unique, plans, options, huge_tasks=huge_tasks)
    if counts["rejects"]:
        rejects.append(rejects_with_places(plans.rejected(), huge_rejects, groups))
        if options.stop_at_reject:
            raise refused(rejects)
    with step(stage.files.spark, "batch: rank the groups by worth"):
        worth = plans.ranking(worth=counts["worth"])
    plans.publish(counts["placed"])
    stored = write_rejects(rejects, stage, form=output.form) if rejects else None
    rejected = stored.count() if stored is not None else 0
    plans.clear()
    summary = Summary(
        groups=counts["placed"] + rejected,
        rejects=rejected,
        **{name: counts[name] for name in ("huge", *COUNTS)},
        seconds=round(time.perf_counter() - started, 3),
        first_rejects=first_sentences(stored) if stored is not None else (),
        worth=counts["worth"],
        most_worth=worth,
    )
    stage.write_text(SUMMARY, json.dumps(asdict(summary)) + "\n")
    return summary


def _write_answers(
    groups: Groups, plans: Plans, options: Options, *, huge_tasks: int
) -> tuple[Counter[str], list[Reject]]:
    """Write results and rejects; how many of each, and the rejects of huge groups, not written."""
    spark = groups.frame.sparkSession
    with step(spark, "batch: count the groups by size"):
        classes = size_classes(groups)
    has_huge = any(size.tasks_max > huge_tasks for size in classes)
    small, large = split(groups, huge_tasks) if has_huge else (groups, None)
    answers = place_groups(small, options, classes=classes)
    if large is not None and large.is_text:
        read = problem_reader(options)
        only_rejects = placing(options, read, only_rejects=True, keep=groups.keep)
        answers = answers.unionByName(large.frame.mapInArrow(only_rejects, plans.schema))
    with step(spark, "batch: place the groups"):
        counts = plans.write_answers(answers)
    rejects = []
    for huge in placed_huge(large, options) if large is not None else ():
        written = _write_huge(huge, plans) if isinstance(huge, HugePlan) else huge
        if isinstance(written, Reject):
            rejects.append(written)
        else:
            counts += written
    return counts + Counter(rejects=len(rejects)), rejects


def _write_huge(huge: HugePlan, plans: Plans) -> Counter[str] | Reject:
    """Write the result of a huge group; what it adds to the counts, or why it is rejected."""
    with step(huge.answer.sparkSession, f"batch: place huge group {shown(huge.name)}"):
        write = partial(plans.write_plan, huge.answer)
        reject = on_workers(huge.name, huge.position, write)
    if isinstance(reject, Reject):
        return reject
    seen = huge.plan.counts.get
    return Counter(placed=1, huge=1, **{name: int(seen[name]) for name in COUNTS})
