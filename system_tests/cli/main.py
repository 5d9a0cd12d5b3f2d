"""Entry point of ``rolling-bounce``; each subcommand is imported when it is called."""

import click

from assignor.cli import COMPLETION, LazyGroup, Subcommand


class _RollingBounce(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
        "completion": COMPLETION,
        "live": Subcommand(
            "system_tests.cli.live",
            "live",
            "Bounce a group of real processes, and check what happened.",
        ),
        "soak": Subcommand(
            "system_tests.cli.soak",
            "soak",
            "Disturb a group of real processes for an hour, and report what it cost.",
        ),
        "simulate": Subcommand(
            "system_tests.cli.simulate",
            "simulate",
            "Simulate thousands of rolling bounces and report broken rules.",
        ),
        "explore": Subcommand(
            "system_tests.cli.explore",
            "explore_command",
            "Try every order in which a small group can be bounced.",
        ),
        "matrix": Subcommand(
            "system_tests.cli.matrix",
            "matrix",
            "Show how a group gets from any release to any other, and why.",
        ),
        "plan": Subcommand(
            "system_tests.cli.plan",
            "plan",
            "List the steps of an upgrade, their costs, and the rollback.",
        ),
        "broker": Subcommand(
            "system_tests.cli.broker",
            "broker",
            "Run a Kafka broker for tests and demos, in memory or real, until SIGTERM or SIGINT.",
        ),
    }


_EXAMPLES = """
PROGRAM live --from 3.1 --to native --members 3
PROGRAM plan --from 2.3.1 --to 4.4
PROGRAM simulate --seeds 1000
"""


@click.command(
    "rolling-bounce",
    cls=_RollingBounce,
    examples=_EXAMPLES,
    exits={1: 'the answer is "no"', 2: "an impossible path"},
)
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Upgrade a consumer group member by member, and get a verdict."""
