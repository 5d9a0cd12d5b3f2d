"""The trace: one line per event, a lane with a symbol per member.

Pure formatting of frozen values, for live bounces (real milliseconds) and simulated ones. A
diagonal of `+` is a rolling bounce. The lanes show which member acts, the text what it does.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from encoding import shown


class Symbol(StrEnum):
    """What a member does on one line of the trace."""

    LEADS = "*"
    STARTS = "+"
    STOPS = "!"
    UPGRADES = "^"
    DOWNGRADES = "v"
    DOWN = "#"
    IDLES = "."


LEGEND = "* leads   + starts   ! stops   ^ upgrades   v downgrades   # is down   . idles"

_MS_WIDTH = 7
_GENERATION_WIDTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One event.

    Attributes:
        at_ms: milliseconds since the experiment began.
        generation: the group's generation, or None if the event has none.
        lanes: one symbol per member, in the order of the header.
        text: what happened.
    """

    at_ms: int
    generation: int | None
    lanes: tuple[Symbol, ...]
    text: str


def lane_name(index: int) -> str:
    """Return the name of a process: a letter, from the 27th on two or more.

    >>> [lane_name(index) for index in (0, 25, 26, 702)]
    ['a', 'z', 'aa', 'aaa']
    """
    name = ""
    while index >= 0:
        index, letter = divmod(index, 26)
        name = chr(ord("a") + letter) + name
        index -= 1
    return name


def draw_lanes(
    members: Sequence[str],
    *,
    acting: Mapping[str, Symbol],
    down: Collection[str] = (),
) -> tuple[Symbol, ...]:
    """Return the symbol of each member: what it does now, else `#` if it is down, else `.`.

    >>> "".join(draw_lanes("abc", acting={"a": Symbol.LEADS}, down={"c"}))
    '*.#'
    """
    resting = dict.fromkeys(down, Symbol.DOWN)
    return tuple(acting.get(member, resting.get(member, Symbol.IDLES)) for member in members)


def format_header(members: Sequence[str]) -> str:
    """Return the line of column names for `format_line`.

    >>> format_header(["a", "b"])
    '     ms  gen   a  b   event'
    """
    names = "  ".join(members)
    return f"{'ms':>{_MS_WIDTH}} {'gen':>{_GENERATION_WIDTH}}   {names}   event"


def format_line(line: TraceLine, *, members: Sequence[str]) -> str:
    """Return one event as one printable line; symbols are below the first letter of their member.

    >>> line = TraceLine(at_ms=13, generation=2, lanes=(Symbol.STARTS, Symbol.IDLES), text="start")
    >>> format_line(line, members=["a", "b"])
    '     13    2   +  .   start'
    """
    generation = "" if line.generation is None else str(line.generation)
    symbols = "  ".join(
        symbol.value.ljust(len(member)) for member, symbol in zip(members, line.lanes, strict=True)
    )
    text = shown(line.text, limit=None)
    return (
        f"{line.at_ms:>{_MS_WIDTH}} {generation:>{_GENERATION_WIDTH}}   {symbols}   {text}"
    ).rstrip()


class LaneNarrator:
    """Makes lines from events; keeps which members are down, all of them at first.

    Args:
        lanes: the members, in the order of the header.
        tellers: type of an event -> the method that makes its lines; other events have no line.

    Attributes:
        down: the members that are down.
        generation: of the next lines; 0 for none.
    """

    def __init__(
        self,
        lanes: Sequence[str],
        tellers: Mapping[type, Callable[[Any, Any], Iterator[TraceLine]]],
    ) -> None:
        self._lanes = tuple(lanes)
        self._tellers = tellers
        self.down = set(lanes)
        self.generation = 0

    def lines(self, trace: Iterable[object]) -> Iterator[TraceLine]:
        """Return the lines of the events of a trace."""
        for event in trace:
            teller = self._tellers.get(type(event))
            if teller is not None:
                yield from teller(self, event)

    def line(self, at_ms: int, text: str, acting: Mapping[str, Symbol] | None = None) -> TraceLine:
        """Return one line."""
        lanes = draw_lanes(self._lanes, acting=acting or {}, down=self.down)
        return TraceLine(at_ms=at_ms, generation=self.generation or None, lanes=lanes, text=text)
