"""Columns and cells of the tables of `assignor inspect`, and how wide a name may be."""

from collections.abc import Sequence
from typing import Final

from assignor.cli.toolkit.text import TextTable

GAP: Final = 2
"""Columns of space between two columns of a table."""
NAME_LEAST: Final = 8
"""Characters of a name that are shown however narrow the terminal is."""
_NAME_SHARE: Final = 3


def name_width(width: int) -> int:
    """Return how many characters a name that comes first may take of a terminal's width."""
    return max(NAME_LEAST, width // _NAME_SHARE)


def plain_table(*names: str, right: Sequence[str] = ()) -> TextTable:
    """Return a table; its first column is cut, not folded, so that names begin every line.

    Args:
        names: of the columns.
        right: names of further columns, for numbers.
    """
    table = TextTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold dim")
    for place, name in enumerate(names):
        is_first = place == 0
        table.add_column(name, overflow="ellipsis" if is_first else "fold", no_wrap=is_first)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def number(value: int | None) -> str:
    """Return a number for people; ? where it is not known."""
    return "?" if value is None else f"{value:,}"
