"""Options that several commands have: one name, one meaning, one sentence of help for each.

Their values reach the command under the names in the docstrings.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from assignor.config import setting_value
from assignor.errors import ConfigError
from assignor.placement import STRATEGIES
from encoding import shown
from probing import RELEASES

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
DEFAULT_STRATEGY = "high_availability"


def _complete(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    def complete(_context: object, _option: object, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def all_of(options: Sequence[Decorator]) -> Decorator:
    """Join decorators to one; --help lists them in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def format_option(*more: str, default: str | None = "text", said: str = "") -> Decorator:
    """Add ``--format``, as `form`: for people or for programs.

    Args:
        more: forms beside text and json.
        default: None where it depends on other options; `said` says on which.
        said: goes behind the help.
    """
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *more]),
        default=default,
        show_default=default is not None,
        help=f"For people or for programs{said}.",
    )


def problem_option(*, many: bool = True, required: bool = True) -> Decorator:
    """Add ``--problem``, as the binary stream `problem`."""
    said = "Groups, as JSON lines" if many else "One group, as JSON"
    return click.option(
        "--problem",
        type=click.File("rb"),
        required=required,
        metavar="FILE|-",
        help=f"{said}; - is stdin.",
    )


name_option: Decorator = click.option(
    "--name",
    metavar="NAME",
    help="Only the group of this name.",
)
"""``--name``, as text or None."""


def strategy_option(names: Iterable[str] = (), *, said: str = "") -> Decorator:
    """Add ``--strategy``, as `strategy`.

    Args:
        names: the only ones that there are; by default those of `assignor` and a user's own.
        said: what else is to be known.
    """
    of_ours = sorted(names)
    return click.option(
        "--strategy",
        type=click.Choice(of_ours) if of_ours else None,
        default=DEFAULT_STRATEGY,
        show_default=True,
        metavar=None if of_ours else "NAME",
        shell_complete=None if of_ours else _complete(lambda: sorted(STRATEGIES)),
        help=said or "One of those above, or MODULE:CALLABLE of your own.",
    )


def strategies_note() -> str:
    """Which strategies there are, for the end of a help text."""
    return f"Strategies: {', '.join(sorted(STRATEGIES))}."


config_option: Decorator = click.option(
    "--config",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting by Kafka's name, over the group's own; may be repeated.",
)
"""``--config``, as the tuple `settings`; `settings_of` reads it."""


def settings_of(given: Iterable[str]) -> dict[str, object]:
    """Read KEY=VALUE of ``--config``.

    Raises:
        ConfigError: one has no value.
    """
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--config {shown(text)} has no value; write KEY=VALUE")
        found[key] = setting_value(key, value)
    return found


def release_names() -> list[str]:
    """All names of releases, newest first: of a series, of a patch, and ours."""
    newest_first = RELEASES[::-1]
    series = (release.series for release in newest_first)
    return list(dict.fromkeys([*series, *(release.name for release in newest_first)]))


complete_release = _complete(release_names)
"""The ``shell_complete`` of an option that names a release."""


def release_option(flag: str, name: str, said: str, *, required: bool = False) -> Decorator:
    """Add an option that names a release, as text; shells complete it."""
    return click.option(
        flag,
        name,
        metavar="RELEASE",
        required=required,
        help=said,
        shell_complete=complete_release,
    )


def seeds_option(*, required: bool = False) -> Decorator:
    """Add ``--seeds``, as `seeds`."""
    return click.option(
        "--seeds",
        type=click.IntRange(1),
        required=required,
        metavar="N",
        help="Run this many, and sum up.",
    )


def timeout_option(said: str, *, least: float = 0.1, default: float | None = None) -> Decorator:
    """Add ``--timeout SECONDS``, as `timeout`."""
    return click.option(
        "--timeout",
        type=click.FloatRange(least, 3600),
        default=default,
        show_default=default is not None,
        metavar="SECONDS",
        help=said,
    )


workers_option: Decorator = click.option(
    "--workers", type=click.IntRange(1, 256), metavar="N", help="Processes; one a core by default."
)
"""``--workers``, as a number or None."""


def complete_path(kind: str) -> Callable[..., list[CompletionItem]]:
    """Let the shell complete a path that click does not know to be one: "file" or "dir"."""

    def complete(_context: object, _option: object, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=kind)]

    return complete
