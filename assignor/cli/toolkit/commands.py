"""The command and command group classes of all three programs.

A group knows its subcommands by name and imports one only when it is called: `--help` of the group
prints one sentence for each and loads no client library. Every `--help` ends with examples and the
exit status. Every failure is reported in one sentence (`exit_status.py`).
"""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import metadata
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem, shell_complete

from assignor.cli.toolkit.exit_status import BadInput, EnvironmentFailed, end
from assignor.cli.toolkit.extras import missing_extra
from assignor.interrupts import begin_command
from assignor.logs import drop_unhandled_records
from encoding import shown
from encoding.primitives import has_half_pair

CONTEXT = {"help_option_names": ["-h", "--help"]}
_DISTRIBUTION = "streams-rebalance"
_STATUS = {
    0: "success",
    2: "wrong usage or invalid input",
    3: "environment failure (no broker, no Java, disk, network)",
}


class Command(click.Command):
    """A command whose help ends with examples and the exit status.

    Args:
        words: positional arguments of `click.Command`.
        examples: one example per line, with `PROGRAM` for the name of the program.
        exits: exit status -> its meaning for this command. 2 and 3 mean the same in every command,
            and the text given here is appended. The status 1 is listed only if it is given here.
        rest: keyword arguments of `click.Command`.
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

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command.

        Raises:
            BadInput: a text is none; only paths may have bytes that are no UTF-8.
        """
        for param in self.params:
            if param.type is click.STRING:
                _check_texts(param.opts[-1], ctx.params.get(param.name or ""))
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write notes, examples and the exit status."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in examples_of(self, ctx.find_root().info_name or ""):
                    formatter.write(f"  {line}\n")
        with formatter.section("Exit status"):
            formatter.write_dl([(str(status), meaning) for status, meaning in self.exits.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 click's signature
        **extra: Any,
    ) -> Any:
        """Run the command and end the process as `exit_status.end` does."""
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


def _check_texts(option: str, given: object) -> None:
    for text in given if isinstance(given, tuple) else (given,):
        if isinstance(text, tuple):
            _check_texts(option, text)
        elif isinstance(text, str) and has_half_pair(text):
            raise BadInput(f"{option} {shown(repr(text))} is no valid UTF-8; give a valid text")


class Group(Command, click.Group):
    """A group of commands; for an unknown name the error message suggests the nearest one."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that the first argument names.

        Raises:
            UsageError: no subcommand has this name; the message suggests the nearest, or lists all.
        """
        word, names = args[0], self.list_commands(ctx)
        if word not in names and not word.startswith("-"):
            near = [*_programs_with(word), *get_close_matches(word, names, n=1)]
            advice = f"did you mean {near[0]}?" if near else f"choose from {', '.join(names)}"
            raise click.UsageError(f"no such command {word!r}; {advice}", ctx=ctx)
        return super().resolve_command(ctx, args)


def _programs_with(word: str) -> Iterator[str]:
    """Yield the subcommands of this name, each with its program; `PACKAGE.cli.main` has them."""
    for program in metadata.entry_points(group="console_scripts"):
        if program.dist is None or program.dist.name != _DISTRIBUTION:
            continue
        package = program.module.partition(".")[0]
        group = importlib.import_module(f"{package}.cli.main").main
        if word in group.subcommands:
            yield f"{program.name} {word}"


class Subcommand(NamedTuple):
    """The module and attribute of a subcommand, and its sentence in the group's `--help`."""

    module: str
    attribute: str
    sentence: str


class LazyGroup(Group):
    """A group that imports its subcommands on demand; subclasses set `subcommands`."""

    subcommands: Mapping[str, Subcommand] = {}

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke a subcommand; its output says all, so that log records are not printed, too."""
        drop_unhandled_records()
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands, sorted."""
        del ctx
        return sorted(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand; None if no subcommand has this name.

        Raises:
            EnvironmentFailed: the subcommand needs a library that is not installed.
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
            if ctx.resilient_parsing:  # shell completion: leave out what cannot be called
                return None
            raise EnvironmentFailed(f"{ctx.info_name} {cmd_name}: {advice}") from None
        begin_command()
        command: click.Command = getattr(module, found.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of subcommands without importing them."""
        del ctx
        rows = [(name, row.sentence) for name, row in sorted(self.subcommands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions of a subcommand or an option, without importing subcommands."""
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
    """Return the example lines of a command, with `PROGRAM` replaced by the program's name."""
    return command.examples.replace("PROGRAM", program).splitlines()


def _exits(given: Mapping[int, str]) -> dict[int, str]:
    meanings = dict(_STATUS)
    for status, meaning in given.items():
        common = meanings.get(status, "").partition(" (")[0]
        meanings[status] = f"{common}: {meaning}" if status in (2, 3) else meaning
    return dict(sorted(meanings.items()))
