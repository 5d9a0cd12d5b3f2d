"""Entry point of ``rolling-bounce``; each subcommand is imported when it is called."""

import click

from assignor.cli.lazy import CONTEXT, LazyGroup, Subcommand


class _RollingBounce(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
        "live": Subcommand(
            "system_tests.live.command",
            "live",
            "Bounce a group of real processes, and judge what happened.",
        ),
        "simulate": Subcommand(
            "system_tests.sim.command",
            "simulate",
            "Bounce simulated groups, thousands of them, and look for a broken rule.",
        ),
        "explore": Subcommand(
            "system_tests.explore.command",
            "explore_command",
            "Try every order in which a small group can be bounced.",
        ),
        "matrix": Subcommand(
            "system_tests.matrix_command",
            "matrix",
            "Say how a group gets from any release to any other, and why.",
        ),
        "plan": Subcommand(
            "system_tests.plan_command",
            "plan",
            "Say step by step how to upgrade, what it costs, and the way back.",
        ),
    }


@click.command(cls=_RollingBounce, context_settings=CONTEXT)
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Upgrade a consumer group member by member, and get a verdict.

    Exit status: 0 the verdict is good, 1 it is not, 2 wrong usage or an impossible path, 3 the
    surroundings failed.
    """


if __name__ == "__main__":
    main()
