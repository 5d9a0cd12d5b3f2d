"""``spark-assign compare``: compare plans with other answers, group by group."""

import json
import sys
from typing import Any

import click
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from assignor.cli import complete_path, format_option
from encoding import shown
from spark_assign.cli.options import job, spark_options, subcommand
from spark_assign.tables import RESULT, fitted, form_of

_SHOWN = 5
_HELP = """Compare plans with answers of `assignor assign --format json`, group by group.

Two answers are equal if every client has the same active, standby and warm-up tasks, and both or
none ask for a probing rebalance. The order of tasks does not matter.
"""
_EXAMPLES = """
assignor assign --problem groups.jsonl --format json > answers.jsonl
PROGRAM batch --in groups.jsonl --out plans/
PROGRAM compare plans/ answers.jsonl
"""
_EXITS = {0: "all groups are equal", 1: "groups differ, or are in one input only"}


@subcommand(
    "compare", "Compare plans with other answers, group by group.", _HELP, _EXAMPLES, _EXITS
)
@click.argument("plans", shell_complete=complete_path("file"))
@click.argument("answers", shell_complete=complete_path("file"))
@format_option()
@spark_options
def compare(**given: Any) -> None:
    """Run the subcommand."""
    with job("compare", given) as spark:
        counted = compared(*(read_results(spark, given[side]) for side in ("plans", "answers")))
    if given["form"] == "json":
        click.echo(json.dumps(counted))
    else:
        click.echo(f"{counted['equal']} / {counted['total']} equal")
        for name in counted["different"]:
            click.echo(f"  differs: {shown(name)}")
        more = counted["total"] - counted["equal"] - len(counted["different"])
        if more:
            click.echo(f"  and {more} more")
    sys.exit(0 if counted["equal"] == counted["total"] else 1)


def read_results(spark: SparkSession, path: str) -> DataFrame:
    """Results under a path, Parquet or JSON lines.

    Raises:
        BadTable: nothing is there, or a column is missing.
    """
    if form_of(spark, path) == "jsonl":
        return spark.read.schema(RESULT).json(path)
    return fitted(spark.read.parquet(path), RESULT, what=path)


def compared(left: DataFrame, right: DataFrame) -> dict[str, Any]:
    """Compare two tables of results: number of groups, of equal groups, names of some others.

    Args:
        left: a table in the schema `schemas.RESULT`.
        right: another.
    """
    left, right = (
        frame.select("name", _comparable().alias(side))
        for frame, side in ((left, "left"), (right, "right"))
    )
    pairs = left.join(right, "name", "full_outer").withColumn(
        "same", f.col("left").eqNullSafe(f.col("right"))
    )
    [counts] = pairs.agg(
        f.count("*").alias("total"),
        f.coalesce(f.sum(f.col("same").cast("int")), f.lit(0)).alias("equal"),
    ).collect()
    rows = pairs.where(~f.col("same")).orderBy("name").select("name").limit(_SHOWN).collect()
    return {
        "total": counts.total,
        "equal": counts.equal,
        "different": [row.name for row in rows],
    }


def _comparable() -> Column:
    """The answer as text: probing, and the sorted tasks of every client."""
    none = f.array().cast("array<string>")

    def sorted_entry(pair: Column) -> Column:
        kinds = [
            f.sort_array(f.coalesce(pair["value"][kind], none)).alias(kind)
            for kind in ("active", "standby", "warmup")
        ]
        return f.struct(pair["key"].alias("client"), *kinds)

    clients = f.sort_array(f.transform(f.map_entries("clients"), sorted_entry))
    return f.to_json(f.struct("probing", clients.alias("clients")))
