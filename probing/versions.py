"""The few numbers of the protocol that every table of this room compares against.

A version here is the assignment protocol's version (KIP-268). What a program can read is a *set*
of versions, held as an ascending tuple: ranges end, sets may have holes, and nothing in this room
computes a neighbour by adding one.
"""

from collections.abc import Sequence
from typing import Final

EARLIEST_PROBEABLE_VERSION: Final = 3
"""Versions below it carry no supported number, so nobody can probe with them (KIP-268)."""

EARLIEST_NATIVE_VERSION: Final = 101
"""Versions from here on are ours, those below are Kafka's. Every program of ours reads this one,
so it is what a leader falls back to when it does not know what a member reads."""

UNKNOWN_VERSION: Final = -1
"""The supported version of a member that wrote version 1 or 2: the bytes do not say."""

NO_REBALANCE: Final = 2**63 - 1
"""A follow-up time, in ms, that never comes: the answer asks for no further rebalance."""


def greatest_known_version(known_versions: Sequence[int], *, at_most: int) -> int | None:
    """Return the greatest of ``known_versions`` that is not above ``at_most``.

    Args:
        known_versions: what the reader understands, in any order.
        at_most: the version on offer.

    Returns:
        The version to speak, or None when even the lowest known version is above the offer.

    >>> greatest_known_version((1, 2, 3, 101), at_most=50)
    3
    """
    return max((version for version in known_versions if version <= at_most), default=None)
