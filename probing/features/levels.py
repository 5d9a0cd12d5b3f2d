"""What a node can do and what the group has agreed: supported ranges and finalized levels.

A *supported range* belongs to one program; *finalized levels* belong to everybody, carry an epoch,
and have no minimum (KIP-778). Level 0 is never finalized: it says that the feature is off.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_LEVEL: Final = 2**15 - 1
"""Levels are int16 in every request and record."""

NO_EPOCH: Final = -1
"""The epoch of who has not learned any finalized levels yet."""

FIRST_EPOCH: Final = 0
"""The epoch before the first update."""


class FeatureError(ValueError):
    """A range, level or feature that cannot be; the text names the numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRange:
    """The levels of one feature that a node supports, both ends included (KIP-584).

    Attributes:
        min: the lowest level, 1 or more.
        max: the highest level.
        can_be_off: the node says that the feature may be off (level 0). Kafka's features other
            than metadata.version advertise a minimum of 0 for it (KIP-1022).

    Raises:
        FeatureError: the minimum is below 1 or above the maximum, or a level is no int16.
    """

    min: int
    max: int
    can_be_off: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.min <= self.max <= MAX_LEVEL:
            raise FeatureError(
                f"a supported range of {self.min}..{self.max} cannot be: levels go from 1 to"
                f" {MAX_LEVEL}, the minimum first; correct what the node advertises"
            )

    def __contains__(self, level: int) -> bool:
        """Tell whether the node can run with the feature at this level; 0 is off."""
        return self.min <= level <= self.max or (level == 0 and self.can_be_off)

    def __str__(self) -> str:
        return f"{self.advertised[0]}..{self.max}"

    @property
    def advertised(self) -> tuple[int, int]:
        """Return the two numbers as a node sends them."""
        return (0 if self.can_be_off else self.min), self.max


def advertised_range(minimum: int, maximum: int) -> LevelRange | None:
    """Return the range that a node advertises; None for 0..0, which says "not supported".

    Raises:
        FeatureError: as of :class:`LevelRange`.

    >>> advertised_range(0, 2)
    LevelRange(min=1, max=2, can_be_off=True)
    """
    if (minimum, maximum) == (0, 0):
        return None
    if minimum == 0:
        return LevelRange(min=1, max=maximum, can_be_off=True)
    return LevelRange(min=minimum, max=maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedLevels:
    """What is agreed: a level by feature, and the epoch of the last update.

    Attributes:
        levels: level by feature, 1 or more; a feature that is not named is off.
        epoch: grows by one with every applied update; ``NO_EPOCH`` when nothing was learned.

    Raises:
        FeatureError: a level or the epoch is out of its bounds.
    """

    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = FIRST_EPOCH

    def __post_init__(self) -> None:
        for name, level in sorted(self.levels.items()):
            if not 1 <= level <= MAX_LEVEL:
                raise FeatureError(
                    f"{name} cannot be finalized at level {level}: levels go from 1 to {MAX_LEVEL},"
                    " and a feature that is off is left out"
                )
        if self.epoch < NO_EPOCH:
            raise FeatureError(f"an epoch of {self.epoch} cannot be; it starts at {FIRST_EPOCH}")

    def __hash__(self) -> int:
        """Equal levels are one state to who searches states."""
        return hash((self.epoch, *sorted(self.levels.items())))

    def level_of(self, feature: str) -> int:
        """Return the level of a feature, 0 if it is off."""
        return self.levels.get(feature, 0)

    def changed(self, level_by_feature: Mapping[str, int]) -> "FinalizedLevels":
        """Return the levels after one update: the next epoch, level 0 takes a feature out."""
        levels = {**self.levels, **level_by_feature}
        kept = {name: level for name, level in sorted(levels.items()) if level > 0}
        return FinalizedLevels(levels=kept, epoch=max(self.epoch, FIRST_EPOCH) + 1)


UNKNOWN_LEVELS: Final = FinalizedLevels(epoch=NO_EPOCH)
"""What one has before anybody told anything."""


def newest_levels(views: Iterable[FinalizedLevels]) -> FinalizedLevels:
    """Return the view with the highest epoch: an operator's step down is newer, a stale broker not.

    Two views of one epoch are the same view; should they differ, a lost log was begun again, and
    the higher levels are kept, since nobody may be taken back by accident (KIP-584). Levels without
    an epoch do not count (KIP-778).
    """
    return max(
        (view for view in views if view.epoch >= FIRST_EPOCH),
        key=lambda view: (view.epoch, sorted(view.levels.items())),
        default=UNKNOWN_LEVELS,
    )
