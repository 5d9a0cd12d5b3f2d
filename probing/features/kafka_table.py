"""Kafka's features and their levels as released, one row per level.

The rows, with their sources, are in ``kafka_levels.toml``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from probing.features.levels import FeatureError, LevelRange
from probing.features.table import Feature, FeatureTable, Level
from probing.tables import Form, Where, known_in, of_length, read_table, rows_of

METADATA_VERSION: Final = "metadata.version"
CONTROLLERS_REGISTER_SINCE: Final = 15
"""From this metadata.version on, controllers register their supported ranges (KIP-919)."""

_LEVELS_ARE_LOGGED_SINCE: Final = 4


def _problem_of_level(levels: Mapping[str, int], tables: Mapping[str, Any]) -> str:
    known = {row["name"]: len(row["levels"]) for row in tables["feature"]}
    for name, level in levels.items():
        if not 1 <= level <= known.get(name, 0):
            return f"{name} {level} is not a level of [[feature]]"
    return ""


def _problem_of_range(ends: list[int], tables: Mapping[str, Any]) -> str:
    numbers = [row["number"] for row in tables["metadata"]]
    if ends[0] in numbers and ends[1] in numbers and ends[0] <= ends[1]:
        return ""
    return f"{ends!r} are not the lowest and the highest of levels of [[metadata]]"


def _problem_of_series(name: str, tables: Mapping[str, Any]) -> str:
    if name.partition("-")[0] in [row["series"] for row in tables["release"]]:
        return ""
    return f"{name!r} is not of a series of [[release]]"


_LEVELS: Final = Where({"*": int}, _problem_of_level)
_OF_SERIES: Final = Where(str, _problem_of_series)
_RELEASE: Final[dict[str, Form]] = {
    "series": str,
    "metadata": Where(of_length(int, 2, 2), _problem_of_range),
    "others?": _LEVELS,
}
_METADATA: Final[dict[str, Form]] = {
    "number": int,
    "name": _OF_SERIES,
    "compatible_back": bool,
    "changed": str,
    "defaults?": _LEVELS,
}
_FEATURE: Final[dict[str, Form]] = {
    "name": str,
    "governs": str,
    "can_be_lowered?": bool,
    "needs_metadata?": known_in(int, "metadata", "number"),
    "levels": of_length({"release": _OF_SERIES, "changed": str}, 1),
}
_DATA: Final = read_table(
    "probing.features",
    "kafka_levels.toml",
    {
        "release": rows_of(_RELEASE, "series"),
        "metadata": rows_of(_METADATA, "number", rises=int),
        "feature": rows_of(_FEATURE, "name"),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRelease:
    """Supported ranges of one series of brokers and controllers.

    Attributes:
        series: such as ``3.9``.
        metadata: lowest and highest metadata.version; (1, 1) for 3.0 to 3.2, which do not know the
            feature and which controllers treat as level 1.
        others: highest level of each other feature; the lowest is 0, off.
    """

    series: str
    metadata: tuple[int, int]
    others: tuple[tuple[str, int], ...] = ()

    @property
    def ranges(self) -> dict[str, LevelRange]:
        """Return the ranges that such a node advertises, by feature."""
        low, high = self.metadata
        others = {name: LevelRange(min=1, max=top, can_be_off=True) for name, top in self.others}
        return {METADATA_VERSION: LevelRange(min=low, max=high), **others}


KAFKA_RELEASES: Final = tuple(
    KafkaRelease(
        series=row["series"],
        metadata=(row["metadata"][0], row["metadata"][1]),
        others=tuple(row.get("others", {}).items()),
    )
    for row in _DATA["release"]
)
"""Every series with KRaft, oldest first."""


def find_kafka_release(series: str) -> KafkaRelease:
    """Return the supported ranges of a series; a patch (``3.9.1``) stands for its series.

    Raises:
        FeatureError: the series had no KRaft, or is unknown.
    """
    wanted = ".".join(series.split(".")[:2])
    for release in KAFKA_RELEASES:
        if release.series == wanted:
            return release
    known = f"{KAFKA_RELEASES[0].series} to {KAFKA_RELEASES[-1].series}"
    raise FeatureError(f"release {series!r} has no finalized levels; choose from {known}")


def _metadata() -> Feature:
    return Feature(
        name=METADATA_VERSION,
        levels=tuple(
            Level(
                number=row["number"],
                name=row["name"],
                release=row["name"].partition("-")[0],
                changed=row["changed"],
                compatible_back=row["compatible_back"],
            )
            for row in _DATA["metadata"]
        ),
        governs="records of the metadata log and the requests between brokers and controllers",
        is_always_on=True,
        lowest_settable=_LEVELS_ARE_LOGGED_SINCE,
    )


def _plain(row: Mapping[str, Any]) -> Feature:
    """Return a feature whose levels 1, 2, ... are the rows (release, what changed)."""
    can_be_lowered = row.get("can_be_lowered", True)
    required = (METADATA_VERSION, row.get("needs_metadata", _LEVELS_ARE_LOGGED_SINCE))
    return Feature(
        name=row["name"],
        levels=tuple(
            Level(
                number=number,
                name=str(number),
                release=level["release"],
                changed=level["changed"],
                compatible_back=can_be_lowered,
                requires=(required,),
            )
            for number, level in enumerate(row["levels"], start=1)
        ),
        governs=row["governs"],
        can_be_lowered=can_be_lowered,
    )


KAFKA_FEATURES: Final = FeatureTable(
    features=tuple(
        sorted(
            (_metadata(), *map(_plain, _DATA["feature"])),
            key=lambda feature: feature.name,
        )
    )
)
"""Kafka's features and all their released levels."""


def default_levels(metadata_version: int) -> dict[str, int]:
    """Return the levels of a new cluster at a metadata.version, as ``--release-version`` sets them.

    These are metadata.version itself and, of every other feature, the highest default level.
    """
    # Levels of one feature ascend, so the last that holds is the highest.
    others = {
        name: level
        for row in _DATA["metadata"]
        if row["number"] <= metadata_version
        for name, level in row.get("defaults", {}).items()
    }
    return dict(sorted((others | {METADATA_VERSION: metadata_version}).items()))
