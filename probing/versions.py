"""The numbers of the protocol that the tables of this package compare with: those of ``encoding``.

A version here is the assignment protocol's version (KIP-268). What a program can read is a *set*
of versions, held as an ascending tuple: ranges end, sets may have holes, and nothing in this
package computes a neighbour by adding one.
"""

from collections.abc import Sequence

from encoding import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    NO_REBALANCE,
    UNKNOWN_VERSION,
)

__all__ = [
    "EARLIEST_NATIVE_VERSION",
    "EARLIEST_PROBEABLE_VERSION",
    "NO_REBALANCE",
    "UNKNOWN_VERSION",
    "greatest_known_version",
]


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
