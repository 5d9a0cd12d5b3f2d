"""Entry point of ``spark-assign``; a subcommand, and Spark with it, is imported when called."""

import click

from assignor.cli.lazy import CONTEXT, LazyGroup, Subcommand


class _SparkAssign(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
        "batch": Subcommand(
            "spark_assign.batch_command", "batch", "Place the tasks of many groups."
        ),
        "compare": Subcommand(
            "spark_assign.compare", "compare", "Compare plans with other answers, group by group."
        ),
        "group": Subcommand(
            "spark_assign.group_command", "group", "Place the tasks of one huge group."
        ),
        "simulate": Subcommand(
            "spark_assign.simulate_command", "simulate", "Simulate rolling bounces on all workers."
        ),
        "whatif": Subcommand(
            "spark_assign.whatif_command", "whatif", "Say what would happen to groups."
        ),
    }


@click.command(cls=_SparkAssign, context_settings=CONTEXT)
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Task assignment as a Spark job: on this machine as it is, on a cluster by spark-submit.

    Exit status: 0 done, 1 the answer is "no", 2 wrong usage or bad input, 3 the surroundings
    failed (no Java, disk).
    """


if __name__ == "__main__":
    main()
