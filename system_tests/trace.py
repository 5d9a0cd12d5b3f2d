"""The trace: one line per event, a lane per member, seven symbols and no more.

Pure formatting of frozen values. The live bounce fills in real milliseconds, a simulator its own;
both come out the same to the eye, so a diagonal of `+` is a rolling bounce wherever it ran. The
text of a line says which version a member lowered or lifted to; the lanes say who.
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
        generation: the group's generation, or None where the event belongs to none.
        lanes: one symbol per member, in the order of the header.
        text: what happened, in the field's words.
    """

    at_ms: int
    generation: int | None
    lanes: tuple[Symbol, ...]
    text: str


def draw_lanes(
    members: Sequence[str],
    *,
    acting: Mapping[str, Symbol],
    down: Collection[str] = (),
) -> tuple[Symbol, ...]:
    """Give each member its symbol: what it does now, else `#` if it is down, else `.`.

    >>> "".join(draw_lanes("abc", acting={"a": Symbol.LEADS}, down={"c"}))
    '*.#'
    """
    resting = dict.fromkeys(down, Symbol.DOWN)
    return tuple(acting.get(member, resting.get(member, Symbol.IDLES)) for member in members)


def format_header(members: Sequence[str]) -> str:
    """Write the line of column names that fits `format_line`.

    >>> format_header(["a", "b"])
    '     ms  gen   a  b   event'
    """
    names = "  ".join(members)
    return f"{'ms':>{_MS_WIDTH}} {'gen':>{_GENERATION_WIDTH}}   {names}   event"


def format_line(line: TraceLine, *, members: Sequence[str]) -> str:
    """Write one event on one printable line; symbols stand under the first letter of their member.

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
    """Makes lines of happenings; remembers who is down, everybody at first.

    Args:
        lanes: everybody, in the order of the header.
        tellers: by the type of a happening, a method that tells it; others have no line.

    Attributes:
        down: who is down now.
        generation: the number in front of the next lines; 0 for none.
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
        """Tell a trace."""
        for one in trace:
            teller = self._tellers.get(type(one))
            if teller is not None:
                yield from teller(self, one)

    def line(self, at_ms: int, text: str, acting: Mapping[str, Symbol] | None = None) -> TraceLine:
        """Draw one line."""
        lanes = draw_lanes(self._lanes, acting=acting or {}, down=self.down)
        return TraceLine(at_ms=at_ms, generation=self.generation or None, lanes=lanes, text=text)
