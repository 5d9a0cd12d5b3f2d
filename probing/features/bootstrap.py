"""The level of a cluster that has none in its log: what an active controller does first.

KIP-778: the level that the directories were formatted with; a log of a preview cluster has neither
record nor format and is at level 1. The preview's programs know no level records, so none is
written for it: the first update writes one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from probing.features.kafka_table import default_levels
from probing.features.update import LevelRecord

PREVIEW_LEVEL: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLog:
    """What an active controller finds when it has loaded its log.

    Attributes:
        logged_level: of metadata.version, None without a record.
        formatted_level: that its directory was formatted with, None in one from before levels.
    """

    logged_level: int | None
    formatted_level: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapRule:
    """One row: when it holds, the level in force, whether it is written, and the sentence."""

    name: str
    holds: Callable[[FoundLog], bool]
    level: Callable[[FoundLog], int]
    is_written: bool
    why: str


BOOTSTRAP_RULES: Final = (
    BootstrapRule(
        name="the log has a level",
        holds=lambda found: found.logged_level is not None,
        level=lambda found: found.logged_level or PREVIEW_LEVEL,
        is_written=False,
        why="the log sets metadata.version to {level}; what the directory was formatted with no"
        " longer counts",
    ),
    BootstrapRule(
        name="formatted with a level",
        holds=lambda found: found.formatted_level is not None,
        level=lambda found: found.formatted_level or PREVIEW_LEVEL,
        is_written=True,
        why="the log has no level yet; it starts at {level}, which the directory was formatted"
        " with",
    ),
    BootstrapRule(
        name="a preview cluster",
        holds=lambda found: True,  # noqa: ARG005 the last row always holds
        level=lambda found: PREVIEW_LEVEL,  # noqa: ARG005 whatever was found
        is_written=False,
        why="neither the log nor the directory has a level: this was a preview cluster, which is"
        " at level {level}",
    ),
)
"""First row that holds, wins (KIP-778, initialization)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialLevel:
    """The level of metadata.version to begin with, by which rule, and the records to append."""

    level: int
    rule: str
    why: str
    records: tuple[LevelRecord, ...]


def initial_level(found: FoundLog) -> InitialLevel:
    """Return the level to begin with; a formatted one brings the features that belong to it.

    But for kraft.version, which follows from how the voters were given, not from a release.
    """
    rule = next(row for row in BOOTSTRAP_RULES if row.holds(found))
    level = rule.level(found)
    levels = default_levels(level) if rule.is_written else {}
    levels.pop("kraft.version", None)
    return InitialLevel(
        level=level,
        rule=rule.name,
        why=rule.why.format(level=level),
        records=tuple(LevelRecord(feature=name, level=at) for name, at in levels.items()),
    )
