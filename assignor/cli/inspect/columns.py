"""Columns and cells of the tables of `assignor inspect`, and the width of names."""

from collections.abc import Sequence
from typing import Final

from assignor.cli.toolkit.text import TextTable

NARROW: Final = 72
"""Width of a terminal below which tables have fewer columns."""
GAP: Final = 2
"""Spaces between two columns of a table."""
NAME_LEAST: Final = 8
"""Fewest characters of a name that are shown, even on a narrow terminal."""
_NAME_SHARE: Final = 3


def name_width(width: int) -> int:
    """Return the most characters for a name in the first column of a terminal of this width."""
    return max(NAME_LEAST, width // _NAME_SHARE)


def plain_table(*names: str, right: Sequence[str] = ()) -> TextTable:
    """Return a table; its first column is cut, not folded, so that every row is one line there.

    Args:
        names: titles of the text columns.
        right: titles of further columns, for numbers.
    """
    table = TextTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold dim")
    for place, name in enumerate(names):
        is_first = place == 0
        table.add_column(name, overflow="ellipsis" if is_first else "fold", no_wrap=is_first)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def number(value: int | None) -> str:
    """Return a number with thousands separators; `?` if it is not known."""
    return "?" if value is None else f"{value:,}"
