"""``assignor features downgrade-topology``: take a group back to an older topology."""

import json
from pathlib import Path

import click

from assignor.cli.toolkit import BadInput, Command, EnvironmentFailed, format_option
from assignor.cli.toolkit.options import imported_topology
from assignor.embedding import ProcessDirectory, StateDirectoryLocked
from assignor.errors import ConfigError, TopologyError
from assignor.stores import StoreError
from assignor.topology import content_fingerprint
from probing.topologies import lowered

_HELP = """Let the partitions of changed subtopologies return to an older topology.

A partition that has run in a new form never returns by itself. This command lowers the version that
is remembered as reached, with the next epoch, in the state directory of a member that is stopped.
Start that member with the older program next: it tells the group, and partitions return as they are
orphaned or moved by balance. Then bounce the others back.
"""


@click.command(
    "downgrade-topology",
    cls=Command,
    help=_HELP,
    short_help="Take a group back to an older topology of its application.",
    examples="""
PROGRAM features downgrade-topology --state-dir state/one \\
    --topology app:FIRST --application-id app
""",
    exits={0: "the state directory says so now"},
)
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    required=True,
    help="State directory of a member that is stopped.",
)
@click.option(
    "--topology", metavar="MODULE:NAME", required=True, help="The topology to go back to."
)
@click.option("--application-id", required=True, help="Prefix of internal topics.")
@format_option()
def downgrade_topology(state_dir: Path, topology: str, application_id: str, form: str) -> None:
    """Entry point of the subcommand."""
    try:
        chosen = imported_topology(topology)
        forms = {content_fingerprint(part) for part in chosen.subtopologies(application_id)}
        directory = ProcessDirectory(state_dir)
        try:
            above = {f for f, r in directory.reached.items() if r.version > chosen.version}
            memory = lowered(directory.reached, forms | above, chosen.version)
            directory.remember_reached(memory)
        finally:
            directory.close()
    except (ConfigError, TopologyError) as error:
        raise BadInput(str(error)) from None
    except (StoreError, StateDirectoryLocked) as error:
        raise EnvironmentFailed(str(error)) from None
    epoch = max(reached.epoch for reached in memory.values())
    if form == "json":
        click.echo(json.dumps({"version": chosen.version, "epoch": epoch, "forms": len(memory)}))
    else:
        click.echo(
            f"{state_dir} remembers version {chosen.version} in epoch {epoch}; start its member"
            " with that topology next"
        )
