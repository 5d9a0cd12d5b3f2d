"""``spark-assign simulate``: seeds out to all workers, failures back with their replay command."""

import json
import sys
import time
from typing import Any

import click
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_assign.command import BAD_INPUT, STATUS, fail, job, output_options, spark_options
from spark_assign.output import staged
from spark_assign.simulate import SIMULATED, simulated
from system_tests.sim import FAULTS, OptionError, read_options

_LISTED = 100
_HELP = f"""Simulate rolling bounces, a million if you like; --out gets a row for each seed.

Options are those of `rolling-bounce simulate`, and so are the outcomes, seed by seed.

\b
Examples:
  spark-assign simulate --seeds 100000 --out bounces/
  spark-assign simulate --seeds 5000 --from 3.1 --to native --faults all --out bounces/
  spark-assign simulate --seeds 50 --from 2.0.1 --to 2.3.0 --force --out broken/

Exit status 1 also when a rule was broken.

{STATUS}
"""


@click.command(help=_HELP, short_help="Simulate rolling bounces on all workers.")
@click.option("--seeds", type=click.IntRange(1), required=True, metavar="N", help="How many.")
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--from", "old", metavar="RELEASE", help="What the group runs; drawn by default.")
@click.option("--to", "new", metavar="RELEASE", help="What it is brought to; drawn by default.")
@click.option("--members", type=click.IntRange(1, 26), default=3, show_default=True)
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option("--static", is_flag=True, help="Members carry a group.instance.id.")
@click.option("--partitions", type=click.IntRange(1, 1000), default=6, show_default=True)
@click.option(
    "--faults", default="none", show_default=True, help=f"none, all, or out of {','.join(FAULTS)}."
)
@click.option("--offline", is_flag=True, help="Stop all, start all, without upgrade.from.")
@click.option("--force", is_flag=True, help="One bounce without a pin, come what may.")
@output_options
@spark_options
def simulate(**given: Any) -> None:
    """Entry point of the subcommand."""
    try:
        options = read_options(given | {"seed": 0})
    except (OptionError, ValueError) as error:
        fail(str(error), BAD_INPUT)
    began = time.monotonic()
    with job(
        "spark-assign simulate",
        "bounces",
        cores=given["cores"],
        driver_memory=given["driver_memory"],
    ) as spark:
        rows = simulated(spark, options, given["seeds"], first_seed=given["first_seed"])
        with staged(spark, given["out"], overwrite=given["overwrite"]) as stage:
            stage.write(rows)
            summary = _summary(spark.read.schema(SIMULATED).parquet(stage.path))
    summary |= {"seconds": round(time.monotonic() - began, 3), "out": given["out"]}
    _report(summary, given["style"])
    sys.exit(1 if summary["failed"] else 0)


def _summary(rows: DataFrame) -> dict[str, Any]:
    failed = rows.where(~f.col("ok"))
    [counts] = rows.agg(
        f.count("*").alias("seeds"), f.count_if(~f.col("ok")).alias("failed")
    ).collect()
    columns = ("seed", "from", "to", "rule", "sentence", "known", "replay")
    listed = failed.select(*columns).orderBy("seed").limit(_LISTED).collect()
    return counts.asDict() | {"failures": [row.asDict() for row in listed]}


def _report(summary: dict[str, Any], style: str) -> None:
    if style == "json":
        click.echo(json.dumps(summary))
        return
    click.echo(
        f"{summary['seeds']} bounces in {summary['seconds']:.1f} s, {summary['failed']} of them "
        f"broke a rule; {summary['out']}"
    )
    for failure in summary["failures"]:
        click.echo(f"  {failure['replay']}\n    {failure['rule']}: {failure['sentence']}")
