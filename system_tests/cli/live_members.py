"""What commands that start real members share: options, a check, and lines at the end."""

from collections.abc import Iterable
from typing import Final

import click

from assignor.cli import text_console
from assignor.cli.toolkit import absent_extra
from system_tests.cli.options import EXIT_SURROUNDINGS, Decorator, refuse
from system_tests.live import CLIENTS, MIXED

rate_option: Final[Decorator] = click.option(
    "--rate",
    type=click.FloatRange(1, 20_000),
    default=200.0,
    show_default=True,
    help="Records written per second.",
)
"""``--rate``, as a float."""

client_option: Final[Decorator] = click.option(
    "--client",
    type=click.Choice([*CLIENTS, MIXED]),
    default=CLIENTS[0],
    show_default=True,
    help="What members run on; mixed takes the two in turn.",
)
"""``--client``, as text."""


def broker_option(*, metavar: str, default: str | None = None) -> Decorator:
    """Add ``--broker``, as text."""
    return click.option(
        "--broker",
        default=default,
        show_default=default is not None,
        metavar=metavar,
        help="What broker to start; kafka:3.9, kafka:4 (the newest): a real one (extra `real`).",
    )


def check_client(client: str) -> None:
    """End the command where the library that members shall run on is not installed.

    Raises:
        ClickException: with the extra that brings it.
    """
    if client != CLIENTS[0] and (advice := absent_extra("aiokafka")) is not None:
        refuse(f"--client {client}: {advice}", EXIT_SURROUNDINGS)


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print (line, style) pairs below the trace."""
    console = text_console()
    console.print()
    for line, style in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
