"""Text for people: colour and borders on a terminal, plain and uncut columns elsewhere.

Names and sentences of members and brokers are not trusted. Whatever is printed through this module
is printable text on its own line: nothing in it is markup, an escape sequence or a line break.
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
"""Of paragraphs where nobody says how wide the page is."""

SENTENCE_LIMIT: Final = 4000
"""Characters of a sentence that are printed; a name alone is cut earlier, by `encoding.shown`."""

_ENDLESS = 100_000
_TABLE_LIMIT = 2000  # rows; longer tables are printed plainly even on a terminal
_FULL = "█"


class _PipeConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command's end, as every other failure."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a plain string as one printable line; markup and emoji codes are text."""
        found = line(text, style=options.get("style", ""))
        found.justify, found.overflow = options.get("justify"), options.get("overflow")
        return found

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render; of a text, one printable line, unless it was folded here."""
        if isinstance(renderable, Text) and not isinstance(renderable, _Folded):
            renderable = _printable(renderable)
        return super().render(renderable, options)


class _Folded(Text):
    """Printable lines that `Sentence` made of one."""


def _printable(text: Text) -> Text:
    if text.plain.isprintable():
        return text
    copied = text.copy()
    copied.plain = shown(text.plain, limit=SENTENCE_LIMIT)
    return copied


def line(text: object, style: Any = "", *, limit: int = SENTENCE_LIMIT) -> Text:
    """Return a text as one printable line for rich, without markup.

    Args:
        text: a name or a sentence, foreign or not.
        style: of rich.
        limit: characters to show; a longer text is cut, and says how long it was.
    """
    return Text(shown(text, limit=limit), style=style)


def cell(content: str | Text) -> Text:
    """Return what a table shows of a cell: strings are names, texts may be as long as sentences."""
    if isinstance(content, str):
        return Text(shown(content))
    return _printable(content)


class TextTable(Table):
    """A table whose cells are text: printable, on one line, no markup."""

    def add_row(self, *cells: str | Text, **options: Any) -> None:  # type: ignore[override]  # no other renderable
        """Add a row; see `cell`."""
        super().add_row(*map(cell, cells), **options)


def text_grid(gap: int) -> TextTable:
    """Return a table without a header, with `gap` columns of space behind each column."""
    return TextTable(
        box=None,
        show_header=False,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, gap, 0, 0),
    )


class Sentence:
    """A sentence as printable lines of the console's width, all but the first further in.

    So no line but the first begins with foreign text.
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
    """Return a foreign time for people; the number where no calendar has the time.

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
    text = shown(text, limit=SENTENCE_LIMIT)
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
        rows: cells, in the order of the columns; each becomes one printable line.
        right: titles of columns whose cells are numbers.
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
