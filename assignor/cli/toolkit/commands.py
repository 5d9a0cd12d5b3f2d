"""Commands and groups of commands as all three programs have them.

A group knows its subcommands by name and imports one only when it is called: `--help` of the group
prints one sentence for each and loads no client library. Every `--help` ends with examples and the
exit status; every failure is one sentence (`exit_status.py`).
"""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem, shell_complete

from assignor.cli.toolkit.exit_status import SurroundingsFailed, end
from assignor.cli.toolkit.extras import missing_extra

CONTEXT = {"help_option_names": ["-h", "--help"]}
_STATUS = {
    0: "done",
    2: "wrong usage or bad input",
    3: "the surroundings failed",
}


class Command(click.Command):
    """A command whose help ends with examples and the exit status.

    Args:
        words: what `click.Command` takes.
        examples: one a line, with `PROGRAM` for the name of the program.
        exits: what a status means here. 0 and 1 as they stand; 2 and 3 mean the same everywhere,
            so what is said here is added to that. A status 1 that is missing does not occur.
        rest: what `click.Command` takes.
    """

    def __init__(
        self,
        *words: Any,
        examples: str = "",
        exits: Mapping[int, str] | None = None,
        **rest: Any,
    ) -> None:
        rest["context_settings"] = CONTEXT | (rest.get("context_settings") or {})
        super().__init__(*words, **rest)
        self.examples = examples.strip("\n")
        self.exits = _exits(exits or {})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print notes, examples, exit status."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in examples_of(self, ctx.find_root().info_name or ""):
                    formatter.write(f"  {line}\n")
        with formatter.section("Exit status"):
            formatter.write_dl([(str(status), said) for status, said in self.exits.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 click's signature
        **extra: Any,
    ) -> Any:
        """Run the command and leave the process, in the way of `ending.end`."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        extra.pop("windows_expand_args", None)
        name = prog_name or self.name or "command"
        words = list(sys.argv[1:] if args is None else args)
        variable = complete_var or completion_variable(name)

        def run() -> None:
            if instruction := os.environ.get(variable):
                sys.exit(shell_complete(self, extra, name, variable, instruction))
            with self.make_context(name, words, **extra) as context:
                self.invoke(context)

        return end(name, run)


class Group(Command, click.Group):
    """A group of commands; a word that is none of them is answered with the nearest."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand that is meant.

        Raises:
            UsageError: there is none; the message names the nearest, else all.
        """
        word, names = args[0], self.list_commands(ctx)
        if word not in names and not word.startswith("-"):
            near = get_close_matches(word, names, n=1)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise click.UsageError(f"no such command {word!r}; {advice}", ctx=ctx)
        return super().resolve_command(ctx, args)


class Subcommand(NamedTuple):
    """Where a subcommand is, and what the group's `--help` says of it."""

    module: str
    attribute: str
    sentence: str


class LazyGroup(Group):
    """A group over a table of subcommands."""

    subcommands: Mapping[str, Subcommand] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, sorted."""
        del ctx
        return sorted(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand; None when there is none of that name.

        Raises:
            SurroundingsFailed: it needs a library that is not installed.
        """
        if cmd_name not in self.subcommands:
            return None
        found = self.subcommands[cmd_name]
        try:
            module = importlib.import_module(found.module)
        except ImportError as error:
            advice = missing_extra(error)
            if advice is None:
                raise
            if ctx.resilient_parsing:  # a shell completes: what cannot be called is left out
                return None
            raise SurroundingsFailed(f"{ctx.info_name} {cmd_name}: {advice}") from None
        command: click.Command = getattr(module, found.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table without importing anything."""
        del ctx
        rows = [(name, row.sentence) for name, row in sorted(self.subcommands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a subcommand or an option, without importing anything."""
        found = [
            CompletionItem(name, help=row.sentence)
            for name, row in sorted(self.subcommands.items())
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def completion_variable(name: str) -> str:
    """Return the environment variable by which a shell asks the program for completions.

    >>> completion_variable("rolling-bounce")
    '_ROLLING_BOUNCE_COMPLETE'
    """
    return f"_{name}_COMPLETE".replace("-", "_").upper()


def examples_of(command: Command, program: str) -> list[str]:
    """Return the lines of a command's examples, as the program of that name has them."""
    return command.examples.replace("PROGRAM", program).splitlines()


def _exits(given: Mapping[int, str]) -> dict[int, str]:
    told = dict(_STATUS)
    for status, said in given.items():
        told[status] = f"{told[status]}: {said}" if status in (2, 3) else said
    return dict(sorted(told.items()))
