"""``spark-assign compare``: compare plans with other answers, group by group."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import click
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from assignor.cli import complete_path, format_option
from assignor.problems import (
    ProblemError,
    checked_object,
    object_at,
    parse_problem,
    quoted,
    texts_at,
)
from encoding import shown
from spark_assign.cli.options import job, spark_options, subcommand
from spark_assign.tables import (
    POSITION_TYPE,
    RESULT,
    BadTable,
    fitted,
    form_of,
    read_groups,
    with_places,
)

_SHOWN = 5
_WRONG = "wrong"
_KINDS = ("active", "standby", "warmup")
# Every line is parsed as the first one; `with_places` knows its number.
_LINE_NUMBER = r"^line 1(?:, |: | )"
_HELP = """Compare plans with answers of `assignor assign --format json`, group by group.

Two answers are equal if every client has the same active, standby and warm-up tasks, and both or
none ask for a probing rebalance. The order of tasks does not matter. An answer with `error` has no
plan and equals none; so does a name that an input gives twice.
"""
_EXAMPLES = """
assignor assign --problem groups.jsonl --format json > answers.jsonl
PROGRAM batch --in groups.jsonl --out plans/
PROGRAM compare plans/ answers.jsonl
"""
_EXITS = {
    0: "all groups are equal",
    1: "groups differ, have no plan, or are not once in each input",
    2: "a line is no answer; the message names it",
}
_ANSWER = StructType(
    [RESULT["name"], RESULT["probing"], RESULT["clients"], StructField("problem", StringType())]
)
_READ = StructType([*_ANSWER, StructField("position", POSITION_TYPE)])
_ARROW = to_arrow_schema(_READ)


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
        sides = [read_results(spark, given[side]) for side in ("plans", "answers")]
        counted = compared(*(side.frame for side in sides))
        for side in sides:
            side.check()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Results of one input.

    Attributes:
        frame: columns `name`, `probing` and `clients` of `schemas.RESULT`, among others.
        source: the lines of the input, or None for Parquet.
        wrong: has the number of lines that are no answers once all of `frame` has been read.
    """

    frame: DataFrame
    source: DataFrame | None = None
    wrong: Observation | None = None

    def check(self) -> None:
        """Check the lines that a job has read; they are parsed again only to name wrong ones.

        Raises:
            BadTable: a line is no answer; names the first by file and line.
        """
        if self.source is None or self.wrong is None or self.wrong.get.get(_WRONG) == 0:
            return
        problems = self.frame.where("problem is not null").select("problem", "position")
        rows = with_places(problems.limit(_SHOWN), self.source, is_text=True).collect()
        if rows:
            raise BadTable("; ".join(sorted(f"{row.place}: {row.problem}" for row in rows)))


def read_results(spark: SparkSession, path: str) -> Results:
    """Results under a path, Parquet or JSON lines; call `check` once they have been compared.

    Raises:
        BadTable: nothing is there, or a column is missing.
    """
    if form_of(spark, path) == "parquet":
        return Results(frame=fitted(spark.read.parquet(path), RESULT, what=path))
    source = read_groups(spark, path, form="jsonl").frame
    answers = source.select("value", "position").mapInArrow(_answers, _READ)
    wrong = Observation()
    count = f.count_if(f.col("problem").isNotNull()).alias(_WRONG)
    return Results(frame=answers.observe(wrong, count), source=source, wrong=wrong)


def compared(left: DataFrame, right: DataFrame) -> dict[str, Any]:
    """Compare two tables of results: number of groups, of equal groups, names of some others.

    Args:
        left: a table with columns `name`, `probing` and `clients` of `schemas.RESULT`; clients are
            null where there is no plan.
        right: another.
    """
    left, right = (
        frame.select("name", f.when(f.col("clients").isNotNull(), _comparable()).alias("answer"))
        .groupBy("name")
        # Null if the name is given twice, too.
        .agg(f.when(f.count("*") == 1, f.max("answer")).alias(side))
        for frame, side in ((left, "left"), (right, "right"))
    )
    is_same = f.coalesce(f.col("left") == f.col("right"), f.lit(False))  # noqa: FBT003 a value
    # Stored, because two jobs read it, and the inputs are to be read once.
    pairs = left.join(right, "name", "full_outer").select("name", is_same.alias("same")).persist()
    try:
        [counts] = pairs.agg(
            f.count("*").alias("total"),
            f.coalesce(f.sum(f.col("same").cast("int")), f.lit(0)).alias("equal"),
        ).collect()
        rows = pairs.where(~f.col("same")).orderBy("name").select("name").limit(_SHOWN).collect()
    finally:
        pairs.unpersist()
    return {
        "total": counts.total,
        "equal": counts.equal,
        "different": [row.name for row in rows],
    }


def _comparable() -> Column:
    """The answer as text: probing, and the sorted tasks of every client."""
    none = f.array().cast("array<string>")

    def sorted_entry(pair: Column) -> Column:
        kinds = [f.sort_array(f.coalesce(pair["value"][kind], none)).alias(kind) for kind in _KINDS]
        return f.struct(pair["key"].alias("client"), *kinds)

    clients = f.sort_array(f.transform(f.map_entries("clients"), sorted_entry))
    probing = f.coalesce("probing", f.lit(False))  # noqa: FBT003 a value, no switch
    return f.to_json(f.struct(probing.alias("probing"), clients.alias("clients")))


def _answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers of lines; blank lines are left out."""
    for batch in batches:
        lines = batch.column("value").cast(pa.binary()).to_pylist()
        rows = [
            _answer(line) | {"position": position}
            for line, position in zip(lines, batch.column("position").to_pylist(), strict=True)
            if line.strip()
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)


def _answer(line: bytes) -> dict[str, Any]:
    """Name, probing and clients of an answer, or the problem with it."""
    try:
        return _read_answer(line)
    except ProblemError as error:
        return {"problem": re.sub(_LINE_NUMBER, "", str(error))}


def _read_answer(line: bytes) -> dict[str, Any]:
    """Name, probing and clients of an answer; the name only if it is an error.

    Raises:
        ProblemError: the line is no answer.
    """
    data = parse_problem(line)
    name, probing = data.get("name"), data.get("probing")
    if not isinstance(name, str):
        raise ProblemError(f"name is {quoted(name)}; give text")
    if "error" in data and "clients" not in data:
        return {"name": name}
    if not isinstance(probing, bool | None):
        raise ProblemError(f"probing is {quoted(probing)}; give true or false")
    if "clients" not in data:
        raise ProblemError("there is neither clients nor error; give an answer of `assign`")
    clients = {
        client: {kind: texts_at(checked_object(given, client), kind, client) for kind in _KINDS}
        for client, given in object_at(data, "clients").items()
    }
    return {"name": name, "probing": probing, "clients": list(clients.items())}
