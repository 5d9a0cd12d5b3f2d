"""Options of ``assignor features``: where levels are, which levels, and how far one dares to go."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from assignor.cli.toolkit.connect import connect_options
from assignor.cli.toolkit.options import format_option

Command = Callable[..., Any]


def place_options(command: Command) -> Command:
    """Add the options that say where levels are."""
    for option in (
        format_option(),
        click.option(
            "--directory",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="The folder of a feature log, as `assignor storage format` made it.",
        ),
        click.option(
            "--group", metavar="GROUP", help="The group (application.id); else the cluster itself."
        ),
    ):
        command = option(command)
    return connect_options(command)


def update_options(command: Command) -> Command:
    """Add the options that all changes have."""
    return click.option("--dry-run", is_flag=True, help="Say what would come of it; do nothing.")(
        place_options(command)
    )


def lower_options(command: Command) -> Command:
    """Add the options of changes that go down."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask before levels go down."),
        click.option("--unsafe", is_flag=True, help="Even if something is lost for good."),
    ):
        command = option(command)
    return update_options(command)


def level_options(command: Command) -> Command:
    """Add `--metadata` and `--feature`."""
    for option in (
        click.option(
            "--feature",
            "named",
            multiple=True,
            metavar="NAME=LEVEL",
            help="A feature and its level; may be repeated.",
        ),
        click.option(
            "--metadata",
            metavar="LEVEL",
            help="Level of metadata.version; of a group, of persistent.metadata.version.",
        ),
    ):
        command = option(command)
    return command


release_version_option = click.option(
    "--release-version",
    "release",
    metavar="X.Y",
    help="Levels of this release of Kafka instead of the latest known here.",
)
"""``--release-version``, as `release`."""
