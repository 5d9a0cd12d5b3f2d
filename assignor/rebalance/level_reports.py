"""Feature levels in members' bytes: what a peer reports, and what a member supports."""

from collections.abc import Mapping
from functools import lru_cache

from probing import member_ranges
from probing.features import UNKNOWN_LEVELS, FeatureError, FinalizedLevels

LONGEST_NAME = 255
MOST_FEATURES = 100
HIGHEST_EPOCH = 2**62


def reported_levels(levels: Mapping[str, int], epoch: int) -> FinalizedLevels:
    """The levels that a peer reports; `UNKNOWN_LEVELS` if they are not valid."""
    if epoch >= HIGHEST_EPOCH or len(levels) > MOST_FEATURES:
        return UNKNOWN_LEVELS
    if any(len(name) > LONGEST_NAME for name in levels):
        return UNKNOWN_LEVELS
    try:
        return FinalizedLevels(levels=levels, epoch=epoch)
    except FeatureError:
        return UNKNOWN_LEVELS


@lru_cache(maxsize=64)
def supported_ranges(versions: tuple[int, ...]) -> Mapping[str, tuple[int, int]]:
    """(lowest, highest) level by feature of a member that reads and writes these versions."""
    return {name: (row.min, row.max) for name, row in member_ranges(versions).items()}
