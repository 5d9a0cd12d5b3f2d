"""Options of ``assignor features``: where the levels are, which levels, and how to change them."""

from pathlib import Path

import click

from assignor.cli.toolkit.connect import connect_options
from assignor.cli.toolkit.options import Decorator, all_of, format_option

location_options: Decorator = all_of(
    (
        connect_options,
        click.option(
            "--group",
            metavar="GROUP",
            help="Group id (application.id); default: the cluster's own levels.",
        ),
        click.option(
            "--directory",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Feature log directory, created by `assignor storage format`.",
        ),
        format_option(),
    )
)
"""The options that name a cluster, a group or a directory, and ``--format``."""

update_options: Decorator = all_of(
    (
        click.option(
            "--dry-run",
            is_flag=True,
            help="Show the result without changing anything.",
        ),
        location_options,
    )
)
"""The options of every change."""

lower_options: Decorator = all_of(
    (
        update_options,
        click.option("--unsafe", is_flag=True, help="Allow a downgrade that loses metadata."),
        click.option("--yes", is_flag=True, help="Skip the confirmation."),
        click.option(
            "--force", is_flag=True, help="Disable a feature although live groups depend on it."
        ),
    )
)
"""The options of a change that lowers levels."""

level_options: Decorator = all_of(
    (
        click.option(
            "--metadata",
            metavar="LEVEL",
            help="Level of metadata.version; for a group: of persistent.metadata.version.",
        ),
        click.option(
            "--feature",
            "named",
            multiple=True,
            metavar="NAME=LEVEL",
            help="Feature and level; may be repeated.",
        ),
    )
)
"""``--metadata`` and ``--feature``."""


release_version_option = click.option(
    "--release-version",
    "release",
    metavar="X.Y",
    help="Use the levels of this Kafka release instead of the latest known ones.",
)
"""``--release-version``, as `release`."""
