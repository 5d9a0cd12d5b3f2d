"""Version numbers that this package compares with, from ``encoding``, and the greatest known one.

A version here is the assignment protocol's version (KIP-268). The versions that a program can read
are a *set*, held as an ascending tuple. It may have holes, so no code computes a version by adding
one to another.
"""

from collections.abc import Sequence
from typing import Final

from encoding import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    NO_REBALANCE,
    UNKNOWN_VERSION,
)

__all__ = [
    "ASSIGNMENT_PROTOCOL",
    "EARLIEST_NATIVE_VERSION",
    "EARLIEST_PROBEABLE_VERSION",
    "HELD_BACK_VERSION",
    "NO_REBALANCE",
    "START_VERSION",
    "UNKNOWN_VERSION",
    "greatest_known_version",
]

ASSIGNMENT_PROTOCOL: Final = "assignment.protocol"
"""The feature whose levels are versions; a member's bytes name it."""

START_VERSION: Final = 11
"""The version that native members start with, whatever newer versions of Kafka they know.

Every leader of Kafka 3.2 and later reads it, and native leaders do. A newer version would cost each
group under an older leader one rebalance for each member that starts. Raise it only when no
supported leader is older than the release that brought the version.
"""

HELD_BACK_VERSION: Final = 11
"""The level that a group which holds upgrades back starts with; feature logs hold it: keep it."""


def greatest_known_version(known_versions: Sequence[int], *, at_most: int) -> int | None:
    """Return the greatest of ``known_versions`` that is not above ``at_most``.

    Args:
        known_versions: the versions that the reader understands, in any order.
        at_most: the upper bound.

    Returns:
        The version, or None if every known version is above the bound.

    >>> greatest_known_version((1, 2, 3, 101), at_most=50)
    3
    """
    return max((version for version in known_versions if version <= at_most), default=None)
