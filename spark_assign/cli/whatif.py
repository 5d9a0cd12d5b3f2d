"""``spark-assign whatif``: predict the effect of failures and changes on groups."""

import json
import sys
from typing import Any

import click

from assignor import named_strategy
from assignor.cli import config_option, strategies_note, strategy_option
from spark_assign.cli.options import (
    frozen_settings,
    groups_of,
    in_option,
    inputs_of,
    job,
    output_options,
    subcommand,
)
from spark_assign.tables import staged, step
from spark_assign.whatif import (
    KINDS,
    RESTORE_RATE,
    WHATIF,
    has_plots,
    page_of,
    parse_scenarios,
    print_summary,
    summary_of,
    what_if,
)
from spark_assign.workers import Options

PAGE, SUMMARY = "_report.html", "_summary.json"
_LISTED = "\n".join(f"  {word:<12} {sentence}" for word, sentence in KINDS.items())
_HELP = f"""Predict the effect of failures and changes: moves, restores, load, traffic, time.

--out gets a row for each group, scenario and subject (Parquet), `{SUMMARY}` and, if the extra
`report` is installed, `{PAGE}` with plots. --in is read as by `spark-assign batch`.

\b
Scenarios, a comma separated list (--scenarios may be repeated):
{_LISTED}

Times are modelled: every thread restores --restore-rate records a second, all clients in parallel;
the next rebalance comes when that is done, but not before the probing rebalance interval.

{strategies_note()}
"""
_EXAMPLES = """
PROGRAM whatif --in groups/ --scenarios lose-client,lose-rack --out w/
PROGRAM whatif --in groups/ --scenarios add:2,release:2.3.1:3.9 --out w/
PROGRAM whatif --in groups/ --scenarios config:num.standby.replicas=2 \\
    --out w/
"""
_EXITS = {1: "a case is impossible, or never settles"}


@subcommand(
    "whatif", "Predict the effect of failures and changes on groups.", _HELP, _EXAMPLES, _EXITS
)
@in_option
@click.option(
    "--scenarios",
    multiple=True,
    required=True,
    metavar="LIST",
    help="Scenarios, see above; may be repeated.",
)
@strategy_option()
@config_option
@click.option(
    "--restore-rate",
    type=click.IntRange(1),
    default=RESTORE_RATE,
    show_default=True,
    metavar="RECORDS",
    help="Records that a thread restores in a second.",
)
@output_options
def whatif(**given: Any) -> None:
    """Run the subcommand."""
    with job("whatif", given, label="what if") as spark:
        named_strategy(given["strategy"])
        scenarios = parse_scenarios(given["scenarios"])
        options = Options(strategy=given["strategy"], settings=frozen_settings(given["settings"]))
        groups = groups_of(spark, given)
        with staged(
            spark, given["out"], overwrite=given["overwrite"], reads=inputs_of(given)
        ) as stage:
            with step(spark, "what if: play every scenario for every group"):
                stage.write(what_if(groups, scenarios, options, restore_rate=given["restore_rate"]))
            with step(spark, "what if: mean and maximum of each scenario"):
                rows = summary_of(spark.read.schema(WHATIF).parquet(stage.path))
            stage.write_text(SUMMARY, json.dumps(rows) + "\n")
            if has_plots():
                stage.write_text(PAGE, page_of(rows))
    out = given["out"].rstrip("/")
    if given["form"] == "json":
        click.echo(json.dumps({"out": out, "scenarios": rows}))
    else:
        print_summary(rows)
        click.echo(f"rows: {out}" + (f", plots: {out}/{PAGE}" if has_plots() else ""))
    sys.exit(1 if any(row["impossible"] or row["endless"] for row in rows) else 0)
