"""Entry point of ``assignor``.

Exit status, the same in all three commands: 0 done, 1 the answer is "no", 2 wrong usage or bad
input, 3 the surroundings failed (no broker, disk).
"""

import click

from assignor.cli.lazy import CONTEXT, LazyGroup, Subcommand


class _Assignor(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
        "assign": Subcommand("assignor.cli.assign", "assign", "Place the tasks of groups."),
        "decode": Subcommand("assignor.cli.codec", "decode", "Explain the bytes of a blob."),
        "diff": Subcommand(
            "assignor.cli.diff", "diff", "Say what moves between two looks at a group, and why."
        ),
        "encode": Subcommand("assignor.cli.codec", "encode", "Write blobs from their fields."),
        "explain": Subcommand(
            "assignor.cli.explain", "explain", "Say why tasks run where they run."
        ),
        "inspect": Subcommand("assignor.cli.inspect", "inspect", "Look into a live group."),
        "features": Subcommand(
            "assignor.cli.features", "features", "Show and change finalized feature levels."
        ),
        "negotiate": Subcommand(
            "assignor.cli.negotiate",
            "negotiate",
            "Ask what a leader answers, and what each member does next.",
        ),
        "size": Subcommand("assignor.cli.size", "size", "Say what a group's metadata weighs."),
        "storage": Subcommand(
            "assignor.cli.storage", "storage", "Make the folder of a feature log, and look at it."
        ),
    }


@click.command(cls=_Assignor, context_settings=CONTEXT)
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Look into live groups and their metadata, place tasks, negotiate versions.

    Exit status: 0 done, 1 the answer is "no", 2 wrong usage or bad input, 3 the surroundings
    failed.
    """
