"""What the subcommands of ``rolling-bounce`` share: options with one meaning, and ways to end."""

import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from click.core import ParameterSource

from assignor.cli import (
    EXIT_NO,
    EXIT_SURROUNDINGS,
    EXIT_USAGE,
    all_of,
    failure,
    format_option,
    release_option,
)

EXIT_BAD: Final = EXIT_NO
MAX_MEMBERS: Final = 26
"""Lanes are called a to z."""
MAX_THREADS: Final = 64
MAX_PARTITIONS: Final = 1000

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

__all__ = [
    "EXIT_BAD",
    "EXIT_SURROUNDINGS",
    "EXIT_USAGE",
    "MAX_MEMBERS",
    "MAX_PARTITIONS",
    "MAX_THREADS",
    "Decorator",
    "faults_option",
    "force_option",
    "format_option",
    "given_again",
    "given_here",
    "group_options",
    "offline_option",
    "partitions_option",
    "refuse",
    "report_option",
    "seed_option",
    "session_timeout_option",
    "static_option",
]


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
        release_option(
            "--from", "old", f"What the group runs{default}", required=not (drawn or saved)
        ),
        release_option("--to", "new", f"What it is brought to{default}", required=not drawn),
        _count("--members", members, 3, "Processes."),
    ]
    if threads:
        options += [
            _count("--threads", threads, 1, "Stream threads in each process."),
            static_option,
        ]
    return all_of(options)


def partitions_option(
    *, most: int = MAX_PARTITIONS, default: int | None = 6, said: str = ""
) -> Decorator:
    """Add ``--partitions``; `said` ends its help."""
    return _count("--partitions", most, default, f"Of the source topic{said}.")


static_option: Final[Decorator] = click.option(
    "--static",
    is_flag=True,
    help="Members carry a group.instance.id (KIP-345).",
)
"""``--static``, as a bool."""

offline_option: Final[Decorator] = click.option(
    "--offline", is_flag=True, help="Stop all, start all, without upgrade.from."
)
"""``--offline``, as a bool."""

force_option: Final[Decorator] = click.option(
    "--force", is_flag=True, help="One bounce without a pin, come what may."
)
"""``--force`` of simulations, as a bool."""


def seed_option(*, default: int | None, least: int | None = None, said: str = "") -> Decorator:
    """Add ``--seed``; `said` ends its help."""
    return click.option(
        "--seed",
        type=click.IntRange(least),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=f"Seed of all that is left to chance{said}.",
    )


def session_timeout_option(least: int) -> Decorator:
    """Add ``--session-timeout-ms``."""
    return click.option(
        "--session-timeout-ms",
        type=click.IntRange(least, 300_000),
        default=6000,
        show_default=True,
        help="How long a silent member stays in the group.",
    )


def faults_option(said: str) -> Decorator:
    """Add ``--faults``, as text; `said` says which there are."""
    return click.option(
        "--faults",
        default="none",
        show_default=True,
        metavar="LIST",
        help=f"What goes wrong; {said}",
    )


draw_option: Final[Decorator] = click.option(
    "--draw",
    type=click.Choice(["releases", "all"]),
    default="releases",
    show_default=True,
    help="What a seed decides besides times: the releases that are left out; or also whether native"
    " members are cooperative, members static, serve queries and hold routing views, and whether"
    " there are standby replicas, warmed up slowly.",
)
"""``--draw`` of simulations, as text."""

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
    """End with one sentence on stderr, after all that was printed.

    Raises:
        ClickException: always.
    """
    raise failure(sentence, status)


def _count(flag: str, most: int, default: int | None, said: str) -> Decorator:
    return click.option(
        flag, type=click.IntRange(1, most), default=default, show_default=True, help=said
    )
