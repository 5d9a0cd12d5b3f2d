"""Options of ``assignor reset``: where the input is read from afterwards."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from assignor.cli.reset.plan import ResetTo, Where
from assignor.cli.toolkit import BadInput
from assignor.cli.toolkit.options import Decorator, all_of
from encoding import shown

_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d{1,6})D)?(?:T(?:(?P<hours>\d{1,6})H)?(?:(?P<minutes>\d{1,8})M)?"
    r"(?:(?P<seconds>\d{1,10}(?:\.\d{1,3})?)S)?)?",
    re.ASCII,
)
_MOST: Final = 2**63 - 1

position_options: Decorator = all_of(
    (
        click.option("--to-earliest", is_flag=True, help="To the first record; the default."),
        click.option("--to-latest", is_flag=True, help="To the end: what is there is left out."),
        click.option("--to-offset", metavar="N", help="To this offset, in every partition."),
        click.option(
            "--to-datetime",
            metavar="TIME",
            help="To the first record at or after a time, as 2026-01-31T00:00:00; UTC if it names"
            " no zone.",
        ),
        click.option(
            "--by-duration", metavar="TIME", help="The same with a time before now, as P1DT12H."
        ),
        click.option(
            "--shift-by", metavar="N", help="By N records from the committed offset, as -100."
        ),
    )
)
"""At most one of them is given; `reset_to` takes them all."""


def reset_to(given: dict[str, Any]) -> ResetTo:
    """Return where the input is read from, and take these options out of a command's.

    Raises:
        BadInput: there is more than one, or its value is not understood.
    """
    options = ("earliest", "latest", "offset", "datetime")
    names = [*(f"to_{name}" for name in options), "by_duration", "shift_by"]
    values = {name: given.pop(name) for name in names}
    named = [name for name, value in values.items() if value not in (None, False)]
    if len(named) > 1:
        both = " and ".join(f"--{name.replace('_', '-')}" for name in named)
        raise BadInput(f"{both} are given; give one of them")
    [name] = named or ["to_earliest"]
    value = values[name]
    match name:
        case "to_latest":
            return ResetTo(where=Where.LATEST)
        case "to_offset":
            return ResetTo(where=Where.OFFSET, value=_number("--to-offset", value, least=0))
        case "to_datetime":
            return ResetTo(where=Where.TIME, value=_time_ms(value))
        case "by_duration":
            return ResetTo(where=Where.TIME, value=max(0, _now_ms() - _duration_ms(value)))
        case "shift_by":
            return ResetTo(where=Where.SHIFT, value=_number("--shift-by", value, least=-_MOST))
        case _:
            return ResetTo()


def _number(option: str, text: str, *, least: int) -> int:
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(_MOST))
    if not is_number or not least <= int(text) <= _MOST:
        raise BadInput(f"{option} {shown(text)}: give a whole number from {least} to {_MOST}")
    return int(text)


def _time_ms(text: str) -> int:
    """Return milliseconds since 1970.

    >>> _time_ms("1970-01-01T00:00:01"), _time_ms("1970-01-01T01:00:00.500+01:00")
    (1000, 500)
    """
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        ms = int(found.timestamp() * 1000)
    except (ValueError, OverflowError):
        ms = -1
    if ms < 0:
        raise BadInput(
            f"--to-datetime {shown(text)}: give a time from 1970 on, as 2026-01-31T00:00:00 or "
            "2026-01-31T00:00:00+01:00"
        )
    return ms


def _duration_ms(text: str) -> int:
    """Return milliseconds.

    >>> _duration_ms("P1DT2H"), _duration_ms("PT0.5S")
    (93600000, 500)
    """
    match = _DURATION.fullmatch(text)
    parts = {} if match is None else {k: v for k, v in match.groupdict().items() if v is not None}
    if not parts:
        raise BadInput(
            f"--by-duration {shown(text)}: give days, hours, minutes or seconds, as PT6H"
        )
    return int(
        timedelta(**{unit: float(n) for unit, n in parts.items()}) / timedelta(milliseconds=1)
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
