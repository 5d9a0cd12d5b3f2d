"""Supported ranges of a node, and finalized levels of a cluster or group.

A *supported range* belongs to one program. *Finalized levels* hold for all nodes, carry an epoch,
and have no minimum (KIP-778). Level 0 is never finalized: it means that the feature is off.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_LEVEL: Final = 2**15 - 1
"""Levels are int16 in every request and record."""

NO_EPOCH: Final = -1
"""The epoch of unknown levels."""

FIRST_EPOCH: Final = 0
"""The epoch before the first update."""


class FeatureError(ValueError):
    """An invalid range, level or feature; the message names the numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRange:
    """The levels of one feature that a node supports, both ends included (KIP-584).

    Attributes:
        min: the lowest level, 1 or more.
        max: the highest level.
        can_be_off: the node supports that the feature is off (level 0). Kafka's features other
            than metadata.version advertise this as a minimum of 0 (KIP-1022).

    Raises:
        FeatureError: the minimum is below 1 or above the maximum, or a level is no int16.
    """

    min: int
    max: int
    can_be_off: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.min <= self.max <= MAX_LEVEL:
            raise FeatureError(
                f"invalid supported range {self.min}..{self.max}: levels go from 1 to {MAX_LEVEL},"
                " and the minimum comes first; correct what the node advertises"
            )

    def __contains__(self, level: int) -> bool:
        """Tell whether the node can run with the feature at this level; 0 is off."""
        return self.min <= level <= self.max or (level == 0 and self.can_be_off)

    def __str__(self) -> str:
        return f"{self.advertised[0]}..{self.max}"

    @property
    def advertised(self) -> tuple[int, int]:
        """Return minimum and maximum as a node sends them."""
        return (0 if self.can_be_off else self.min), self.max


def advertised_range(minimum: int, maximum: int) -> LevelRange | None:
    """Return the range that a node advertises; None for 0..0, which means "not supported".

    Raises:
        FeatureError: see :class:`LevelRange`.

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
    """Finalized levels: a level by feature, and the epoch of the last update.

    Attributes:
        levels: level by feature, 1 or more; a missing feature is off.
        epoch: grows by one with every applied update; ``NO_EPOCH`` for unknown levels.

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
            raise FeatureError(f"invalid epoch {self.epoch}; epochs start at {FIRST_EPOCH}")

    def __hash__(self) -> int:
        """Return the same hash for equal levels; searches of states need it."""
        return hash((self.epoch, *sorted(self.levels.items())))

    def level_of(self, feature: str) -> int:
        """Return the level of a feature, 0 if it is off."""
        return self.levels.get(feature, 0)

    def changed(self, level_by_feature: Mapping[str, int]) -> "FinalizedLevels":
        """Return the levels after one update, with the next epoch; level 0 removes a feature."""
        levels = {**self.levels, **level_by_feature}
        kept = {name: level for name, level in sorted(levels.items()) if level > 0}
        return FinalizedLevels(levels=kept, epoch=max(self.epoch, FIRST_EPOCH) + 1)


UNKNOWN_LEVELS: Final = FinalizedLevels(epoch=NO_EPOCH)
"""No levels are known yet."""


def newest_levels(views: Iterable[FinalizedLevels]) -> FinalizedLevels:
    """Return the view with the highest epoch; ``UNKNOWN_LEVELS`` if no view has an epoch.

    An operator's downgrade has a higher epoch, a stale broker does not. Views of one epoch are
    normally equal. If they differ, a lost log was recreated; then the higher levels are kept,
    because no member may be downgraded by accident (KIP-584).
    """
    return max(
        (view for view in views if view.epoch >= FIRST_EPOCH),
        key=lambda view: (view.epoch, sorted(view.levels.items())),
        default=UNKNOWN_LEVELS,
    )
