"""Migration from a static setting to a finalized flag in four phases (KIP-584).

``inter.broker.protocol.version`` is read once, at start. The flag that replaces it can be raised
online. It applies only to nodes whose setting is at least the migration version, so a rolling
bounce that lowers the setting is the emergency rollback.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from probing.rules import Rule, Rules, always, first


class Phase(IntEnum):
    """Phase of a node in the migration from the setting to the flag."""

    SETTING_ONLY = 1
    BOTH = 2
    FLAG = 3
    SETTING_RETIRED = 4

    @property
    def by_flag(self) -> bool:
        """Tell whether the flag decides, not the setting."""
        return self in {Phase.FLAG, Phase.SETTING_RETIRED}


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


MIGRATION_RULES: Final[Rules[ProtocolSetup, Phase]] = (
    Rule(
        name="setting is retired",
        holds=lambda s: s.setting is None,
        says=Phase.SETTING_RETIRED,
        why="the program no longer has a static setting; the flag decides: {flag}",
    ),
    Rule(
        name="setting is below the migration version",
        holds=lambda s: not s.is_migrated,
        says=Phase.SETTING_ONLY,
        why="the setting {setting} is below the migration version {migration}; the setting decides,"
        " finalized levels are ignored",
    ),
    Rule(
        name="flag is not finalized",
        holds=lambda s: s.flag == 0,
        says=Phase.BOTH,
        why="the flag is not finalized yet; the setting decides: {setting}",
    ),
    Rule(
        name="flag is finalized",
        holds=always,
        says=Phase.FLAG,
        why="the flag is finalized at {flag} and decides; the setting {setting} is ignored",
    ),
)
"""The phase of the node (KIP-584)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolDecision:
    """The level that a node uses towards its peers, its phase, and the row that decided."""

    level: int
    phase: Phase
    rule: str
    why: str


def decide_protocol(setup: ProtocolSetup) -> ProtocolDecision:
    """Return the level that a node uses."""
    rule = first(MIGRATION_RULES, setup)
    level = setup.flag if rule.says.by_flag or setup.setting is None else setup.setting
    return ProtocolDecision(level=level, phase=rule.says, rule=rule.name, why=rule.sentence(setup))
