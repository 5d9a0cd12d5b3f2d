"""A click group that knows its subcommands by name and imports one only when it is called.

`--help` of the group prints one sentence for each and loads no client library.
"""

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click

CONTEXT = {"help_option_names": ["-h", "--help"]}


class Subcommand(NamedTuple):
    """Where a subcommand is, and what the group's `--help` says of it."""

    module: str
    attribute: str
    sentence: str


class LazyGroup(click.Group):
    """A group over a table of subcommands."""

    subcommands: Mapping[str, Subcommand] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, sorted."""
        del ctx
        return sorted(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand; None when there is none of that name."""
        del ctx
        if cmd_name not in self.subcommands:
            return None
        found = self.subcommands[cmd_name]
        command: click.Command = getattr(importlib.import_module(found.module), found.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table without importing anything."""
        del ctx
        rows = [(name, row.sentence) for name, row in sorted(self.subcommands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
