"""Entry point of ``spark-assign``; a subcommand, and Spark with it, is imported when called."""

import click

from assignor.cli import COMPLETION, LazyGroup, Subcommand


class _SparkAssign(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
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
        "simulate": Subcommand(
            "spark_assign.cli.simulate", "simulate", "Simulate rolling bounces on all workers."
        ),
        "whatif": Subcommand(
            "spark_assign.cli.whatif", "whatif", "Say what would happen to groups."
        ),
    }


_EXAMPLES = """
PROGRAM batch --in groups.jsonl --out plans/
PROGRAM whatif --in groups.jsonl --scenarios lose-client --out whatif/
"""


@click.command(
    "spark-assign",
    cls=_SparkAssign,
    examples=_EXAMPLES,
    exits={1: 'the answer is "no"', 3: "no Java, a disk"},
)
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Place tasks as a Spark job: on this machine as it is, on a cluster by spark-submit."""


if __name__ == "__main__":
    main()
