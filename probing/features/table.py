"""A table of features: each level with its number, its name, what it changed, and the way back.

Developers say of every level whether it is compatible back (KIP-778): going below a level that is
not loses what that level brought. Everything that depends on it is derived here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from probing.features.levels import FeatureError, LevelRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of one feature.

    Attributes:
        number: what is finalized, advertised and logged.
        name: how people call it, such as ``3.9-IV0``.
        release: the release that brought it.
        changed: what it changed, in half a sentence.
        compatible_back: a program below this level loses nothing.
        requires: levels of other features that have to be finalized first or together.
    """

    number: int
    name: str
    release: str
    changed: str
    compatible_back: bool
    requires: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One feature and its levels, ascending; numbers may have holes.

    Attributes:
        name: of the feature.
        levels: every level that was ever released.
        governs: what it decides, in half a sentence.
        is_always_on: it can be raised and lowered, never deleted.
        has_way_back: it may be lowered at all; else not even an unsafe downgrade is done.
        lowest_settable: levels below were never written as records; KIP-778 has no such bound,
            Kafka has.
    """

    name: str
    levels: tuple[Level, ...]
    governs: str
    is_always_on: bool = False
    has_way_back: bool = True
    lowest_settable: int = 1

    def find(self, number: int) -> Level | None:
        """Return the level of that number, None if there never was one."""
        return next((level for level in self.levels if level.number == number), None)

    def lossy_between(self, *, low: int, high: int) -> tuple[Level, ...]:
        """Return the levels that forbid a lossless way from ``high`` down to ``low``, ascending.

        A way down to ``low`` undoes every level above it, up to ``high``.
        """
        return tuple(
            level
            for level in self.levels
            if low < level.number <= high and not level.compatible_back
        )

    def parse_level(self, text: str) -> Level:
        """Return the level that an operator names: its number, its name, or a release.

        A release stands for the last level that it brought.

        Raises:
            FeatureError: nothing is called so; the names that exist are listed.
        """
        found = [
            level for level in self.levels if text in (level.name, level.release, str(level.number))
        ]
        if not found:
            known = ", ".join(f"{level.number} ({level.name})" for level in self.levels)
            raise FeatureError(f"{self.name} has no level {text!r}; take one of {known}")
        return found[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureTable:
    """Features by name, in the order of their names.

    Attributes:
        features: every feature once.
    """

    features: tuple[Feature, ...]

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def find(self, name: str) -> Feature | None:
        """Return the feature of that name, None if there is none."""
        return next((feature for feature in self.features if feature.name == name), None)

    def named(self, name: str) -> Feature:
        """Return the feature of that name.

        Raises:
            FeatureError: there is none; the names that exist are listed.
        """
        feature = self.find(name)
        if feature is None:
            known = ", ".join(row.name for row in self.features)
            raise FeatureError(f"there is no feature {name!r}; take one of {known}")
        return feature

    def level_name(self, feature: str, number: int) -> str:
        """Return how people call a level: its name, or its number where it is unknown."""
        found = self.find(feature)
        level = found.find(number) if found is not None else None
        return str(number) if level is None else level.name

    def unmet(self, feature: str, number: int, levels: Mapping[str, int]) -> str | None:
        """Return ``name=level`` of the first required level that ``levels`` do not have."""
        found = self.find(feature)
        level = found.find(number) if found is not None else None
        for name, least in () if level is None else level.requires:
            if levels.get(name, 0) < least:
                return f"{name}={least}"
        return None

    def whole_ranges(self) -> dict[str, LevelRange]:
        """Return the ranges of a program that knows all of this table."""
        return {
            feature.name: LevelRange(
                min=feature.levels[0].number,
                max=feature.levels[-1].number,
                can_be_off=not feature.is_always_on,
            )
            for feature in self.features
        }
