"""``spark-assign simulate``: simulate rolling bounces on all workers."""

import json
import sys
import time
from typing import Any

import click
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from assignor.cli import BadInput, seeds_option
from spark_assign.cli.options import job, output_options, subcommand
from spark_assign.tables import staged, step
from spark_assign.whatif import SIMULATED, simulated
from system_tests.cli import (
    MAX_SIMULATED,
    MAX_THREADS,
    draw_option,
    faults_option,
    force_option,
    group_options,
    offline_option,
    partitions_option,
    topology_option,
)
from system_tests.engine import OptionError
from system_tests.sim import FAULTS, read_options

_LISTED = 100
_HELP = """Simulate rolling bounces on all workers; --out gets one row per seed.

Options and outcomes are those of `rolling-bounce simulate`.
"""
_EXAMPLES = """
PROGRAM simulate --seeds 100000 --out bounces/
PROGRAM simulate --seeds 500 --from 3.1 --to native --faults all --out b/
PROGRAM simulate --seeds 50 --from 2.0.1 --to 2.3.0 --force --out broken/
"""
_EXITS = {1: "a rule was broken", 2: "an impossible path"}


@subcommand("simulate", "Simulate rolling bounces on all workers.", _HELP, _EXAMPLES, _EXITS)
@seeds_option(required=True)
@click.option(
    "--first-seed", type=click.IntRange(0), default=0, show_default=True, help="The first seed."
)
@group_options(drawn=True, members=MAX_SIMULATED, threads=MAX_THREADS)
@partitions_option()
@faults_option(f"none, all, or a list out of {', '.join(FAULTS)}.")
@draw_option
@topology_option
@offline_option
@force_option
@output_options
def simulate(**given: Any) -> None:
    """Run the subcommand."""
    try:
        options = read_options(given | {"seed": 0})
    except (OptionError, ValueError) as error:
        raise BadInput(str(error)) from None
    started = time.monotonic()
    with job("simulate", given, label="bounces") as spark:
        rows = simulated(spark, options, given["seeds"], first_seed=given["first_seed"])
        with staged(spark, given["out"], overwrite=given["overwrite"]) as stage:
            with step(spark, "bounces: simulate every seed"):
                stage.write(rows)
            with step(spark, "bounces: count failures"):
                summary = _summary(spark.read.schema(SIMULATED).parquet(stage.path))
    summary |= {"seconds": round(time.monotonic() - started, 3), "out": given["out"]}
    _report(summary, given["form"])
    sys.exit(1 if summary["failed"] else 0)


def _summary(rows: DataFrame) -> dict[str, Any]:
    failed = rows.where(~f.col("ok"))
    [counts] = rows.agg(
        f.count("*").alias("seeds"), f.count_if(~f.col("ok")).alias("failed")
    ).collect()
    columns = ("seed", "from", "to", "rule", "sentence", "known", "replay")
    listed = failed.select(*columns).orderBy("seed").limit(_LISTED).collect()
    return counts.asDict() | {"failures": [row.asDict() for row in listed]}


def _report(summary: dict[str, Any], form: str) -> None:
    if form == "json":
        click.echo(json.dumps(summary))
        return
    click.echo(
        f"{summary['seeds']} bounces in {summary['seconds']:.1f} s, {summary['failed']} of them "
        f"broke a rule; {summary['out']}"
    )
    for failure in summary["failures"]:
        click.echo(f"  {failure['replay']}\n    {failure['rule']}: {failure['sentence']}")
