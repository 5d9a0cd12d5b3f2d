"""What commands that start real members share: a check, and lines at the end."""

from collections.abc import Iterable
from typing import Final

from assignor.cli import text_console
from assignor.cli.toolkit import absent_extra
from system_tests.cli.options import EXIT_ENVIRONMENT, refuse
from system_tests.live import MIXED

# What the embedded broker does not need itself.
_PACKAGES: Final = {"aiokafka": "aiokafka", "confluent": "confluent_kafka", MIXED: "aiokafka"}


def check_client(client: str) -> None:
    """End the command if the client library of the members is not installed.

    Raises:
        ClickException: with the extra that installs it.
    """
    package = _PACKAGES.get(client)
    if package is not None and (advice := absent_extra(package)) is not None:
        refuse(f"--client {client}: {advice}", EXIT_ENVIRONMENT)


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print (line, style) pairs below the trace."""
    console = text_console()
    console.print()
    for line, style in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
