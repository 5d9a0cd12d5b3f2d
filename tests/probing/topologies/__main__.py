"""Explore every rolling change of the topology, and print the figures of each exploration."""

import click

from tests.probing.topologies.changes import CHANGES
from tests.probing.topologies.model import Model

_HEADS = ("change", "members", "crashes", "states", "rebalances", "ends", "records", "reported")
_ROW = "{:<22} {:>7} {:>7} {:>7} {:>10} {:>6} {:>8} {:>8} {:>6}"


def main() -> None:
    """Explore each change with one crash in groups of several sizes; one change with two."""
    click.echo(_ROW.format(*_HEADS, "broken"))
    rows = [(change, members, 1) for change in CHANGES for members in (2, 3, 4)]
    for change, members, crashes in [*rows, ("change", 3, 2), ("removed", 3, 2)]:
        found = Model(change, 1, members=members, crashes=crashes).explore(limit=1)
        figures = (found.states, found.rebalances, found.ended, found.records, found.reported)
        click.echo(_ROW.format(change, members, crashes, *figures, len(found.broken)))


if __name__ == "__main__":
    main()
