"""Every scenario for every group: one row per case.

A worker applies each case to the group's state and rebalances until the group has settled. If there
are few groups, several workers share the cases of a group.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

from assignor import GroupState
from assignor.placement import Strategy, strategy_of
from encoding import shown
from spark_assign.tables import Groups, Reject, guarded, printable_name
from spark_assign.whatif.measures import COUNTED, LOADS, RESTORE_RATE, measures
from spark_assign.whatif.scenarios import Scenario, case_of, subjects
from spark_assign.workers import (
    Batches,
    Kernel,
    Options,
    Read,
    balanced,
    problem_reader,
    size_classes,
    table_reader,
)

_SLICES_MAX = 64
_TASKS_PER_CORE = 4
_ERROR_MAX = 1_000
WHATIF = StructType(
    [
        *[StructField(name, StringType()) for name in ("name", "scenario", "subject")],
        *[StructField(name, LongType()) for name in COUNTED],
        *[StructField(name, DoubleType()) for name in LOADS],
        StructField("settled", BooleanType()),
        StructField("error", StringType()),
    ]
)
_ARROW = pa.schema(
    [
        *[pa.field(name, pa.string()) for name in ("name", "scenario", "subject")],
        *[pa.field(name, pa.int64()) for name in COUNTED],
        *[pa.field(name, pa.float64()) for name in LOADS],
        pa.field("settled", pa.bool_()),
        pa.field("error", pa.string()),
    ]
)


def what_if(
    groups: Groups,
    scenarios: tuple[Scenario, ...],
    options: Options,
    *,
    restore_rate: int = RESTORE_RATE,
) -> DataFrame:
    """A row for each group, scenario and subject, in the schema `WHATIF`.

    Args:
        groups: the groups before the scenarios.
        scenarios: what happens to each.
        options: how groups are placed.
        restore_rate: records that a thread restores in a second, for the model of time.
    """
    groups = replace(groups, frame=groups.filled())
    spark = groups.frame.sparkSession
    cores = spark.sparkContext.defaultParallelism
    classes = size_classes(groups)
    count = max(1, sum(size.groups for size in classes))
    slices = min(_SLICES_MAX, -(-cores * _TASKS_PER_CORE // count))
    rows = balanced(groups, classes, cores=cores)
    if slices > 1:
        parts = f.sequence(f.lit(0), f.lit(slices - 1))
        rows = groups.frame.withColumn("_slice", f.explode(parts)).repartition(count * slices)
    read = problem_reader(options) if groups.is_text else table_reader(options)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "16")
    return rows.mapInArrow(_kernel(read, scenarios, options, slices, restore_rate), WHATIF)


def _kernel(
    read: Read,
    scenarios: tuple[Scenario, ...],
    options: Options,
    slices: int,
    restore_rate: int,
) -> Kernel:
    def play_group(name: str, state: GroupState, part: int, strategy: Strategy) -> pa.RecordBatch:
        cases = [(s, subject) for s in scenarios for subject in subjects(s, state)]
        rows = []
        for scenario, subject in cases[part::slices]:
            case = case_of(scenario, subject, state, strategy)
            rows.append(
                {"name": name, "scenario": str(scenario), "subject": subject}
                | measures(case, restore_rate=restore_rate)
                | {"error": case.error or None}
            )
        return pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    def play_all(batches: Batches) -> Iterator[pa.RecordBatch]:
        strategy = strategy_of(options.strategy)
        for batch in batches:
            parts = batch.column("_slice").to_pylist() if slices > 1 else [0] * batch.num_rows
            for part, (name, state) in zip(parts, read(batch), strict=True):
                played = state
                if isinstance(state, Reject):
                    yield _failed_row(name, state, part)
                    continue
                played = guarded(name, partial(play_group, name, state, part, strategy))
                yield _failed_row(name, played, part) if isinstance(played, Reject) else played

    return play_all


def _failed_row(name: str, reject: Reject, part: int) -> pa.RecordBatch:
    """The row of a group that failed; only one of the workers that share the group writes it."""
    row = {
        "name": printable_name(name),
        "scenario": "now",
        "subject": "",
        "error": shown(reject, limit=_ERROR_MAX),
    }
    return pa.RecordBatch.from_pylist([row] if part == 0 else [], schema=_ARROW)
