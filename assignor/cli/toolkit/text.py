"""Text output: colour and borders on a terminal, plain columns at full width elsewhere.

Names and messages from members and brokers are not trusted. Everything that this module prints is
printable text on its own line, without markup, escape sequences or line breaks.
"""

import os
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, NoReturn

import click
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from encoding import shown

WIDTH: Final = 100
"""Width of paragraphs in characters, when the output is not a terminal."""

SENTENCE_LIMIT: Final = 4000
"""Longest sentence that is printed, in characters; `encoding.shown` cuts names earlier."""

_ENDLESS = 100_000
_TABLE_LIMIT = 2000  # rows; longer tables have no frame, even on a terminal
_FULL = "█"


class _PipeConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Raise the error; `exit_status.end` handles it."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as one printable line; markup and emoji codes are plain text."""
        found = line(text, style=options.get("style", ""))
        found.justify, found.overflow = options.get("justify"), options.get("overflow")
        return found

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render; a text becomes one printable line, unless `Sentence` folded it."""
        if isinstance(renderable, Text) and not isinstance(renderable, _Folded):
            renderable = _printable(renderable)
        return super().render(renderable, options)


class _Folded(Text):
    """The printable lines of a folded `Sentence`."""


def _printable(text: Text) -> Text:
    if text.plain.isprintable():
        return text
    copied = text.copy()
    copied.plain = shown(text.plain, limit=SENTENCE_LIMIT)
    return copied


def line(text: object, style: Any = "", *, limit: int = SENTENCE_LIMIT) -> Text:
    """Return a text as one printable line for rich, without markup.

    Args:
        text: a name or a sentence, trusted or not.
        style: rich's style.
        limit: most characters to show; a longer text is cut and its length is shown.
    """
    return Text(shown(text, limit=limit), style=style)


def cell(content: str | Text) -> Text:
    """Return a table cell: a string is cut like a name, a `Text` like a sentence."""
    if isinstance(content, str):
        return Text(shown(content))
    return _printable(content)


class TextTable(Table):
    """A table whose cells are printable text on one line, without markup."""

    def add_row(self, *cells: str | Text, **options: Any) -> None:  # type: ignore[override]  # no other renderable
        """Add a row; see `cell`."""
        super().add_row(*map(cell, cells), **options)


def text_grid(gap: int) -> TextTable:
    """Return a table without a header, with `gap` spaces after each column."""
    return TextTable(
        box=None,
        show_header=False,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, gap, 0, 0),
    )


class Sentence:
    """A sentence, folded to the console's width into printable lines with a hanging indent.

    The indent ensures that no further line begins with untrusted text.
    """

    def __init__(self, text: object, style: str = "") -> None:
        self._text, self._style = str(text), style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        del console
        yield _Folded(_folded(self._text, options.max_width), style=self._style)


def _folded(sentence: str, width: int) -> str:
    text = shown(sentence, limit=SENTENCE_LIMIT)
    inner = " " * (len(text) - len(text.lstrip()) + 2)
    return "\n".join(textwrap.wrap(text, width, subsequent_indent=inner, break_on_hyphens=False))


def print_line(sentence: object) -> None:
    """Print a sentence on stdout, as one printable line."""
    click.echo(shown(sentence, limit=SENTENCE_LIMIT))


def utc_time(epoch_ms: int, form: str = "%Y-%m-%d %H:%M:%S UTC") -> str:
    """Return a time from another program as text; the bare number if it is out of range.

    >>> utc_time(0)
    '1970-01-01 00:00:00 UTC'
    >>> utc_time(-(2**63))
    '-9223372036854775808 ms'
    """
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        return f"{epoch_ms} ms"


def text_console(*, stderr: bool = False, width: int = WIDTH) -> Console:
    """Return a console for the terminal, or for plain text of `width` columns.

    If NO_COLOR is set, the console also drops bold and dim.
    """
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    probe = _PipeConsole(stderr=stderr, color_system=colours)
    if probe.is_terminal:
        return probe
    return _PipeConsole(stderr=stderr, color_system=colours, width=width)


def print_uncut(shown: RenderableType) -> None:
    """Print tables and texts; outside a terminal, every table is as wide as it needs to be.

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
    """Print a sentence, folded to `WIDTH` characters."""
    text = shown(text, limit=SENTENCE_LIMIT)
    click.echo("\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ")))


def bar(share: float, width: int) -> str:
    """Return a bar of `share` (0 to 1) times `width` characters.

    The bar consists of `#` if the encoding of stdout has no block character.
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
        columns: the column titles.
        rows: cells, in the order of the columns; each cell becomes one printable line.
        right: titles of the columns to align on the right.
    """
    rows = [[shown(content, limit=SENTENCE_LIMIT) for content in row] for row in rows]
    console = text_console()
    if console.is_terminal and len(rows) <= _TABLE_LIMIT:
        table = Table()
        for name in columns:
            table.add_column(name, justify="right" if name in right else "left")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
        return
    lines = (columns, *rows)
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides: list[Callable[[str, int], str]] = [
        str.rjust if name in right else str.ljust for name in columns
    ]
    for row in lines:
        cells = (to(content, w) for to, content, w in zip(sides, row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
