"""Simulate rolling bounces on all workers: one row per seed.

The outcome of a bounce depends on the seed and the options only, so a row does not depend on the
worker. Each row has the command that replays its bounce on any machine.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from spark_assign.workers import Batches
from system_tests.sim import BounceOptions, outcome_document, run_bounce

_TEXT, _NUMBER = StringType(), LongType()
COUNTED = ("total", "membership", "version", "followup", "repeated", "version_bound")
COSTS = ("pause_ms", "longest_pause_ms", "paused_records", "restored", "moved", "bytes")
SIMULATED = StructType(
    [
        StructField("seed", _NUMBER),
        StructField("from", _TEXT),
        StructField("to", _TEXT),
        StructField("ok", BooleanType()),
        StructField("rule", _TEXT),
        StructField("sentence", _TEXT),
        StructField("known", ArrayType(_TEXT)),
        *[StructField(f"rebalances_{name}", _NUMBER) for name in COUNTED],
        *[StructField(name, _NUMBER) for name in COSTS],
        StructField("replay", _TEXT),
        StructField("document", _TEXT),
    ]
)
_ARROW = pa.schema(
    [
        pa.field("seed", pa.int64()),
        pa.field("from", pa.string()),
        pa.field("to", pa.string()),
        pa.field("ok", pa.bool_()),
        pa.field("rule", pa.string()),
        pa.field("sentence", pa.string()),
        pa.field("known", pa.list_(pa.string())),
        *[pa.field(f"rebalances_{name}", pa.int64()) for name in COUNTED],
        *[pa.field(name, pa.int64()) for name in COSTS],
        pa.field("replay", pa.string()),
        pa.field("document", pa.string()),
    ]
)
# Seeds of a partition: a few seconds of work, so that all workers end at about the same time.
_SEEDS_PER_PARTITION = 25
_ROWS = 32


def simulated(
    spark: SparkSession, options: BounceOptions, seeds: int, *, first_seed: int = 0
) -> DataFrame:
    """One row per seed in the schema `SIMULATED`, from seed `first_seed`.

    Args:
        spark: the session.
        options: of every bounce; its seed is ignored.
        seeds: number of seeds.
        first_seed: the first seed.
    """
    cores = spark.sparkContext.defaultParallelism
    parts = max(min(cores, seeds), -(-seeds // _SEEDS_PER_PARTITION))

    def bounce(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column("id").to_pylist()
            for start in range(0, len(numbers), _ROWS):
                rows = [outcome_row(options, seed) for seed in numbers[start : start + _ROWS]]
                yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    numbers = spark.range(first_seed, first_seed + seeds, numPartitions=parts)
    return numbers.mapInArrow(bounce, SIMULATED)


def outcome_row(options: BounceOptions, seed: int) -> dict[str, Any]:
    """Run one seed; `document` is the output of `rolling-bounce simulate --format json`."""
    document: dict[str, Any] = outcome_document(run_bounce(replace(options, seed=seed)))
    broken = document["broken"][0] if document["broken"] else {"rule": None, "sentence": None}
    return {
        **{name: document[name] for name in ("seed", "from", "to", "ok", "known", "replay")},
        "rule": broken["rule"],
        "sentence": broken["sentence"],
        **{f"rebalances_{name}": document["rebalances"][name] for name in COUNTED},
        **{name: document["cost"][name] for name in COSTS},
        "document": json.dumps(document, sort_keys=True),
    }
