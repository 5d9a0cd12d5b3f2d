"""Where the trace goes: a plain stream, a live view on a terminal, or nowhere."""

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from assignor.cli.toolkit import TextTable
from assignor.cli.toolkit import line as line_text
from encoding import shown
from system_tests.live.group import GroupView, MemberView, Presence
from system_tests.trace import LEGEND, Symbol, TraceLine, format_header, format_line

_STYLES = {
    Symbol.LEADS: "cyan",
    Symbol.STARTS: "green",
    Symbol.STOPS: "red",
    Symbol.UPGRADES: "bold green",
    Symbol.DOWNGRADES: "bold yellow",
}
# Minimum widths, so that the table does not jump when members start and stop.
_COLUMNS = (
    ("member", 8),
    ("release", 8),
    ("used", 10),
    ("generation", 10),
    ("tasks", 24),
    ("records", 7),
)
_SHOWN_LINES = 14
_PER_SECOND = 8


class PlainScreen:
    """One line of text per event; for pipes, files and logs."""

    def __init__(self, stream: TextIO, members: Sequence[str]) -> None:
        self._stream = stream
        self._began = False
        self._members = tuple(members)

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing."""

    def line(self, line: TraceLine) -> None:
        """Write one line at once; legend and header precede the first one."""
        if not self._began:
            self._began = True
            self._write(LEGEND)
            self._write(format_header(self._members))
        self._write(format_line(line, members=self._members))

    def refresh(self, group: GroupView) -> None:
        """Do nothing: a stream shows events only."""

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class SilentScreen(PlainScreen):
    """Shows nothing; for programs that read the JSON at the end."""

    def _write(self, text: str) -> None:
        del text


class TerminalScreen:
    """Shows the members above the last lines of the trace; at the end prints the whole trace."""

    def __init__(self, console: Console, members: Sequence[str], *, title: str) -> None:
        self._console = console
        self._members = tuple(members)
        self._title = title
        self._lines: list[TraceLine] = []
        self._last: deque[TraceLine] = deque(maxlen=_SHOWN_LINES)
        self._live = Live(console=console, refresh_per_second=_PER_SECOND, transient=True)
        self._group = GroupView.of(members)

    def __enter__(self) -> Self:
        """Begin to draw on the terminal."""
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing, and print the whole trace."""
        self._live.__exit__(kind, error, trace)
        self._console.print(Text(LEGEND, style="dim"))
        self._console.print(Text(format_header(self._members), style="dim"))
        for line in self._lines:
            self._console.print(self._text(line), soft_wrap=True)

    def line(self, line: TraceLine) -> None:
        """Add one line to the trace."""
        self._lines.append(line)
        self._last.append(line)

    def refresh(self, group: GroupView) -> None:
        """Redraw."""
        self._group = group
        self._live.update(
            Group(
                self._table(),
                Text(format_header(self._members), style="dim"),
                *(self._text(line) for line in self._last),
                Text(LEGEND, style="dim"),
            )
        )

    def _text(self, line: TraceLine) -> Text:
        style = next((_STYLES[symbol] for symbol in line.lanes if symbol in _STYLES), "")
        return Text(
            format_line(line, members=self._members), style=style, no_wrap=True, overflow="ellipsis"
        )

    def _table(self) -> TextTable:
        title = line_text(self._title)
        table = TextTable(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for name, width in _COLUMNS:
            numeric = name in ("generation", "records")
            table.add_column(name, min_width=width, justify="right" if numeric else "left")
        for member in self._group.members.values():
            table.add_row(*_cells(member, leads=member.name == self._group.leader))
        return table


class RecordingScreen:
    """Passes lines and views on to another screen, and keeps the lines.

    Attributes:
        lines: of the trace so far.
    """

    def __init__(self, screen: PlainScreen | TerminalScreen) -> None:
        self.lines: list[TraceLine] = []
        self._screen = screen

    def line(self, line: TraceLine) -> None:
        """Keep one line of the trace, and pass it on."""
        self.lines.append(line)
        self._screen.line(line)

    def refresh(self, group: GroupView) -> None:
        """Pass the view on."""
        self._screen.refresh(group)


def _cells(member: MemberView, *, leads: bool) -> tuple[str | Text, ...]:
    if member.presence is not Presence.UP:
        has_failed = member.presence is Presence.FAILED
        state = Text("failed", style="red") if has_failed else Text("down", style="dim")
        return member.name, state, "", "", "", str(member.records)
    pin = f" upgrade.from {member.upgrade_from}" if member.upgrade_from else ""
    used = "" if member.used_version is None else f"v{member.used_version}"
    if member.latest_supported_version not in (None, member.used_version):
        used += f" of v{member.latest_supported_version}"
    return (
        Text.assemble(shown(member.name), *[(" leads", "cyan")] * leads),
        member.release + pin,
        used,
        "joining" if member.generation is None else str(member.generation),
        line_text(" ".join(member.active_tasks)) if member.active_tasks else Text("none", "dim"),
        str(member.records),
    )
