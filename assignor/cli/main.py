"""The entry point of ``assignor``.

The exit status is the same in all three programs: see `toolkit/exit_status.py`.
"""

import click

from assignor.cli.toolkit.commands import LazyGroup, Subcommand
from assignor.cli.toolkit.completion import COMPLETION


class _Assignor(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
        "assign": Subcommand(
            "assignor.cli.assign.command", "assign", "Assign the tasks of groups to their clients."
        ),
        "completion": COMPLETION,
        "decode": Subcommand(
            "assignor.cli.codec", "decode", "Decode a subscription or assignment."
        ),
        "diff": Subcommand(
            "assignor.cli.diff", "diff", "Show which tasks move between two assignments, and why."
        ),
        "encode": Subcommand(
            "assignor.cli.codec", "encode", "Encode subscription and assignment metadata."
        ),
        "explain": Subcommand(
            "assignor.cli.explain", "explain", "Explain why each task runs where it runs."
        ),
        "inspect": Subcommand(
            "assignor.cli.inspect.command",
            "inspect",
            "Inspect a live group: versions, tasks, lags, findings.",
        ),
        "features": Subcommand(
            "assignor.cli.features.command", "features", "Show and change finalized feature levels."
        ),
        "negotiate": Subcommand(
            "assignor.cli.negotiate.command",
            "negotiate",
            "Show which versions a leader answers with, and what each member does next.",
        ),
        "reset": Subcommand(
            "assignor.cli.reset.command",
            "reset",
            "Take an application back to its beginning: offsets, topics, state.",
        ),
        "sample": Subcommand("assignor.cli.sample", "sample", "Write sample groups of any size."),
        "size": Subcommand(
            "assignor.cli.size.command", "size", "Report the size of a group's metadata."
        ),
        "storage": Subcommand(
            "assignor.cli.storage", "storage", "Create and inspect a feature log directory."
        ),
        "write-back": Subcommand(
            "assignor.cli.write_back",
            "write_back",
            "Write kept copies of state stores back to changelogs that have lost records.",
        ),
    }


_EXAMPLES = """
PROGRAM inspect --bootstrap-server localhost:9092 --all
PROGRAM assign --problem groups.jsonl
PROGRAM negotiate --members 10/11,11/11
"""


@click.command("assignor", cls=_Assignor, examples=_EXAMPLES, exits={1: 'the answer is "no"'})
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Inspect live groups and their metadata, assign tasks, and negotiate versions."""
