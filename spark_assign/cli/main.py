"""Entry point of ``spark-assign``; imports a subcommand, and Spark, only when it is called."""

import click

from assignor.cli import COMPLETION, LazyGroup, Subcommand


class _SparkAssign(LazyGroup):
    subcommands = {  # noqa: RUF012 never changed
        "batch": Subcommand("spark_assign.cli.batch", "batch", "Place the tasks of many groups."),
        "completion": COMPLETION,
        "compare": Subcommand(
            "spark_assign.cli.compare",
            "compare",
            "Compare plans with other answers, group by group.",
        ),
        "group": Subcommand(
            "spark_assign.cli.group", "group", "Place the tasks of one huge group."
        ),
        "pack": Subcommand(
            "spark_assign.cli.pack",
            "pack",
            "Write the files with which spark-submit runs these commands.",
        ),
        "simulate": Subcommand(
            "spark_assign.cli.simulate", "simulate", "Simulate rolling bounces on all workers."
        ),
        "whatif": Subcommand(
            "spark_assign.cli.whatif",
            "whatif",
            "Predict the effect of failures and changes on groups.",
        ),
    }


_EXAMPLES = """
PROGRAM batch --in groups.jsonl --out plans/
PROGRAM whatif --in groups.jsonl --scenarios lose-client --out whatif/
PROGRAM pack --out job
"""


@click.command(
    "spark-assign",
    cls=_SparkAssign,
    examples=_EXAMPLES,
    exits={1: 'the answer is "no"', 3: "no Java, or the disk cannot be read or written"},
)
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Assign tasks of whole fleets with Spark: on this machine, or on a cluster by spark-submit."""
