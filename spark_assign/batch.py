"""Thousands of groups, each placed by the same core as `assignor assign` does it.

One row is one group, in and out: a worker takes a batch of rows as Arrow, runs the core on each and
hands Arrow back. Groups of one size class share partitions of equal work (`balance`); a group above
`huge_tasks` is placed by all workers together (`huge`), and so holds up nobody.
"""

import json
import time
from dataclasses import asdict, dataclass, field

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_assign.balance import balanced, size_classes
from spark_assign.checks import Reject
from spark_assign.errors import BadTable
from spark_assign.inputs import Groups
from spark_assign.kernel import Options, placing, problem_reader, table_reader
from spark_assign.output import Stage
from spark_assign.results import COUNTS
from spark_assign.schemas import REJECT, RESULT

HUGE_TASKS = 100_000
REJECTS = "_rejects"
SUMMARY = "_summary.json"
# Rows that Arrow hands over at once; a row is a whole group.
_ARROW_ROWS = 256
_SHOWN = 3
_ERROR = StructField("error", StringType())
_OUT = StructType(
    [*RESULT.fields, _ERROR, *[StructField(f"_{name}", LongType()) for name in COUNTS]]
)


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


def place_groups(groups: Groups, options: Options, *, cores: int | None = None) -> DataFrame:
    """The answers of all groups: columns of `schemas.RESULT`, `error` and counts (`_tasks` ...).

    Args:
        groups: any table of groups.
        options: how they are placed.
        cores: how many are to be kept busy; the session's own number by default.
    """
    classes = size_classes(groups)
    busy = cores or groups.frame.sparkSession.sparkContext.defaultParallelism
    return _placed(balanced(groups, classes, cores=busy), groups, options)


def _placed(frame: DataFrame, groups: Groups, options: Options) -> DataFrame:
    read = problem_reader(options) if groups.is_text else table_reader(options)
    frame.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ARROW_ROWS))
    return frame.mapInArrow(placing(options, read), _OUT)


def run_batch(
    spark: SparkSession, groups: Groups, stage: Stage, options: Options, *, form: str = "parquet"
) -> Summary:
    """Place all groups and write the answers, rejects apart.

    Args:
        spark: the session.
        groups: what to place.
        stage: where to write; the caller commits.
        options: how; with `stop_at_reject` nothing is written once a group is rejected.
        form: parquet or json.

    Raises:
        BadTable: a group was rejected and `stop_at_reject` asks to fail.
    """
    started = time.perf_counter()
    seen = Observation("batch")
    answers = place_groups(groups, options).observe(
        seen,
        f.count(f.lit(1)).alias("groups"),
        f.count("error").alias("rejects"),
        *[f.coalesce(f.sum(f"_{name}"), f.lit(0)).alias(name) for name in COUNTS],
    )
    everything = "_all"
    stage.write(answers.select(*RESULT.names, "error"), everything, form=form)
    counted = dict(seen.get)
    rejects: tuple[str, ...] = ()
    if counted["rejects"]:
        rejects = _set_apart(spark, stage, everything, options, form=form, counted=counted)
    else:
        stage.files.lift(f"{stage.path}/{everything}")
    summary = Summary(
        **counted, seconds=round(time.perf_counter() - started, 3), first_rejects=rejects
    )
    stage.write_text(SUMMARY, json.dumps(asdict(summary)) + "\n")
    return summary


def _set_apart(
    spark: SparkSession,
    stage: Stage,
    name: str,
    options: Options,
    *,
    form: str,
    counted: dict[str, int],
) -> tuple[str, ...]:
    """Write the rejects into a table of their own; the first of them as sentences."""
    path = f"{stage.path}/{name}"
    rows = spark.read.schema(StructType([*RESULT.fields, _ERROR])).format(form).load(path)
    rejects = (
        rows.where("error is not null")
        .select(f.from_json("error", REJECT).alias("reject"))
        .select("reject.*")
    )
    first = rejects.orderBy("name", "column", "value").limit(_SHOWN).collect()
    sentences = tuple(str(Reject(**row.asDict())) for row in first)
    if options.stop_at_reject:
        more = counted["rejects"] - len(sentences)
        raise BadTable(
            f"{'; '.join(sentences)}{f'; and {more} more' if more else ''} (--on-error reject "
            "places the others)"
        )
    stage.write(rejects, REJECTS, form=form)
    stage.write(rows.where("error is null"), form=form)
    stage.files.delete(path)
    return sentences
