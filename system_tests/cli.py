"""Entry point of ``rolling-bounce``; each subcommand is imported when it is called."""

import importlib

import click

# name of the subcommand -> (module, attribute, what `--help` says); only a call imports its own.
_COMMANDS = {
    "live": (
        "system_tests.live.command",
        "live",
        "Bounce a group of real processes, and judge what happened.",
    ),
}


class _LazyGroup(click.Group):
    """Knows its subcommands by name and one sentence, so that `--help` loads no Kafka client."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, row[2]) for name, row in sorted(_COMMANDS.items())])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Upgrade a consumer group member by member, and get a verdict.

    Exit status: 0 the verdict is good, 1 it is not, 2 wrong usage or an impossible path, 3 the
    surroundings failed.
    """


if __name__ == "__main__":
    main()
