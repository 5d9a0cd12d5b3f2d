"""The table of the groups most worth touching."""

from collections.abc import Callable, Sequence

import click

from assignor.cli import TextTable, print_uncut
from encoding import shown
from spark_assign.batch import GroupWorth
from spark_assign.whatif import short

_NAME_SHOWN = 80
_COLUMNS: tuple[tuple[str, Callable[[GroupWorth], str]], ...] = (
    ("worth", lambda row: f"{row.worth:.2f}"),
    ("gained", lambda row: str(row.gained)),
    ("touched", lambda row: str(row.touched)),
    ("hand-offs", lambda row: str(row.handoffs)),
    ("take-overs", lambda row: str(row.takeovers)),
    ("restores", lambda row: str(row.restores)),
    ("records", lambda row: short(row.restored_records)),
    ("balance", lambda row: f"{row.balance_before:.2f} -> {row.balance_settled:.2f}"),
)


def print_worth(rows: Sequence[GroupWorth], *, worth: int, placed: int) -> None:
    """Print the groups most worth touching.

    Args:
        rows: the groups to list, the first ones first.
        worth: number of groups whose worth is above 0.
        placed: number of all groups that are placed.
    """
    if not rows:
        click.echo(f"worth touching: none of {placed} groups")
        return
    first = "" if len(rows) == worth else f"; the first {len(rows)}"
    click.echo(f"worth touching: {worth} of {placed} groups{first}:")
    table = TextTable(box=None, pad_edge=False)
    table.add_column("group", no_wrap=True, overflow="ellipsis")
    for title, _ in _COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(shown(row.name, limit=_NAME_SHOWN), *[cell(row) for _, cell in _COLUMNS])
    print_uncut(table)
