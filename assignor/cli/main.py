"""Entry point of ``assignor``.

Exit status, the same in all three commands: 0 done, 1 the answer is "no", 2 wrong usage or bad
input, 3 the surroundings failed (no broker, disk). Subcommands are imported when they are called,
so that ``assignor decode`` never pays for a part that it does not use.
"""

import importlib

import click

# name of the subcommand -> (module, attribute); `--help` imports them all, a call only its own.
_COMMANDS = {
    "decode": ("assignor.cli.codec", "decode"),
    "encode": ("assignor.cli.codec", "encode"),
    "negotiate": ("assignor.cli.negotiate", "negotiate"),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 click's
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Look into rebalance metadata and negotiate versions, without a broker."""
