"""Migration from a static setting to a finalized flag in four phases (KIP-584).

``inter.broker.protocol.version`` is read once, at start. The flag that replaces it can be raised
online. It applies only to nodes whose setting is at least the migration version, so a rolling
bounce that lowers the setting is the emergency rollback.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Phase(IntEnum):
    """Phase of a node in the migration from the setting to the flag."""

    SETTING_ONLY = 1
    BOTH = 2
    FLAG = 3
    SETTING_RETIRED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolSetup:
    """Setting and flag of one node.

    Attributes:
        setting: level of its static setting; None in a program that no longer has it.
        migration: the migration version: from this setting on, the flag applies.
        flag: finalized level of the flag, 0 while it is not finalized.
    """

    setting: int | None
    migration: int
    flag: int = 0

    @property
    def is_migrated(self) -> bool:
        """Tell whether this node uses finalized levels: reads, advertises and updates them."""
        return self.setting is None or self.setting >= self.migration


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationRule:
    """One row: its condition, the phase, whether the flag decides, and the sentence."""

    name: str
    holds: Callable[[ProtocolSetup], bool]
    phase: Phase
    by_flag: bool
    why: str


MIGRATION_RULES: Final = (
    MigrationRule(
        name="setting is retired",
        holds=lambda s: s.setting is None,
        phase=Phase.SETTING_RETIRED,
        by_flag=True,
        why="the program no longer has a static setting; the flag decides: {flag}",
    ),
    MigrationRule(
        name="setting is below the migration version",
        holds=lambda s: not s.is_migrated,
        phase=Phase.SETTING_ONLY,
        by_flag=False,
        why="the setting {setting} is below the migration version {migration}; the setting decides,"
        " finalized levels are ignored",
    ),
    MigrationRule(
        name="flag is not finalized",
        holds=lambda s: s.flag == 0,
        phase=Phase.BOTH,
        by_flag=False,
        why="the flag is not finalized yet; the setting decides: {setting}",
    ),
    MigrationRule(
        name="flag is finalized",
        holds=lambda s: True,  # noqa: ARG005 the last row always holds
        phase=Phase.FLAG,
        by_flag=True,
        why="the flag is finalized at {flag} and decides; the setting {setting} is ignored",
    ),
)
"""The first row that holds decides (KIP-584, phases 1 to 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolDecision:
    """The level that a node uses towards its peers, its phase, and the row that decided."""

    level: int
    phase: Phase
    rule: str
    why: str


def decide_protocol(setup: ProtocolSetup) -> ProtocolDecision:
    """Return the level that a node uses."""
    rule = next(row for row in MIGRATION_RULES if row.holds(setup))
    level = setup.flag if rule.by_flag or setup.setting is None else setup.setting
    why = rule.why.format(flag=setup.flag, setting=setup.setting, migration=setup.migration)
    return ProtocolDecision(level=level, phase=rule.phase, rule=rule.name, why=why)
