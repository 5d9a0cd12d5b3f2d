"""Options that several commands share: the same name, meaning and help everywhere.

Each docstring names the parameter that receives the value.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from assignor.config import setting_value
from assignor.errors import ConfigError
from assignor.placement import STRATEGIES, user_module
from assignor.topology import Topology
from encoding import shown
from probing import RELEASES

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
DEFAULT_STRATEGY = "high_availability"
_OWN_STRATEGY = (
    "One of those above, or MODULE:CALLABLE of your own: a module on the import path, or else "
    "MODULE.py or the package MODULE in the current directory. A package may import its own "
    "modules (`from . import x`); a single file cannot import the files beside it."
)


def _complete(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    def complete(_context: object, _option: object, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def all_of(options: Sequence[Decorator]) -> Decorator:
    """Return one decorator that applies all of them; --help lists the options in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def imported_topology(name: str) -> Topology:
    """Return the topology that MODULE:NAME names; NAME is a topology, or returns one when called.

    The module is on the import path, or in the current directory.

    Raises:
        ConfigError: there is no such module or name, or it is no topology.
        TopologyError: calling it raised this.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ConfigError(f"topology {shown(name)!r} is not understood; give MODULE:NAME")
    found = getattr(user_module(module), attribute, None)
    if callable(found):
        found = found()
    if not isinstance(found, Topology):
        raise ConfigError(f"{shown(name)} is not an assignor.Topology; name one, or a function")
    return found


def format_option(*more: str, default: str | None = "text", help_suffix: str = "") -> Decorator:
    """Add ``--format``, as `form`: text for people, json for programs.

    Args:
        more: formats besides text and json.
        default: the format; None if it depends on other options, which `help_suffix` explains.
        help_suffix: text that is appended to the help, for example `; by default text`.
    """
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *more]),
        default=default,
        show_default=default is not None,
        help=f"Output format{help_suffix}.",
    )


def problem_option(*, many: bool = True, required: bool = True) -> Decorator:
    """Add ``--problem``, as the binary stream `problem`."""
    content = (
        "Problem file (JSON, one group per line)" if many else "Problem file (JSON, one group)"
    )
    return click.option(
        "--problem",
        type=click.File("rb"),
        required=required,
        metavar="FILE|-",
        help=f"{content}; - is stdin.",
    )


name_option: Decorator = click.option(
    "--name",
    metavar="NAME",
    help="Only the group with this name.",
)
"""``--name``, as text or None."""


def strategy_option(names: Iterable[str] = (), *, help_text: str = "") -> Decorator:
    """Add ``--strategy``, as `strategy`.

    Args:
        names: the strategies to choose from; by default those of `assignor` and MODULE:CALLABLE.
        help_text: the help; by default the sentence about MODULE:CALLABLE.
    """
    of_ours = sorted(names)
    return click.option(
        "--strategy",
        type=click.Choice(of_ours) if of_ours else None,
        default=DEFAULT_STRATEGY,
        show_default=True,
        metavar=None if of_ours else "NAME",
        shell_complete=None if of_ours else _complete(lambda: sorted(STRATEGIES)),
        help=help_text or _OWN_STRATEGY,
    )


def strategies_note() -> str:
    """Return the list of strategies, for the end of a help text."""
    return f"Strategies: {', '.join(sorted(STRATEGIES))}."


config_option: Decorator = click.option(
    "--config",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a setting of the group, by Kafka's name; may be repeated.",
)
"""``--config``, as the tuple `settings`; `settings_of` reads it."""


def settings_of(given: Iterable[str]) -> dict[str, object]:
    """Return the settings that the KEY=VALUE texts of ``--config`` give.

    Raises:
        ConfigError: a text has no `=`.
    """
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--config {shown(text)} has no value; write KEY=VALUE")
        found[key] = setting_value(key, value)
    return found


def release_names() -> list[str]:
    """Return all release names, newest first: series, patch releases, and native releases."""
    newest_first = RELEASES[::-1]
    series = (release.series for release in newest_first)
    return list(dict.fromkeys([*series, *(release.name for release in newest_first)]))


complete_release = _complete(release_names)
"""The ``shell_complete`` of an option that names a release."""


def release_option(flag: str, name: str, help_text: str, *, required: bool = False) -> Decorator:
    """Add an option that names a release, as text; shells complete it."""
    return click.option(
        flag,
        name,
        metavar="RELEASE",
        required=required,
        help=help_text,
        shell_complete=complete_release,
    )


def seeds_option(*, required: bool = False) -> Decorator:
    """Add ``--seeds``, as `seeds`."""
    return click.option(
        "--seeds",
        type=click.IntRange(1),
        required=required,
        metavar="N",
        help="Run this many seeds and print a summary.",
    )


def timeout_option(
    help_text: str, *, least: float = 0.1, default: float | None = None
) -> Decorator:
    """Add ``--timeout SECONDS``, as `timeout`."""
    return click.option(
        "--timeout",
        type=click.FloatRange(least, 3600),
        default=default,
        show_default=default is not None,
        metavar="SECONDS",
        help=help_text,
    )


workers_option: Decorator = click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Number of processes; default: one per core.",
)
"""``--workers``, as a number or None."""


def complete_path(kind: str) -> Callable[..., list[CompletionItem]]:
    """Return a completer for an option whose text is a path; `kind` is "file" or "dir"."""

    def complete(_context: object, _option: object, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=kind)]

    return complete
