"""``spark-assign batch``: options in, plans out, a summary, an exit status."""

import json
import sys
from dataclasses import asdict
from typing import Any

import click

from assignor import STRATEGIES, named_strategy
from spark_assign.batch import HUGE_TASKS, REJECTS, Summary, run_batch
from spark_assign.command import (
    STATUS,
    config_option,
    in_format_option,
    job,
    on_error_option,
    output_options,
    settings_of,
    spark_options,
)
from spark_assign.inputs import read_groups
from spark_assign.kernel import Options
from spark_assign.output import staged

_HELP = f"""Place the tasks of many groups, each as `assignor assign` does.

--in is a file, a directory or a glob of Parquet (one row per group, columns name, tasks, clients,
config; or a directory with tasks/ and clients/, one row each) or of JSON lines (problems). --out
gets one row per group: name, probing, clients, as Parquet or JSON lines.

\b
Examples:
  spark-assign batch --in groups.jsonl --out plans/
  spark-assign batch --in 'groups/*.parquet' --out plans/ --on-error reject
  spark-assign batch --in groups/ --out plans/ --config num.standby.replicas=2 --overwrite
  spark-submit ... spark-assign batch --in hdfs:///groups --out hdfs:///plans

\b
A strategy is one of these names, or MODULE:CALLABLE that every worker can import:
  {", ".join(sorted(STRATEGIES))}

Groups that make no sense fail the job (exit status 2, nothing is written), or with --on-error
reject go to DIR/{REJECTS} with column, value and reason (exit status 1 if there are any).

{STATUS}
"""


@click.command(help=_HELP, short_help="Place the tasks of many groups.")
@click.option("--in", "path", required=True, metavar="PATH", help="What to read.")
@in_format_option
@click.option(
    "--out-format",
    "out_form",
    type=click.Choice(["parquet", "jsonl"]),
    default="parquet",
    show_default=True,
    help="What to write.",
)
@on_error_option
@click.option("--strategy", default="high_availability", show_default=True)
@config_option
@click.option(
    "--huge-tasks",
    type=click.IntRange(1),
    default=HUGE_TASKS,
    show_default=True,
    help="Groups with more tasks are placed by all workers together.",
)
@output_options
@spark_options
def batch(**given: Any) -> None:
    """Entry point of the subcommand."""
    with job(
        "spark-assign batch", "batch", cores=given["cores"], driver_memory=given["driver_memory"]
    ) as spark:
        named_strategy(given["strategy"])
        options = Options(
            strategy=given["strategy"],
            settings=settings_of(given["config"]),
            stop_at_reject=given["on_error"] == "fail",
        )
        groups = read_groups(spark, given["path"], form=given["in_form"])
        form = "json" if given["out_form"] == "jsonl" else "parquet"
        with staged(spark, given["out"], overwrite=given["overwrite"]) as stage:
            summary = run_batch(
                spark, groups, stage, options, form=form, huge_tasks=given["huge_tasks"]
            )
    _report(summary, given["out"], given["style"])
    sys.exit(1 if summary.rejects else 0)


def _report(summary: Summary, out: str, style: str) -> None:
    if style == "json":
        click.echo(json.dumps(asdict(summary) | {"out": out}))
        return
    placed = summary.groups - summary.rejects
    click.echo(
        f"{placed} of {summary.groups} groups placed in {summary.seconds:.1f} s, {summary.tasks} "
        f"tasks: {summary.moved} move, {summary.restores} copies restored, {summary.warmups} "
        f"warm-ups; {out}"
    )
    if summary.rejects:
        click.echo(f"{summary.rejects} rejected, see {out.rstrip('/')}/{REJECTS}; the first:")
        for sentence in summary.first_rejects:
            click.echo(f"  {sentence}")
