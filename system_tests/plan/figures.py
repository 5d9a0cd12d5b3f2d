"""Figures of a simulation as text: two significant digits, the rest is noise."""

from typing import Final

_UNITS: Final = (("h", 3600, 36_000_000), ("min", 60, 600_000), ("s", 1, 0))
"""Units of durations: their seconds, and the ms from which on they are used."""


def rounded(number: float, digits: int = 2) -> int:
    """Return a number with two significant digits, and numbers below 100 as they are.

    >>> [rounded(number) for number in (0, 7, 99, 104_650, 217_353)]
    [0, 7, 99, 100000, 220000]
    """
    return round(float(f"{number:.{digits}g}"))


def spoken(ms: int, digits: int = 2) -> str:
    """Return seconds with two significant digits: the rest is noise of the simulation.

    >>> [spoken(ms) for ms in (0, 212, 5_149, 47_117, 274_684, 6_005_770)]
    ['0', '0.21', '5.1', '47', '270', '6,000']
    """
    seconds = float(f"{ms / 1000:.{digits}g}")
    is_whole = seconds >= 10 ** (digits - 1) or not seconds
    return f"{seconds:,.0f}" if is_whole else f"{seconds:g}"


def unit_of(ms: int) -> tuple[str, int]:
    """Return the unit that suits a duration, and its seconds."""
    return next((unit, seconds) for unit, seconds, least_ms in _UNITS if ms >= least_ms)


def duration(ms: int) -> str:
    """Return a duration with two significant digits, in the unit that suits it.

    >>> [duration(ms) for ms in (40_000, 1_600_000, 90_000_000)]
    ['40 s', '27 min', '25 h']
    """
    unit, seconds = unit_of(ms)
    return f"{spoken(ms // seconds)} {unit}"


def restore_text(records: int, rate: int) -> str:
    """Return how long records of one changelog are restored, as arithmetic with rounded numbers."""
    return f"{(about := rounded(records)):,} / {rate:,} a second = {spoken(about * 1000 // rate)} s"
