"""docs/commands.md: every command of the three programs, with its options, examples and status."""

from collections.abc import Iterator

import click

from assignor.cli import Command
from assignor.cli import main as assignor
from assignor.cli.toolkit.commands import examples_of
from spark_assign.cli.main import main as spark_assign
from system_tests.cli.main import main as rolling_bounce

PROGRAMS: tuple[click.Command, ...] = (assignor, rolling_bounce, spark_assign)

_TOP = """# The commands

To see the options of a command, add `--help`; this page has the same text.
`python -m docs.generate` writes it from the commands.

## Common to all commands

- **Exit status**: 0 done, 1 the answer is "no", 2 wrong usage or invalid input, 3 environment
  failure (no broker, no Java, disk, network). 130 after Ctrl-C, which ends a command within two
  seconds (0 for `inspect --watch`, which runs until then); 141 if the reader of the output closed
  it (`| head`). A traceback is a defect of this project.
- **Errors** are one sentence on stderr after the name of the program: what is wrong, the numbers,
  what to do. [operations.md](operations.md#messages) has the messages of members. A line that needs
  no action begins with `warning:`.
- **`--format json`** is for programs. Keys keep their meaning, and unknown values are null. For
  several groups or questions, each has one line.
- **Colour, frames and progress bars** appear only on terminals; [`NO_COLOR`](https://no-color.org)
  removes the colour. Pipes and files get plain text, and no table is cut.
- **A release** is `x.y` (its newest patch), `x.y.z` or `0.x.y.z`, `native`, `next` or
  `incompatible`.
- **Completion** of commands, options, releases, strategies and files: put
  `eval "$(assignor completion bash)"` into `~/.bashrc`; the same works for `rolling-bounce` and
  `spark-assign`, for `zsh` and `fish`.

| command | what it does |
| --- | --- |"""


Row = tuple[tuple[str, ...], Command]


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[Row]:
    """Yield a command and all of its subcommands, each with the words that call it.

    Raises:
        TypeError: a command is not an `assignor.cli.Command`.
    """
    if not isinstance(command, Command):
        raise TypeError(
            f"{' '.join(path)} is not an assignor.cli.Command; create it with cls=Command"
        )
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1])
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from walk(below, (*path, name))


def all_commands() -> list[Row]:
    """Return every command of the three programs, a group before its subcommands."""
    return [row for program in PROGRAMS for row in walk(program, (program.name or "",))]


def render() -> str:
    """Return the whole page."""
    rows = all_commands()
    lines = [_TOP]
    for path, command in rows:
        words = " ".join(path)
        summary = command.get_short_help_str(limit=200)
        lines.append(f"| [`{words}`](#{words.replace(' ', '-')}) | {summary} |")
    for path, command in rows:
        lines += ["", f"## {' '.join(path)}", "", *_page(path, command)]
    return "\n".join(lines) + "\n"


def _page(path: tuple[str, ...], command: Command) -> Iterator[str]:
    yield from _prose(command.help)
    shown = [row for option in command.params if (row := _row(option))]
    if shown:
        yield from ("", "| option | |", "| --- | --- |", *shown)
    if command.epilog:
        yield ""
        yield from _prose(command.epilog)
    yield from ("", "```text", *examples_of(command, path[0]))
    yield from ("```", "", "Exit status:", "")
    yield from (f"- {status}: {meaning}" for status, meaning in command.exits.items())


def _prose(text: str | None) -> Iterator[str]:
    """Yield a help text as Markdown; paragraphs that click must not wrap become blocks."""
    for number, paragraph in enumerate((text or "").strip().split("\n\n")):
        if number:
            yield ""
        lines = paragraph.strip("\n").split("\n")
        if lines[0].strip() == "\b":
            yield from ("```text", *lines[1:], "```")
        else:
            yield from (line.strip() for line in lines)


def _row(option: click.Parameter) -> str:
    """Return a line of the table; empty for options that every command has."""
    if not isinstance(option, click.Option):
        choice = option.type.choices if isinstance(option.type, click.Choice) else ()
        return f"| `{(option.name or '').upper()}` | {_cell(' or '.join(choice))} |"
    if option.name in {"help", "version"}:
        return ""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{_value(option)}`"
    notes = ", ".join(_notes(option))
    return f"| {names}{_cell(value)} | {_cell(option.help or '')}{f' ({notes})' if notes else ''} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(option.type.choices)
    return "N" if isinstance(option.type, click.IntRange | click.FloatRange) else "TEXT"


def _notes(option: click.Option) -> Iterator[str]:
    if option.required:
        yield "required"
    if option.show_default and not option.is_flag:
        yield f"default `{option.default}`"
    kind = option.type
    if isinstance(kind, click.IntRange | click.FloatRange):
        low, high = kind.min, kind.max
        if low is not None:
            yield f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    if option.multiple and "repeated" not in (option.help or ""):
        yield "may be repeated"
