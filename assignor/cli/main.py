"""Entry point of ``assignor``.

Exit status, the same in all three programs: `toolkit/exit_status.py`.
"""

import click

from assignor.cli.toolkit.commands import LazyGroup, Subcommand
from assignor.cli.toolkit.completion import COMPLETION


class _Assignor(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
        "assign": Subcommand("assignor.cli.assign.command", "assign", "Place the tasks of groups."),
        "completion": COMPLETION,
        "decode": Subcommand("assignor.cli.codec", "decode", "Explain the bytes of a blob."),
        "diff": Subcommand(
            "assignor.cli.diff", "diff", "Say what moves between two looks at a group, and why."
        ),
        "encode": Subcommand("assignor.cli.codec", "encode", "Write blobs from their fields."),
        "explain": Subcommand(
            "assignor.cli.explain", "explain", "Say why tasks run where they run."
        ),
        "inspect": Subcommand("assignor.cli.inspect.command", "inspect", "Look into a live group."),
        "features": Subcommand(
            "assignor.cli.features.command", "features", "Show and change finalized feature levels."
        ),
        "negotiate": Subcommand(
            "assignor.cli.negotiate.command",
            "negotiate",
            "Ask what a leader answers, and what each member does next.",
        ),
        "size": Subcommand(
            "assignor.cli.size.command", "size", "Say what a group's metadata weighs."
        ),
        "storage": Subcommand(
            "assignor.cli.storage", "storage", "Make the folder of a feature log, and look into it."
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
    """Look into live groups and their metadata, place tasks, negotiate versions."""
