"""Tables of features: each level with its number, name, change, and whether it can be undone.

Every level is declared compatible back or not (KIP-778). A downgrade below a level that is not
loses the data that the level introduced.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from probing.features.levels import MAX_LEVEL, FeatureError, LevelRange

_DIGITS = len(str(MAX_LEVEL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of one feature.

    Attributes:
        number: the number that is finalized, advertised and logged.
        name: name for people, such as ``3.9-IV0``.
        release: the first release with this level.
        changed: what it changed, in a few words.
        compatible_back: a downgrade below this level loses nothing.
        requires: levels of other features that must be finalized before or in the same request.
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
        levels: every released level.
        governs: what it controls, in a few words.
        is_always_on: it can be raised and lowered, never deleted.
        can_be_lowered: it can be lowered; if False, even an unsafe downgrade is refused.
        lowest_settable: the lowest level that can be written as a record in Kafka; KIP-778 has no
            such bound.
        application: what its levels are numbers of, if programs define them; then `levels` is
            empty, and every number is a level.
    """

    name: str
    levels: tuple[Level, ...]
    governs: str
    is_always_on: bool = False
    can_be_lowered: bool = True
    lowest_settable: int = 1
    application: str = ""

    def find(self, number: int) -> Level | None:
        """Return the level of that number, None if it does not exist."""
        if self.application and 1 <= number <= MAX_LEVEL:
            return Level(
                number=number,
                name=str(number),
                release="",
                changed=f"{self.application} {number}",
                compatible_back=True,
            )
        return next((level for level in self.levels if level.number == number), None)

    def lossy_between(self, *, low: int, high: int) -> tuple[Level, ...]:
        """Return the levels that make a downgrade from ``high`` to ``low`` lossy, ascending.

        The downgrade undoes every level above ``low``, up to ``high``.
        """
        return tuple(
            level
            for level in self.levels
            if low < level.number <= high and not level.compatible_back
        )

    def parse_level(self, text: str) -> Level:
        """Return the level that an operator gives as number, name, or release.

        A release stands for its last level.

        Raises:
            FeatureError: there is no such level; the message lists the existing ones.
        """
        if self.application:
            number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
            if (found_level := self.find(number)) is not None:
                return found_level
            raise FeatureError(
                f"{self.name} has no level {text!r}; give the number of {self.application}, 1 to"
                f" {MAX_LEVEL}"
            )
        found = [
            level for level in self.levels if text in (level.name, level.release, str(level.number))
        ]
        if not found:
            known = ", ".join(f"{level.number} ({level.name})" for level in self.levels)
            raise FeatureError(f"{self.name} has no level {text!r}; choose from {known}")
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
            FeatureError: there is none; the message lists the existing ones.
        """
        feature = self.find(name)
        if feature is None:
            known = ", ".join(row.name for row in self.features)
            raise FeatureError(f"there is no feature {name!r}; choose from {known}")
        return feature

    def level_name(self, feature: str, number: int) -> str:
        """Return the name of a level, or its number as text if it is unknown."""
        found = self.find(feature)
        level = found.find(number) if found is not None else None
        return str(number) if level is None else level.name

    def unmet(self, feature: str, number: int, levels: Mapping[str, int]) -> str | None:
        """Return ``name=level`` of the first required level that ``levels`` lack, or None."""
        found = self.find(feature)
        level = found.find(number) if found is not None else None
        for name, least in () if level is None else level.requires:
            if levels.get(name, 0) < least:
                return f"{name}={least}"
        return None

    def whole_ranges(self) -> dict[str, LevelRange]:
        """Return the supported ranges of a program that knows every level of this table.

        A feature whose levels programs define is left out.
        """
        return {
            feature.name: LevelRange(
                min=feature.levels[0].number,
                max=feature.levels[-1].number,
                can_be_off=not feature.is_always_on,
            )
            for feature in self.features
            if not feature.application
        }
