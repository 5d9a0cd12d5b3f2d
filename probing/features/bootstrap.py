"""Initial metadata.version of a cluster: what a new active controller decides from its log.

KIP-778: without a record in the log, it is the level that the directories were formatted with. A
preview cluster has neither and is at level 1; its programs do not know level records, so the first
update writes the first record.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from probing.features.kafka_table import default_levels
from probing.features.updates.values import LevelRecord
from probing.rules import Rule, Rules, always, first

PREVIEW_LEVEL: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLog:
    """What an active controller finds after loading its log.

    Attributes:
        logged_level: metadata.version in the log, None without a record.
        formatted_level: metadata.version that the directory was formatted with, None if it was
            formatted without one.
    """

    logged_level: int | None
    formatted_level: int | None


class FirstLevel(NamedTuple):
    """The level in force, and whether it is written to the log."""

    level: Callable[[FoundLog], int]
    is_written: bool


BOOTSTRAP_RULES: Final[Rules[FoundLog, FirstLevel]] = (
    Rule(
        name="the log has a level",
        holds=lambda f: f.logged_level is not None,
        says=FirstLevel(level=lambda f: f.logged_level or PREVIEW_LEVEL, is_written=False),
        why="the log sets metadata.version to {level}; the level that the directory was formatted"
        " with is ignored",
    ),
    Rule(
        name="formatted with a level",
        holds=lambda f: f.formatted_level is not None,
        says=FirstLevel(level=lambda f: f.formatted_level or PREVIEW_LEVEL, is_written=True),
        why="the log has no level yet; it starts at {level}, which the directory was formatted"
        " with",
    ),
    Rule(
        name="a preview cluster",
        holds=always,
        says=FirstLevel(level=lambda _: PREVIEW_LEVEL, is_written=False),
        why="neither the log nor the directory has a level: this was a preview cluster, which is"
        " at level {level}",
    ),
)
"""KIP-778, initialization; sentences also have the level, as ``level``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialLevel:
    """The initial metadata.version, the row that decided, and the records to append."""

    level: int
    rule: str
    why: str
    records: tuple[LevelRecord, ...]


def initial_level(found: FoundLog) -> InitialLevel:
    """Return the initial level; a formatted level also sets the other features of its release.

    kraft.version is not set: it depends on how the voters are configured, not on the release.
    """
    rule = first(BOOTSTRAP_RULES, found)
    level = rule.says.level(found)
    levels = default_levels(level) if rule.says.is_written else {}
    levels.pop("kraft.version", None)
    return InitialLevel(
        level=level,
        rule=rule.name,
        why=rule.sentence(found, level=level),
        records=tuple(LevelRecord(feature=name, level=at) for name, at in levels.items()),
    )
