"""What the subcommands of ``rolling-bounce`` share: options with one meaning, and ways to end.

An option of a dataclass is declared there once (`system_tests.option_fields`): `options_of` adds
the options of a dataclass to a command, and `read_options` makes an instance from their values.
"""

import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from assignor.cli import (
    EXIT_ENVIRONMENT,
    EXIT_NO,
    EXIT_USAGE,
    all_of,
    failure,
    format_option,
    release_option,
)
from system_tests import option_fields as declared
from system_tests.option_fields import MAX_MEMBERS, MAX_PARTITIONS, MAX_SIMULATED, OptionText
from system_tests.topology_changes import ChangeKind

EXIT_BAD: Final = EXIT_NO
MAX_THREADS: Final = 64

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_Options = TypeVar("_Options")

__all__ = [
    "EXIT_BAD",
    "EXIT_ENVIRONMENT",
    "EXIT_USAGE",
    "MAX_MEMBERS",
    "MAX_PARTITIONS",
    "MAX_SIMULATED",
    "MAX_THREADS",
    "Decorator",
    "faults_option",
    "force_option",
    "format_option",
    "given_again",
    "given_among",
    "given_here",
    "group_options",
    "offline_option",
    "options_of",
    "partitions_option",
    "path_options",
    "read_options",
    "refuse",
    "report_option",
    "seed_option",
    "static_option",
    "topology_option",
]


def options_of(kind: type) -> Decorator:
    """Add the options that a dataclass declares, in the order of its fields.

    A field that is a dataclass itself adds those that it declares.
    """
    options: list[Decorator] = []
    for field, hint in declared.hinted_fields(kind):
        text = declared.option_text(field.metadata)
        if is_dataclass(hint) and isinstance(hint, type):
            options.append(options_of(hint))
        elif text is not None:
            default = None if field.default is MISSING else field.default
            options.append(_option(field.name, hint, default, text))
    return all_of(options)


def read_options(kind: type[_Options], values: Mapping[str, Any]) -> _Options:
    """Make a dataclass from the values of its options.

    Args:
        kind: the dataclass.
        values: the parameters of a command with `options_of(kind)`; others are ignored.

    Raises:
        ClickException: a number is not finite.
    """
    found: dict[str, Any] = {}
    for field, hint in declared.hinted_fields(kind):
        text = declared.option_text(field.metadata)
        if is_dataclass(hint) and isinstance(hint, type):
            found[field.name] = read_options(hint, values)
        elif text is not None:
            value = values[field.name]
            # click's ranges accept nan.
            if isinstance(value, float) and not isfinite(value):
                refuse(f"{_flag(field.name, text)} must be a finite number, not {value}")
            found[field.name] = None if text.none is not None and value == text.none else value
    return kind(**found)


def _option(name: str, hint: Any, default: Any, text: OptionText) -> Decorator:
    """Make click's option of one field."""
    if hint is bool:
        return click.option(_flag(name, text), name, is_flag=True, default=default, help=text.help)
    kind: click.ParamType[Any] | None = None
    if text.choices:
        kind = click.Choice(text.choices)
    elif hint is int:
        kind = (
            click.IntRange(_whole(text.least), _whole(text.most))
            if _is_bounded(text)
            else click.INT
        )
    elif hint is float:
        kind = click.FloatRange(text.least, text.most)
    default = text.none if default is None else default
    return click.option(
        _flag(name, text),
        name,
        type=kind,
        default=default,
        show_default=default is not None,
        metavar=text.metavar,
        help=text.help,
    )


def _flag(name: str, text: OptionText) -> str:
    return text.flag or f"--{name.replace('_', '-')}"


def _is_bounded(text: OptionText) -> bool:
    return text.least is not None or text.most is not None


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def path_options(*, drawn: bool = False, saved: bool = False, optional: bool = False) -> Decorator:
    """Add ``--from`` and ``--to``, as `old` and `new`.

    Args:
        drawn: releases that are left out are drawn; otherwise they have to be given.
        saved: a file may contain what the group runs.
        optional: the command can do without releases.
    """
    default = "; drawn by default." if drawn else "."
    return all_of(
        [
            release_option(
                "--from",
                "old",
                f"Release that the group runs{default}",
                required=not (drawn or saved),
            ),
            release_option(
                "--to",
                "new",
                f"Release that the group is brought to{default}",
                required=not (drawn or optional),
            ),
        ]
    )


