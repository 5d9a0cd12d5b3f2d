"""Explore every rolling change of the topology, and print the figures of each exploration."""

import click

from tests.probing.topologies.model import CHANGES, Model

_ROW = "{:<8} {:<13} {:>7} {:>7} {:>10} {:>6} {:>11} {:>7}"


def main() -> None:
    """Explore each change with one crash, and the change of a subtopology with two."""
    heads = ("change", "leads first", "crashes", "states", "rebalances", "ends", "unconfirmed")
    click.echo(_ROW.format(*heads, "broken"))
    rows = [(change, 1) for change in CHANGES] + [("change", 2)]
    for change, crashes in rows:
        for leads, program in ((1, "old program"), (2, "new program")):
            found = Model(change, leads, crashes=crashes).explore()
            figures = (found.states, found.rebalances, found.ended, found.unconfirmed)
            click.echo(_ROW.format(change, program, crashes, *figures, len(found.broken)))


if __name__ == "__main__":
    main()
