"""Computes feature updates from an operator's options; no I/O.

The functions work for Kafka clusters and for groups of native members, which differ in their table
of features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assignor.errors import ConfigError
from probing.features import (
    MAX_LEVEL,
    METADATA_VERSION,
    PERSISTENT_METADATA,
    FeatureError,
    FeatureTable,
    FeatureUpdate,
    FinalizedLevels,
    LevelRange,
    UpdateKind,
    default_levels,
    find_kafka_release,
)

_MOST_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Finalized and supported levels of a cluster, a group or a feature log.

    Attributes:
        source: where the levels come from, for messages.
        table: names of features and levels.
        supported: feature -> supported range; of a group, what all its members support.
        finalized: finalized levels and their epoch.
        minimums: feature -> lowest level that is not deprecated (KIP-584); empty for a cluster.
        notes: warnings for the operator.
    """

    source: str
    table: FeatureTable
    supported: Mapping[str, LevelRange]
    finalized: FinalizedLevels
    minimums: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Sorted names of all supported or finalized features; of a group, also all native ones.

        A feature whose levels programs define is left out where no program has it.
        """
        native = (
            []
            if self.main_feature == METADATA_VERSION
            else [feature.name for feature in self.table if not feature.application]
        )
        return tuple(sorted({*self.supported, *self.finalized.levels, *native}))

    @property
    def main_feature(self) -> str:
        """The feature whose level `--metadata` gives."""
        return (
            METADATA_VERSION
            if self.table.find(METADATA_VERSION) is not None
            else PERSISTENT_METADATA
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """The result of updating the level of one feature.

    Attributes:
        feature: name of the feature.
        old: level before the update; 0 is off.
        new: requested level.
        error: Kafka's name of the error; "" if the update succeeded, or in a dry run would.
        why: the reason, as a sentence.
        dropped: what a downgrade lost, one sentence each.
    """

    feature: str
    old: int
    new: int
    error: str = ""
    why: str = ""
    dropped: tuple[str, ...] = ()


def level_text(table: FeatureTable, feature: str, level: int) -> str:
    """Return a level as text: `21 (3.9-IV0)`, `1`, `off`.

    >>> from probing.features import KAFKA_FEATURES
    >>> level_text(KAFKA_FEATURES, "metadata.version", 21)
    '21 (3.9-IV0)'
    """
    if level < 1:
        return "off"
    name = table.level_name(feature, level)
    return str(level) if name == str(level) else f"{level} ({name})"


def named_updates(
    described: Described,
    *,
    metadata: str | None,
    features: Sequence[str],
    kind: UpdateKind,
) -> tuple[FeatureUpdate, ...]:
    """Return the updates that `--metadata` and `--feature name=level` request.

    Args:
        described: supplies the table of features.
        metadata: level of the main feature: a number, a name or a release.
        features: texts of the form `name=level`.
        kind: kind of every update.

    Raises:
        ConfigError: nothing is requested, a text is invalid, or a feature is named twice.
    """
    asked = [] if metadata is None else [(described.main_feature, metadata)]
    for text in features:
        name, equals, level = text.partition("=")
        if not equals or not name or not level:
            raise ConfigError(f"--feature {text!r} is not of the form NAME=LEVEL")
        asked.append((name, level))
    names = [name for name, _ in asked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{', '.join(twice)} has more than one level; give each feature once")
    if not asked:
        raise ConfigError("no level is given; add --metadata LEVEL or --feature NAME=LEVEL")
    return tuple(
        FeatureUpdate(feature=name, level=_level(described, name, text), kind=kind)
        for name, text in asked
    )


def disabling(names: Sequence[str], kind: UpdateKind) -> tuple[FeatureUpdate, ...]:
    """Return the updates that disable features.

    Raises:
        ConfigError: no feature is named, or one is named twice.
    """
    if not names or len(set(names)) < len(names):
        raise ConfigError("give each feature to disable exactly once: --feature NAME")
    return tuple(FeatureUpdate(feature=name, level=0, kind=kind) for name in names)


def raise_all(described: Described, release: str | None) -> tuple[FeatureUpdate, ...]:
    """Return updates that raise every feature to the latest known and supported level.

    Features that cannot be downgraded are skipped.

    Args:
        described: current levels, and what is supported.
        release: a Kafka release whose levels are used instead of the latest ones, or None.

    Raises:
        ConfigError: the release is unknown, or is given for a group.
    """
    wanted = _tops(described) if release is None else _levels_of(described, release)
    updates = []
    for name, level in sorted(wanted.items()):
        found = described.supported.get(name)
        feature = described.table.find(name)
        if found is None or (feature is not None and not feature.can_be_lowered):
            continue
        level_ = min(level, found.max)
        if level_ > described.finalized.level_of(name):
            updates.append(FeatureUpdate(feature=name, level=level_, kind=UpdateKind.UPGRADE))
    return tuple(updates)


def lower_all(
    described: Described, release: str | None, kind: UpdateKind
) -> tuple[FeatureUpdate, ...]:
    """Return updates that lower every feature to the latest level known here or in a release.

    A feature that is not known there is disabled.

    Raises:
        ConfigError: as in `raise_all`.
    """
    wanted = _tops(described) if release is None else _levels_of(described, release)
    return tuple(
        FeatureUpdate(feature=name, level=wanted.get(name, 0), kind=kind)
        for name, level in sorted(described.finalized.levels.items())
        if level > wanted.get(name, 0) and not _is_of_application(described, name)
    )


def lossy_text(table: FeatureTable, result: LevelResult) -> str:
    """Return which levels make a downgrade lossy; empty if none does or the reason names them."""
    feature = table.find(result.feature)
    lossy = () if feature is None else feature.lossy_between(low=result.new, high=result.old)
    if result.new >= result.old or not lossy or any(level.name in result.why for level in lossy):
        return ""
    named = ", ".join(level_text(table, result.feature, level.number) for level in lossy)
    return f"a downgrade below {named} loses the metadata of that level"


def _tops(described: Described) -> dict[str, int]:
    # Versions of an application are raised and lowered by name only.
    known = [feature for feature in described.table if not feature.application]
    return {feature.name: feature.levels[-1].number for feature in known}


def _is_of_application(described: Described, name: str) -> bool:
    feature = described.table.find(name)
    return feature is not None and bool(feature.application)


def _levels_of(described: Described, release: str) -> dict[str, int]:
    if described.main_feature != METADATA_VERSION:
        raise ConfigError(
            "a Kafka release does not define levels of a group; omit --release-version"
        )
    try:
        return default_levels(find_kafka_release(release).metadata[1])
    except FeatureError as error:
        raise ConfigError(str(error)) from error


def _level(described: Described, name: str, text: str) -> int:
    """Return a level; a number that the table does not know may be known to the cluster."""
    feature = described.table.find(name)
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    number = int(text) if is_number else None
    if feature is None:
        if number is None:
            raise ConfigError(f"this program does not know {name}; give its level as a number")
        return number
    most = MAX_LEVEL if feature.application else feature.levels[-1].number
    if number is not None and (number == 0 or number > most):
        return number
    try:
        return feature.parse_level(text).number
    except FeatureError as error:
        raise ConfigError(str(error)) from error