def group_options(
    *,
    drawn: bool = False,
    members: int,
    threads: int = 0,
    saved: bool = False,
    optional: bool = False,
) -> Decorator:
    """Add the options that name a group, the release it runs and the one it is brought to.

    Args:
        drawn: releases that are left out are drawn; otherwise they have to be given.
        members: the largest number of members.
        threads: the largest number of threads in each; 0: no such option, and none for static
            members.
        optional: the command can do without releases.
        saved: a file may contain what the group runs.
    """
    options = [
        path_options(drawn=drawn, saved=saved, optional=optional),
        _count("members", members, 3, "Processes."),
    ]
    if threads:
        options += [
            _count("threads", threads, 1, "Stream threads in each process."),
            static_option,
            _shared("waits_for_sessions", declared.WAITS_FOR_SESSIONS),
        ]
    return all_of(options)


def partitions_option(
    *, most: int = MAX_PARTITIONS, default: int | None = 6, more: str = ""
) -> Decorator:
    """Add ``--partitions``; `more` ends its help."""
    return _count("partitions", most, default, f"Partitions of the source topic{more}.")


def seed_option(*, least: int | None = None, more: str = "") -> Decorator:
    """Add ``--seed``, without a default; `more` ends its help."""
    text = OptionText(help=f"Seed of the random generator{more}.", metavar="N", least=least)
    return _option("seed", int, None, text)


def _count(name: str, most: int, default: int | None, help_text: str) -> Decorator:
    return _option(name, int, default, OptionText(help=help_text, least=1, most=most))


def _shared(name: str, metadata: Mapping[str, Any]) -> Decorator:
    text = declared.option_text(metadata)
    if text is None:
        raise TypeError(f"{name} is not declared as an option")
    return _option(name, bool, default=False, text=text)


static_option: Final[Decorator] = _shared("static", declared.STATIC)
"""``--static``, as a bool."""

offline_option: Final[Decorator] = _shared("offline", declared.OFFLINE)
"""``--offline``, as a bool."""

force_option: Final[Decorator] = click.option(
    "--force",
    is_flag=True,
    help="One bounce without a pin, even if the path is known to be broken.",
)
"""``--force`` of simulations, as a bool."""


def faults_option(choices: str) -> Decorator:
    """Add ``--faults``, as text; `choices` ends its help."""
    return click.option(
        "--faults",
        default="none",
        show_default=True,
        metavar="LIST",
        help=f"Faults to inject; {choices}",
    )


draw_option: Final[Decorator] = click.option(
    "--draw",
    type=click.Choice(["releases", "all", "topology"]),
    default="releases",
    show_default=True,
    help="What a seed draws besides times: missing releases; all: also whether native members are"
    " cooperative, members static, serve queries and have routing views, and the number of standby"
    " replicas and warm-ups; topology: a change of the topology of a native group.",
)
"""``--draw`` of simulations, as text."""

topology_option: Final[Decorator] = click.option(
    "--topology",
    type=click.Choice([*map(str, sorted(ChangeKind))]),
    help="Change the topology of a native group in this way; the seed draws the rest of it.",
)
"""``--topology`` of simulations, as text or None."""


def report_option(more: str = "") -> Decorator:
    """Add ``--report FILE``, as a path or None; `more` ends its help."""
    return click.option(
        "--report",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Also write a report of the bounce, one HTML file without network{more}.",
    )


def given_here() -> frozenset[str]:
    """Return the names of the options on the command line, without defaults."""
    context = click.get_current_context()
    return frozenset(
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def given_among(among: Collection[str] = (), *, but: Collection[str] = ()) -> str:
    """Return the options on the command line, as text; empty: none of them is there.

    Args:
        among: names of parameters to look for; empty: all, save those in `but`.
        but: names of parameters that are left out.
    """
    given = given_here() - set(but)
    found = given & set(among) if among else given
    return ", ".join(
        option.opts[0]
        for option in click.get_current_context().command.params
        if option.name in found
    )


def refuse_options(
    sentence: str, among: Collection[str] = (), *, but: Collection[str] = ()
) -> None:
    """End the command if options were given that a plan does not use.

    Args:
        sentence: what does not use them, before their names.
        among: names of parameters that are not used; empty: all, save those in `but`.
        but: names of parameters that are used.
    """
    if names := given_among(among, but=but):
        refuse(f"{sentence} {names}")


def given_again(*, without: Collection[str] = ()) -> str:
    """Return a command line with the same options, but for those in `without`."""
    context = click.get_current_context()
    words = ["rolling-bounce", context.info_name or ""]
    given = given_here() - set(without)
    for option in context.command.params:
        name = option.name or ""
        if name in given and isinstance(option, click.Option):
            words += [option.opts[0], *([] if option.is_flag else [str(context.params[name])])]
    return shlex.join(words)


def refuse(sentence: str, status: int = EXIT_USAGE) -> NoReturn:
    """End the command with one sentence on stderr.

    Raises:
        ClickException: always.
    """
    raise failure(sentence, status)
