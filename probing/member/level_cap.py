"""What finalized levels mean for one member: an upper bound on its versions, and unmet levels."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from probing.features import (
    ASSIGNMENT_PROTOCOL,
    FIRST_EPOCH,
    TOPOLOGY_VERSION,
    FinalizedLevels,
    JoinDecision,
    JoinNumbers,
    LevelRange,
    NodeSupport,
    Role,
    decide_join,
    native_features,
)
from probing.versions import HELD_BACK_VERSION, greatest_known_version

HELD_BACK: Final = FinalizedLevels(
    levels={ASSIGNMENT_PROTOCOL: HELD_BACK_VERSION}, epoch=FIRST_EPOCH
)
"""Levels of a group that holds upgrades back until the first level is finalized."""


def protocol_level(levels: FinalizedLevels) -> int | None:
    """Return the finalized level of the assignment protocol, None while there is none."""
    return levels.level_of(ASSIGNMENT_PROTOCOL) or None


def capped_version(known_versions: Sequence[int], version: int, level: int | None) -> int:
    """Return the greatest known version that is at most ``version`` and at most the level, if any.

    If every known version is above the level, ``version`` is returned; callers refuse such a level
    before (``unmet_levels``).
    """
    if level is None or version <= level:
        return version
    return greatest_known_version(known_versions, at_most=level) or version


@lru_cache(maxsize=64)
def member_ranges(versions: tuple[int, ...]) -> dict[str, LevelRange]:
    """Return the levels that a member with these versions supports, by feature (KIP-584)."""
    return native_features(versions).whole_ranges()


def unmet_levels(
    name: str, versions: tuple[int, ...], levels: FinalizedLevels
) -> JoinDecision | None:
    """Return why a member with these versions does not support the levels; None if it does.

    Args:
        name: the member's release, for the sentence.
        versions: every version that the member reads and writes.
        levels: the finalized levels.
    """
    # Which versions of the topology a member can run is its program's; the leader checks it.
    known = {name: level for name, level in levels.levels.items() if name != TOPOLOGY_VERSION}
    numbers = JoinNumbers(
        node=NodeSupport(
            node_id=f"of release {name}", role=Role.MEMBER, ranges=member_ranges(versions)
        ),
        finalized=replace(levels, levels=known),
        table=native_features(),
    )
    decision = decide_join(numbers)
    return None if decision.is_accepted else decision
