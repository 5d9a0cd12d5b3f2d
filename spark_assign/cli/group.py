"""``spark-assign group``: place the tasks of one huge group."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from assignor.cli import complete_path, config_option, name_option, strategy_option, warn
from assignor.stores import PlanStore
from encoding import shown
from spark_assign.batch import publish_plan
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
from spark_assign.huge import (
    STRATEGIES,
    SUMMARY,
    GroupSummary,
    OneGroup,
    in_rows,
    nested_groups,
    read_one_group,
    run_group,
)
from spark_assign.tables import PLACEMENT, REJECTS, BadTable, staged, step

_HELP = f"""Place the tasks of one huge group, all workers together.

--in is a directory with tasks/ and clients/ (Parquet, one row per task and client), a snapshot of a
leader (state.bin), or a file with one group in a format of `spark-assign batch`. --out gets one
row per copy: subtopology, partition, client, role (active, standby, warmup), and {SUMMARY}.

The driver holds clients, rack lists and counts, but no tasks: 1g of heap is enough for ten million
tasks. If the tasks are sorted, the plan does not depend on how they are split into files.

By default an invalid row fails the job: nothing is written, exit status 2. With --on-error reject
invalid rows are written to DIR/{REJECTS} with column, value and reason, the other tasks are placed,
and the exit status is 1. Such a plan is incomplete; it cannot be used with --store.
"""
_EXAMPLES = """
PROGRAM group --in state/ --out plan/ --config num.standby.replicas=1
PROGRAM group --in state/ --out plan/ --strategy sticky --cores 2
PROGRAM group --in groups.jsonl --name orders --out plan/ --format json
PROGRAM group --store plans/ --name word-count --out plan/
spark-submit --py-files job/packages.zip job/run.py group \\
    --in hdfs:///state --out hdfs:///plan
"""
_EXITS = {
    1: "with --on-error reject: rows were rejected",
    2: "with --on-error fail: a row is invalid",
}


@subcommand("group", "Place the tasks of one huge group.", _HELP, _EXAMPLES, _EXITS)
@in_option
@click.option(
    "--store",
    metavar="DIR",
    shell_complete=complete_path("dir"),
    help="Plan store: read the snapshot of --name (or --in), write the plan for the leader.",
)
@name_option
@strategy_option(STRATEGIES, help_text="sticky moves everything at once, without warm-ups.")
@on_error_option
@config_option
@output_options
def group(**given: Any) -> None:
    """Run the subcommand."""
    with job("group", given) as spark:
        store, stops = given["store"], given["on_error"] == "fail"
        if store is not None and not stops:
            raise BadTable(
                "leaders accept complete plans only; use --on-error reject without --store"
            )
        with step(spark, "group: read the group"):
            group_rows = _read(spark, given)
        with staged(
            spark, given["out"], overwrite=given["overwrite"], reads=inputs_of(given)
        ) as stage:
            with step(spark, f"group: place {shown(group_rows.name)}"):
                summary = run_group(
                    group_rows, stage, strategy=given["strategy"], stop_at_reject=stops
                )
            if store is not None:
                placements = spark.read.schema(PLACEMENT).parquet(stage.path)
                with step(spark, f"group: publish the plan of {shown(group_rows.name)}"):
                    publish_plan(placements, store, group_rows.name, followup=summary.probing)
    _report(summary, given["out"], given["form"])
    sys.exit(1 if summary.rejects else 0)


def _read(spark: SparkSession, given: Mapping[str, Any]) -> OneGroup:
    """The group that --in, --table or --store names.

    Raises:
        BadTable: none of them is given, there is no such group, or there are several.
    """
    settings, name, path = frozen_settings(given["settings"]), given["name"], given["path"]
    if given["table"] is not None:
        nested = nested_groups(groups_of(spark, given))
        chosen = nested if name is None else nested.where(f.col("name") == name)
        return in_rows(chosen, settings=settings, what=given["table"], name=name)
    if path is None:
        if given["store"] is None or name is None:
            raise BadTable("give --in PATH, --table NAME, or --store DIR with --name GROUP")
        path = str(PlanStore(given["store"]).snapshot_path(name))
    return read_one_group(spark, path, name=name, settings=settings, form=given["in_form"])


def _report(summary: GroupSummary, out: str, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(asdict(summary) | {"out": out}))
        return
    click.echo(
        f"{summary.tasks} tasks placed on {summary.clients} clients in {summary.seconds:.1f} s, "
        f"{summary.passes} passes; {out}"
    )
    later = summary.to_move - summary.moved
    click.echo(
        f"{summary.moved} tasks move now{f', {later} later' if later > 0 else ''}; "
        f"{summary.standbys} standbys, {summary.warmups} warm-ups, {summary.restores} copies "
        f"to restore, {summary.cold} tasks started behind"
    )
    if summary.rack_bound or summary.active_traffic or summary.standby_traffic:
        gap = summary.rack_cost - summary.rack_bound
        click.echo(
            f"read from other racks: {summary.active_traffic} partitions by active tasks, "
            f"{summary.standby_traffic} by standbys; cost {summary.rack_cost}, "
            f"{f'{gap} above the minimum' if gap else 'the minimum'}"
        )
    if summary.above:
        click.echo(f"{summary.above} standbys exceed the load bands of their clients")
    if summary.probing:
        click.echo("copies warm up: run it again after the probing rebalance interval")
    for warning in summary.warnings:
        warn(warning)
    if summary.rejects:
        print_rejects(f"{summary.rejects} rows", summary.first_rejects, out)
