"""``spark-assign batch``: place the tasks of many groups."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from pyspark.sql import DataFrame, SparkSession

from assignor import named_strategy
from assignor.cli import complete_path, config_option, say, strategies_note, strategy_option
from encoding import shown
from spark_assign.batch import (
    HUGE_TASKS,
    Output,
    Summary,
    publish_plans,
    run_batch,
)
from spark_assign.cli.options import (
    frozen_settings,
    groups_of,
    in_option,
    inputs_of,
    job,
    on_error_option,
    output_options,
    print_rejects,
    subcommand,
)
from spark_assign.cli.session import starts_here
from spark_assign.cli.worth_table import print_worth
from spark_assign.huge import LINE_LIMIT, snapshot_groups
from spark_assign.tables import REJECTS, RESULT, BadTable, Groups, staged, step
from spark_assign.workers import Options, start_workers

_REFUSED_SHOWN = 3
# The most that was measured to be placed sooner by processes than by a new session on as many
# cores (docs/measurements/spark.md).
SMALL_BYTES = 72 << 20

_HELP = f"""Place the tasks of many groups, each as `assignor assign` does.

--in is a file, a directory or a glob of Parquet or of JSON lines (problems). Parquet has one row
per group with columns name, tasks, clients and config; or a directory has tasks/ and clients/ with
one row per task and client. --table reads such rows from a catalog. --store reads the snapshots of
a plan store, and writes the plans into it for the leaders of native groups. --out gets one row per
group: name, probing, clients, measures.

The summary lists the groups most worth touching: those that lose the most defects (tasks without a
client, uneven load, missing standbys) for the copies touched. --only-worth N keeps N of them.

{strategies_note()} Every worker must be able to import MODULE.

By default an invalid group fails the job: nothing is written, exit status 2. With --on-error reject
invalid groups are written to DIR/{REJECTS} with column, value and reason, the other groups are
placed, and the exit status is 1.
"""
_EXAMPLES = """
PROGRAM batch --in groups.jsonl --out plans/
PROGRAM batch --in 'groups/*.parquet' --out plans/ --on-error reject
PROGRAM batch --in groups/ --out plans/ --config num.standby.replicas=2
PROGRAM batch --in groups.jsonl --out plans/ --only-worth 10
PROGRAM batch --table fleet.groups --out plans/ --partition-by team
PROGRAM batch --store shared/plans --out plans/
spark-submit --py-files job/packages.zip job/run.py batch \\
    --in hdfs:///groups --out hdfs:///plans
"""
_EXITS = {
    1: "with --on-error reject: groups were rejected; with --store: a plan was refused",
    2: "with --on-error fail: a group is invalid",
}


_STORE_HELP = "Plan store: read its snapshots in place of --in, write the plans for the leaders."


@subcommand("batch", "Place the tasks of many groups.", _HELP, _EXAMPLES, _EXITS)
@in_option
@click.option(
    "--out-format",
    "out_form",
    type=click.Choice(["parquet", "jsonl"]),
    default="parquet",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Another column of the input that --out gets, too; may be repeated.",
)
@click.option(
    "--partition-by",
    multiple=True,
    metavar="COLUMN",
    help="Write a directory for each value of a column, which is kept; may be repeated.",
)
@click.option(
    "--only-worth",
    type=click.IntRange(1),
    metavar="N",
    help="Keep only the plans of the N groups most worth touching.",
)
@click.option("--store", metavar="DIR", shell_complete=complete_path("dir"), help=_STORE_HELP)
@on_error_option
@strategy_option()
@config_option
@click.option(
    "--huge-tasks",
    type=click.IntRange(1),
    default=HUGE_TASKS,
    show_default=True,
    help="Groups with more tasks are placed by all workers together.",
)
@output_options
def batch(**given: Any) -> None:
    """Run the subcommand."""
    refused: tuple[str, ...] = ()
    is_new = starts_here()
    with job("batch", given) as spark:
        named_strategy(given["strategy"])
        if is_new:
            start_workers(spark)
        options = Options(
            strategy=given["strategy"],
            settings=frozen_settings(given["settings"]),
            stop_at_reject=given["on_error"] == "fail",
        )
        output = Output(
            form="json" if given["out_form"] == "jsonl" else "parquet",
            partition_by=given["partition_by"],
            only_worth=given["only_worth"],
        )
        with step(spark, "batch: find the input"):
            groups = _groups(spark, given)
        if is_new and (note := small_note(groups, cores=spark.sparkContext.defaultParallelism)):
            say("spark-assign", note)
        with staged(
            spark, given["out"], overwrite=given["overwrite"], reads=inputs_of(given)
        ) as stage:
            summary = run_batch(
                groups, stage, options, output=output, huge_tasks=given["huge_tasks"]
            )
            if given["store"] is not None:
                plans = spark.read.schema(RESULT).format(output.form).load(stage.path)
                with step(spark, "batch: publish the plans"):
                    refused = _refused(publish_plans(plans, given["store"]))
    _report(summary, refused, given)
    sys.exit(1 if summary.rejects or refused else 0)


def small_note(groups: Groups, *, cores: int) -> str | None:
    """What is faster than a new session for lines of so few bytes; None for other input.

    Args:
        groups: the input.
        cores: that the session has.
    """
    size = None if groups.sizes is None else sum(groups.sizes.values())
    if size is None or size >= SMALL_BYTES:
        return None
    command = f"assignor assign --problem FILE --format json --workers {cores}"
    return (
        f"{groups.path} has {max(size / (1 << 20), 0.1):.1f} MB; on one machine, below about "
        f"{SMALL_BYTES >> 20} MB, `{command}` is faster (docs/spark.md)"
    )


def _groups(spark: SparkSession, given: Mapping[str, Any]) -> Groups:
    """The groups that --in, --table or --store names.

    Raises:
        BadTable: none of them is given, or several; or there is no group.
    """
    keep = tuple(dict.fromkeys((*given["keep"], *given["partition_by"])))
    if given["store"] is None:
        return groups_of(spark, given, keep=keep, line_limit=LINE_LIMIT)
    if given["path"] is not None or given["table"] is not None or keep:
        raise BadTable(
            "--store reads the groups from the store; give it without --in, --table, --keep and "
            "--partition-by"
        )
    return snapshot_groups(spark, given["store"])


def _refused(published: DataFrame) -> tuple[str, ...]:
    """Publish; the groups whose plans are not in the store, as sentences."""
    rows = published.where("error is not null").collect()
    return tuple(f"group {shown(row.name)}: {row.error}" for row in sorted(rows))


def _report(summary: Summary, refused: Sequence[str], given: Mapping[str, Any]) -> None:
    out, store = given["out"], given["store"]
    if given["form"] == "json":
        more = {} if store is None else {"refused": list(refused)}
        click.echo(json.dumps(asdict(summary) | {"out": out} | more))
        return
    placed = summary.groups - summary.rejects
    click.echo(
        f"{placed} of {summary.groups} groups placed in {summary.seconds:.1f} s, {summary.tasks} "
        f"tasks: {summary.moved} move, {summary.restores} copies to restore, {summary.warmups} "
        f"warm-ups; {out}"
    )
    kept = placed if given["only_worth"] is None else len(summary.most_worth)
    print_worth(summary.most_worth, worth=summary.worth, placed=placed)
    if store is not None:
        click.echo(f"{kept - len(refused)} of {kept} plans are in {store} for their leaders")
        for sentence in refused[:_REFUSED_SHOWN]:
            click.echo(f"  {sentence}")
    if summary.rejects:
        print_rejects(str(summary.rejects), summary.first_rejects, out)
