"""Options of ``assignor features``: where levels are, which levels, and how far one dares to go."""

from pathlib import Path

import click

from assignor.cli.toolkit.connect import connect_options
from assignor.cli.toolkit.options import Decorator, all_of, format_option

place_options: Decorator = all_of(
    (
        connect_options,
        click.option(
            "--group", metavar="GROUP", help="The group (application.id); else the cluster itself."
        ),
        click.option(
            "--directory",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="The folder of a feature log, as `assignor storage format` made it.",
        ),
        format_option(),
    )
)
"""The options that say where levels are."""

update_options: Decorator = all_of(
    (
        click.option("--dry-run", is_flag=True, help="Say what would come of it; do nothing."),
        place_options,
    )
)
"""The options that all changes have."""

lower_options: Decorator = all_of(
    (
        update_options,
        click.option("--unsafe", is_flag=True, help="Even if something is lost for good."),
        click.option("--yes", is_flag=True, help="Do not ask before levels go down."),
    )
)
"""The options of changes that go down."""

level_options: Decorator = all_of(
    (
        click.option(
            "--metadata",
            metavar="LEVEL",
            help="Level of metadata.version; of a group, of persistent.metadata.version.",
        ),
        click.option(
            "--feature",
            "named",
            multiple=True,
            metavar="NAME=LEVEL",
            help="A feature and its level; may be repeated.",
        ),
    )
)
"""``--metadata`` and ``--feature``."""


release_version_option = click.option(
    "--release-version",
    "release",
    metavar="X.Y",
    help="Levels of this release of Kafka instead of the latest known here.",
)
"""``--release-version``, as `release`."""
