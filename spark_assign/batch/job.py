"""Place many groups, each as `assignor assign` does.

One row is one group, in the input and in the output. Workers read Arrow batches, place each group
and return Arrow batches. Lines of text are read once, in partitions of equal bytes, and placed
where they are read. Rows of tables, and lines of compressed files, are first distributed over
partitions of about equal work (`balance`). A group of more than `huge_tasks` tasks is placed by all
workers together (`huge`).
"""

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain

from pyspark.sql import DataFrame

from assignor.problems import worth_of
from encoding import shown
from spark_assign.batch.huge_groups import HugePlan, noted_groups, on_workers, placed_huge, split
from spark_assign.batch.line_pass import Written, unique_groups, write_lines
from spark_assign.batch.long_groups import placed_long
from spark_assign.batch.plans import Output, Plans, answer_schema
from spark_assign.batch.worth import GroupWorth, Ranking
from spark_assign.tables import (
    COUNTS,
    Groups,
    Reject,
    Stage,
    first_sentences,
    refused,
    rejects_with_places,
    step,
    write_rejects,
)
from spark_assign.workers import (
    Notes,
    Options,
    ReadSome,
    SizeClass,
    balanced,
    noting_reader,
    placing,
    problem_reader,
    set_batch_rows,
    size_classes,
    table_reader,
)

HUGE_TASKS = 100_000
SUMMARY = "_summary.json"
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
    groups: Groups,
    options: Options,
    *,
    classes: tuple[SizeClass, ...] | None = None,
    notes: Notes | None = None,
    ranking: Ranking | None = None,
) -> DataFrame:
    """Every group placed or rejected, in the schema `results.ANSWER`.

    Args:
        groups: any table of groups.
        options: how they are placed.
        classes: the groups counted by size, where that has been done.
        notes: of lines; huge groups are noted there, and not placed.
        ranking: the groups take part in it.
    """
    known = size_classes(groups) if classes is None else classes
    cores = groups.frame.sparkSession.sparkContext.defaultParallelism
    read: ReadSome = table_reader(options)
    if groups.is_text:
        read = problem_reader(options) if notes is None else noting_reader(options, notes)
    frame = balanced(groups, known, cores=cores)
    set_batch_rows(frame.sparkSession)
    note = None if ranking is None else ranking.note
    kernel = placing(options, read, keep=groups.keep, note=note)
    return frame.mapInArrow(kernel, answer_schema(groups))


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
    plans = Plans(stage=stage, output=output, schema=answer_schema(groups))
    write = _write_rows if groups.sizes is None else write_lines
    written = write(groups, plans, options, huge_tasks=huge_tasks)
    counts, rejects = written.counts, list(written.repeated)
    huge_rejects = _write_huge_groups(written, plans, options, counts)
    if counts["rejects"]:
        rejects.append(rejects_with_places(plans.rejected(), huge_rejects, written.groups))
        if options.stop_at_reject:
            raise refused(rejects)
    worth = written.ranked
    if counts["huge"] or output.only_worth is not None:
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


def _write_rows(groups: Groups, plans: Plans, options: Options, *, huge_tasks: int) -> Written:
    """Distribute groups by their work, and place them.

    Raises:
        BadTable: groups share a name, and `stop_at_reject` asks to fail.
    """
    unique, repeated = unique_groups(groups, options)
    spark = groups.frame.sparkSession
    with step(spark, "batch: count the groups by size"):
        classes = size_classes(unique)
    small, large = unique, None
    notes = Notes.of(spark.sparkContext, huge_tasks=huge_tasks) if groups.is_text else None
    # Sizes of lines are estimates.
    if not groups.is_text and any(size.tasks_max > huge_tasks for size in classes):
        small, large = split(unique, huge_tasks)
    ranking = Ranking.of(spark.sparkContext)
    answers = place_groups(small, options, classes=classes, notes=notes, ranking=ranking)
    with step(spark, "batch: place the groups"):
        counts = plans.write_answers(answers)
    if notes is not None:
        large = noted_groups(unique, notes)
    return Written(
        groups=groups,
        counts=counts,
        ranked=ranking.first.value,
        repeated=repeated,
        large=large,
    )


def _write_huge_groups(
    written: Written, plans: Plans, options: Options, counts: Counter[str]
) -> list[Reject]:
    """Place and write huge groups, and add to the counts; the rejects, which are not written."""
    large = () if written.large is None else placed_huge(written.large, options)
    rejects = []
    for huge in chain(large, placed_long(written.long, written.groups, options)):
        found = _write_huge(huge, plans) if isinstance(huge, HugePlan) else huge
        if isinstance(found, Reject):
            rejects.append(found)
        else:
            counts += found
    counts["rejects"] += len(rejects)
    return rejects


def _write_huge(huge: HugePlan, plans: Plans) -> Counter[str] | Reject:
    """Write the result of a huge group; what it adds to the counts, or why it is rejected."""
    with step(huge.answer.sparkSession, f"batch: place huge group {shown(huge.name)}"):
        write = partial(plans.write_plan, huge.answer)
        reject = on_workers(huge.name, huge.position, write, place=huge.place)
    if isinstance(reject, Reject):
        return reject
    seen = huge.plan.sums()
    is_worth = worth_of(huge.plan.gain.gained(seen), seen["touched"]) > 0
    totals = {name: seen[name] for name in COUNTS}
    return Counter(placed=1, huge=1, worth=int(is_worth), **totals)
