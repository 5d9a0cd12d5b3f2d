"""Text for people: colour and borders on a terminal, plain and uncut columns elsewhere."""

import os
import sys
import textwrap
from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal, NoReturn

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

WIDTH: Final = 100
"""Of paragraphs where nobody says how wide the page is."""

_ENDLESS = 100_000
_TABLE_LIMIT = 2000  # rows; longer tables are printed plainly even on a terminal
_FULL = "█"


class _PipeConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command's end, as every other failure."""
        raise BrokenPipeError


def text_console(*, stderr: bool = False, width: int = WIDTH) -> Console:
    """The terminal; or a page of so many columns, without colour.

    NO_COLOR, if it is set to anything, also takes away bold and dim.
    """
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    probe = _PipeConsole(stderr=stderr, color_system=colours)
    if probe.is_terminal:
        return probe
    return _PipeConsole(stderr=stderr, color_system=colours, width=width)


def print_uncut(shown: RenderableType) -> None:
    """Print; where it is no terminal, every table as wide as it needs to be.

    Args:
        shown: a table, or a group of tables and texts.
    """
    console = text_console()
    if console.is_terminal:
        console.print(shown, highlight=False)
        return
    endless = text_console(width=_ENDLESS)
    for part in shown.renderables if isinstance(shown, Group) else (shown,):
        is_table = isinstance(part, Table) and part.show_header  # a grid holds paragraphs
        need = endless.measure(part).maximum if is_table else WIDTH
        text_console(width=max(need, WIDTH)).print(part, highlight=False)


def paragraph(text: str) -> None:
    """Print a sentence, folded to the width that a page of text has."""
    click.echo("\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ")))


def bar(share: float, width: int) -> str:
    """A bar of `width` characters at most, of which `share` (0 to 1) is filled.

    A stream that knows no blocks gets number signs.
    """
    try:
        _FULL.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "#" * round(width * share)
    return _FULL * round(width * share)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()
) -> None:
    """Print rows, with a frame on a terminal and as aligned columns elsewhere.

    Args:
        columns: their titles.
        rows: cells, in the order of the columns.
        right: titles of columns whose cells are numbers.
    """
    console = text_console()
    if console.is_terminal and len(rows) <= _TABLE_LIMIT:
        table = Table()
        for name in columns:
            table.add_column(name, justify="right" if name in right else "left")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
        return
    lines = (columns, *rows)
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides: list[Callable[[str, int], str]] = [
        str.rjust if name in right else str.ljust for name in columns
    ]
    for row in lines:
        cells = (to(cell, w) for to, cell, w in zip(sides, row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
