"""Which part of the nightly tests a run takes: all of them with NIGHTLY=1, else a tenth.

The tenth changes with the day, so ten days take every part. ROTATION=DAY, a number of days that the
header of a run prints, repeats the choice of another day.
"""

import os
import time
import zlib
from collections.abc import Sequence
from typing import Final, TypeVar

Part = TypeVar("Part")
PARTS: Final = 10
_DAY_S: Final = 86_400


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


def share(values: Sequence[Part], *, parts: int = PARTS) -> list[Part]:
    """The values of this run, in their order: all, or every tenth, at least one."""
    if is_nightly():
        return list(values)
    return list(values[rotation() % min(parts, max(len(values), 1)) :: parts])


def describe() -> str:
    """One line for the header of a run."""
    if is_nightly():
        return "nightly tests: all"
    return f"nightly tests: one tenth of them (ROTATION={rotation()} repeats it; NIGHTLY=1: all)"
