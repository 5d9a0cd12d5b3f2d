"""Which part of the nightly, slow and rotated tests a run takes: all with NIGHTLY=1.

The part changes with the day: ten days take each nightly test, six days each slow test and each
real one that prove no row of the ledger, and `parts` days each parameter of a test marked
`rotated(parts)`.
ROTATION=DAY, a number of days that the header of a run prints, repeats the choice of another day.
"""

import os
import time
import zlib
from collections.abc import Sequence
from typing import Final, TypeVar

Part = TypeVar("Part")
PARTS: Final = 10
# Days that take all slow tests; those that prove a row of the ledger run every day.
SLOW_PARTS: Final = 6
_DAY_S: Final = 86_400
# After so many days, the values of a test go one part further: a test that itself takes turns would
# else see the same parts for ever.
_SHIFT_DAYS: Final = 12


def is_nightly() -> bool:
    """Whether this run takes everything (`make nightly`)."""
    return os.environ.get("NIGHTLY", "") == "1"


def rotation() -> int:
    """The number that chooses the tenth: days since 1970 in UTC, unless ROTATION says another.

    It is kept in the environment, so that every process of a run has the same one.

    Raises:
        ValueError: ROTATION is no whole number.
    """
    value = os.environ.setdefault("ROTATION", str(int(time.time()) // _DAY_S))
    try:
        return int(value)
    except ValueError:
        raise ValueError(
            f"ROTATION={value!r} is no whole number; give the number of days that the header of"
            " a run prints, or leave it out for today's"
        ) from None


def is_taken(name: str, *, parts: int = PARTS) -> bool:
    """Whether a nightly test, named by its node id, belongs to this run."""
    return is_nightly() or (zlib.crc32(name.encode()) + rotation()) % parts == 0


def share(values: Sequence[Part], *, parts: int = PARTS, name: str = "") -> list[Part]:
    """The values of a test in this run, in their order: all, or one of `parts` parts, at least one.

    A test that takes turns sees all values within `12 * parts` days, whatever its own period.

    Args:
        values: what is shared out among days.
        parts: number of days that take all values.
        name: of what takes a part, so that lists of different names begin at different parts.
    """
    day = rotation()
    return _part(values, day + day // _SHIFT_DAYS, parts, name)


def tests_of_the_day(tests: Sequence[Part], *, parts: int, name: str) -> list[Part]:
    """The tests of this run, of those that take turns; arguments as of `share`."""
    return _part(tests, rotation(), parts, name)


def _part(values: Sequence[Part], day: int, parts: int, name: str) -> list[Part]:
    if is_nightly():
        return list(values)
    if name:
        day += zlib.crc32(name.encode())
    return list(values[day % min(parts, max(len(values), 1)) :: parts])


def examples(count: int) -> int:
    """The examples that a property test draws: at night `count`, else a third of them.

    They are other ones in each run.
    """
    return count if is_nightly() else -(-count // 3)


def describe() -> str:
    """One line for the header of a run."""
    if is_nightly():
        return "nightly, slow and rotated tests: all"
    return (
        "nightly tests: a tenth; slow and real tests: a sixth; rotated tests: a part of their"
        " parameters"
        f" (ROTATION={rotation()} repeats it; NIGHTLY=1: all)"
    )
