"""Confirmation of a change that lowers something."""

import sys

import click

from assignor.cli.toolkit import BadInput


class Refused(click.exceptions.Exit):
    """Exit status 1; the messages have been printed."""

    def __init__(self) -> None:
        super().__init__(1)


def confirm(question: str) -> None:
    """Ask the user; return if the answer is yes.

    Raises:
        BadInput: stdin is not a terminal.
        Refused: the user declines.
    """
    if not _is_terminal():
        raise BadInput(f"{question} Standard input is not a terminal; add --yes to confirm")
    if not click.confirm(question, err=True):
        click.echo("nothing was changed", err=True)
        raise Refused


def _is_terminal() -> bool:
    return sys.stdin.isatty()
