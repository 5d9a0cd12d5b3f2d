"""What the subcommands of ``rolling-bounce`` share: options with one meaning, and ways to end."""

import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from click.core import ParameterSource

EXIT_BAD: Final = 1
EXIT_USAGE: Final = 2
EXIT_SURROUNDINGS: Final = 3
MAX_MEMBERS: Final = 26
"""Lanes are called a to z."""
MAX_PARTITIONS: Final = 1000

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def group_options(
    *, drawn: bool = False, members: int, threads: int = 0, saved: bool = False
) -> Decorator:
    """Add the options that say which group is brought from where to where.

    Args:
        drawn: releases that are left out are drawn; otherwise they have to be given.
        members: the most there may be.
        threads: the most there may be in each; 0: no such option, and none for static members.
        saved: a file may say what the group runs.
    """
    default = "; drawn by default." if drawn else "."
    options = [
        _release("--from", "old", f"What the group runs{default}", required=not (drawn or saved)),
        _release("--to", "new", f"What it is brought to{default}", required=not drawn),
        _count("--members", members, 3, "Processes."),
    ]
    if threads:
        static = "Members carry a group.instance.id."
        options += [
            _count("--threads", threads, 1, "Stream threads in each process."),
            click.option("--static", is_flag=True, help=static),
        ]
    return _all(options)


def partitions_option(
    *, most: int = MAX_PARTITIONS, default: int | None = 6, said: str = ""
) -> Decorator:
    """Add ``--partitions``; `said` ends its help."""
    return _count("--partitions", most, default, f"Of the source topic{said}.")


def format_option(*, default: str | None = "text", said: str | None = None) -> Decorator:
    """Add ``--format``, as `form`: for people or for programs."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default=default,
        show_default=default is not None,
        help=said,
    )


report_option: Final[Decorator] = click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also draw the bounce, in one HTML file that needs no network (extra `report`).",
)
"""``--report FILE``, as a path or None."""


def given_here() -> frozenset[str]:
    """Return the names of the options that stood on the command line, defaults left out."""
    context = click.get_current_context()
    return frozenset(
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def given_again(*, without: Collection[str] = ()) -> str:
    """Write the command line that gives what this one was given, but for the options `without`."""
    context = click.get_current_context()
    words = ["rolling-bounce", context.info_name or ""]
    given = given_here() - set(without)
    for option in context.command.params:
        name = option.name or ""
        if name in given and isinstance(option, click.Option):
            words += [option.opts[0], *([] if option.is_flag else [str(context.params[name])])]
    return shlex.join(words)


def refuse(sentence: str, status: int = EXIT_USAGE) -> NoReturn:
    """End with one sentence on stderr, after all that was printed."""
    sys.stdout.flush()
    click.echo(f"rolling-bounce: {sentence}", err=True)
    sys.exit(status)


def _release(flag: str, name: str, said: str, *, required: bool) -> Decorator:
    return click.option(flag, name, metavar="RELEASE", required=required, help=said)


def _count(flag: str, most: int, default: int | None, said: str) -> Decorator:
    return click.option(
        flag, type=click.IntRange(1, most), default=default, show_default=True, help=said
    )


def _all(options: Sequence[Decorator]) -> Decorator:
    """Join decorators to one; --help lists them in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add
