"""What an operator's words about feature levels mean: updates, values in and out, no I/O.

The same for a Kafka cluster and for a group of ours; they differ in the table of features and in
who does it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assignor.errors import ConfigError
from probing.features import (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is agreed somewhere, and who could do what.

    Attributes:
        source: who told, for people.
        table: names of features and levels.
        supported: range by feature; of a group, what all its members support.
        finalized: levels and epoch.
        minimums: lowest level that is not deprecated, by feature (KIP-584); a cluster tells none.
        notes: sentences worth a look.
    """

    source: str
    table: FeatureTable
    supported: Mapping[str, LevelRange]
    finalized: FinalizedLevels
    minimums: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all features that are supported or finalized; of a group, ours besides."""
        ours = [] if self.main_feature == METADATA_VERSION else [one.name for one in self.table]
        return tuple(sorted({*self.supported, *self.finalized.levels, *ours}))

    @property
    def main_feature(self) -> str:
        """The feature that `--metadata` stands for."""
        return (
            METADATA_VERSION
            if self.table.find(METADATA_VERSION) is not None
            else PERSISTENT_METADATA
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of one update.

    Attributes:
        old: level before; 0 is off.
        new: level asked for.
        error: Kafka's name of the error, "" when it is done, or could be.
        why: the sentence.
        dropped: what was lost on the way down, one sentence each.
    """

    feature: str
    old: int
    new: int
    error: str = ""
    why: str = ""
    dropped: tuple[str, ...] = ()


def level_text(table: FeatureTable, feature: str, level: int) -> str:
    """Say a level: `21 (3.9-IV0)`, `1`, `off`.

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
    """Return the updates that `--metadata` and `--feature name=level` ask for.

    Args:
        described: for the table.
        metadata: level of the main feature, by number, name or release.
        features: `name=level` each.
        kind: of all of them.

    Raises:
        ConfigError: nothing is asked for, a word makes no sense, a feature is named twice.
    """
    asked = [] if metadata is None else [(described.main_feature, metadata)]
    for text in features:
        name, equals, level = text.partition("=")
        if not equals or not name or not level:
            raise ConfigError(f"--feature {text!r} is not of the form name=level; write NAME=LEVEL")
        asked.append((name, level))
    names = [name for name, _ in asked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{', '.join(twice)} is named more than once; name one level for each")
    if not asked:
        raise ConfigError("nothing is asked for; give --metadata LEVEL or --feature NAME=LEVEL")
    return tuple(
        FeatureUpdate(feature=name, level=_level(described, name, text), kind=kind)
        for name, text in asked
    )


def disabling(names: Sequence[str], kind: UpdateKind) -> tuple[FeatureUpdate, ...]:
    """Return the updates that take features out.

    Raises:
        ConfigError: none is named, or one twice.
    """
    if not names or len(set(names)) < len(names):
        raise ConfigError("name each feature to disable once: --feature NAME")
    return tuple(FeatureUpdate(feature=name, level=0, kind=kind) for name in names)


def raise_all(described: Described, release: str | None) -> tuple[FeatureUpdate, ...]:
    """Return what lifts every feature to the latest level that this program and the others know.

    Args:
        described: levels now; what is supported bounds them.
        release: of Kafka; its levels instead of the latest. Features without a way back are left:
            they are named one by one, or not at all.

    Raises:
        ConfigError: the release is unknown, or levels of a group are asked for by one.
    """
    wanted = _tops(described) if release is None else _levels_of(described, release)
    updates = []
    for name, level in sorted(wanted.items()):
        found = described.supported.get(name)
        feature = described.table.find(name)
        if found is None or (feature is not None and not feature.has_way_back):
            continue
        level_ = min(level, found.max)
        if level_ > described.finalized.level_of(name):
            updates.append(FeatureUpdate(feature=name, level=level_, kind=UpdateKind.UPGRADE))
    return tuple(updates)


def lower_all(
    described: Described, release: str | None, kind: UpdateKind
) -> tuple[FeatureUpdate, ...]:
    """Return what lowers every feature to what this program, or a release of Kafka, knows.

    A feature that it does not know at all is taken out.

    Raises:
        ConfigError: as of `raise_all`.
    """
    wanted = _tops(described) if release is None else _levels_of(described, release)
    return tuple(
        FeatureUpdate(feature=name, level=wanted.get(name, 0), kind=kind)
        for name, level in sorted(described.finalized.levels.items())
        if level > wanted.get(name, 0)
    )


def lossy_text(table: FeatureTable, told: Told) -> str:
    """Name the levels that forbid a lossless way down; empty where none does, or none is known."""
    feature = table.find(told.feature)
    lossy = () if feature is None else feature.lossy_between(low=told.new, high=told.old)
    if told.new >= told.old or not lossy or any(level.name in told.why for level in lossy):
        return ""
    named = ", ".join(level_text(table, told.feature, level.number) for level in lossy)
    return f"below {named} what came with it is lost"


def _tops(described: Described) -> dict[str, int]:
    return {feature.name: feature.levels[-1].number for feature in described.table}


def _levels_of(described: Described, release: str) -> dict[str, int]:
    if described.main_feature != METADATA_VERSION:
        raise ConfigError("a release of Kafka says nothing about a group; leave --release-version")
    try:
        return default_levels(find_kafka_release(release).metadata[1])
    except FeatureError as error:
        raise ConfigError(str(error)) from error


def _level(described: Described, name: str, text: str) -> int:
    """Read a level; a number that the table does not know may still be known to the cluster."""
    feature = described.table.find(name)
    number = int(text) if text.isascii() and text.isdigit() else None
    if feature is None:
        if number is None:
            raise ConfigError(f"{name} is not known here, so give its level as a number")
        return number
    if number is not None and (number == 0 or number > feature.levels[-1].number):
        return number
    try:
        return feature.parse_level(text).number
    except FeatureError as error:
        raise ConfigError(str(error)) from error
