"""``spark-assign batch``: place the tasks of many groups."""

import json
import sys
from dataclasses import asdict
from typing import Any

import click

from assignor import named_strategy
from assignor.cli import config_option, strategies_note, strategy_option
from spark_assign.batch import HUGE_TASKS, Summary, run_batch
from spark_assign.cli.options import (
    frozen_settings,
    in_option,
    job,
    on_error_option,
    output_options,
    print_rejects,
    subcommand,
)
from spark_assign.tables import REJECTS, read_groups, staged
from spark_assign.workers import Options

_HELP = f"""Place the tasks of many groups, each as `assignor assign` does.

--in is a file, a directory or a glob of Parquet or of JSON lines (problems). Parquet has one row
per group with columns name, tasks, clients and config; or a directory has tasks/ and clients/ with
one row per task and client. --out gets one row per group: name, probing, clients.

{strategies_note()} Every worker must be able to import MODULE.

By default an invalid group fails the job: nothing is written, exit status 2. With --on-error reject
invalid groups are written to DIR/{REJECTS} with column, value and reason, the other groups are
placed, and the exit status is 1.
"""
_EXAMPLES = """
PROGRAM batch --in groups.jsonl --out plans/
PROGRAM batch --in 'groups/*.parquet' --out plans/ --on-error reject
PROGRAM batch --in groups/ --out plans/ --config num.standby.replicas=2
spark-submit ... PROGRAM batch --in hdfs:///groups --out hdfs:///plans
"""
_EXITS = {
    1: "with --on-error reject: groups were rejected",
    2: "with --on-error fail: a group is invalid",
}


@subcommand("batch", "Place the tasks of many groups.", _HELP, _EXAMPLES, _EXITS)
@in_option()
@click.option(
    "--out-format",
    "out_form",
    type=click.Choice(["parquet", "jsonl"]),
    default="parquet",
    show_default=True,
    help="Output format.",
)
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
    with job("batch", given) as spark:
        named_strategy(given["strategy"])
        options = Options(
            strategy=given["strategy"],
            settings=frozen_settings(given["settings"]),
            stop_at_reject=given["on_error"] == "fail",
        )
        groups = read_groups(spark, given["path"], form=given["in_form"])
        form = "json" if given["out_form"] == "jsonl" else "parquet"
        with staged(spark, given["out"], overwrite=given["overwrite"]) as stage:
            summary = run_batch(groups, stage, options, form=form, huge_tasks=given["huge_tasks"])
    _report(summary, given["out"], given["form"])
    sys.exit(1 if summary.rejects else 0)


def _report(summary: Summary, out: str, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(asdict(summary) | {"out": out}))
        return
    placed = summary.groups - summary.rejects
    click.echo(
        f"{placed} of {summary.groups} groups placed in {summary.seconds:.1f} s, {summary.tasks} "
        f"tasks: {summary.moved} move, {summary.restores} copies to restore, {summary.warmups} "
        f"warm-ups; {out}"
    )
    if summary.rejects:
        print_rejects(str(summary.rejects), summary.first_rejects, out)
