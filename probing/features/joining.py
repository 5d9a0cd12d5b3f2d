"""Decision table for a node that joins: the check at start-up and the check at registration.

A node may join if its supported ranges contain every finalized level (KIP-584). If not, it gets the
levels, its own ranges and what to do, and stays fenced (KIP-778).
"""

from dataclasses import dataclass
from typing import Final

from probing.features.levels import FinalizedLevels
from probing.features.table import FeatureTable
from probing.features.updates.values import NodeSupport
from probing.rules import Rule, Rules, always, first

UNSUPPORTED_VERSION: Final = 35
"""Kafka's error code for a registration that is rejected because of a level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinNumbers:
    """Inputs of a row.

    Attributes:
        node: the node that joins, with its supported ranges.
        finalized: the levels in force.
        table: for the names of levels.
        is_enabled: the checking node applies levels; False in KIP-584's phase 1.
    """

    node: NodeSupport
    finalized: FinalizedLevels
    table: FeatureTable
    is_enabled: bool = True

    @property
    def lacking(self) -> tuple[str, ...]:
        """Return the names of the features whose finalized level the node does not support."""
        return tuple(
            feature
            for feature, level in sorted(self.finalized.levels.items())
            if not self.node.supports(feature, level)
        )

    @property
    def who(self) -> str:
        """Return role and id of the node, as in ``broker 3``."""
        return f"{self.node.role.value} {self.node.node_id}"

    @property
    def lacking_text(self) -> str:
        """Return each unsupported level with its name, and the node's range, as text."""
        levels = []
        for feature in self.lacking:
            level = self.finalized.level_of(feature)
            name = self.table.level_name(feature, level)
            shown = str(level) if name == str(level) else f"{level} ({name})"
            levels.append(f"{feature}={shown} (it supports {self.range_of(feature)})")
        return ", ".join(levels)

    def range_of(self, feature: str) -> str:
        """Return the node's range of a feature as text, ``none`` if it does not support it."""
        found = self.node.ranges.get(feature)
        return "none" if found is None else str(found)


JOIN_RULES: Final[Rules[JoinNumbers, bool]] = (
    Rule(
        name="levels do not count yet",
        holds=lambda n: not (n.is_enabled and n.node.is_migrated),
        says=True,
        why="{who} joins unchecked: levels apply once every node has the migration version",
    ),
    Rule(
        name="lacks a finalized level",
        holds=lambda n: bool(n.lacking),
        says=False,
        why="{who} cannot join, because it does not support {lacking_text}; start it with a release"
        " that does, or lower the level first",
    ),
    Rule(
        name="supports all",
        holds=always,
        says=True,
        why="{who} supports every finalized level",
    ),
)
"""Whether the node may join (KIP-584, KIP-778)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDecision:
    """Whether a node may join, the row that decided, its sentence, and the features it lacks."""

    is_accepted: bool
    rule: str
    why: str
    lacking: tuple[str, ...] = ()

    @property
    def error_code(self) -> int:
        """Return the error code of the registration response."""
        return 0 if self.is_accepted else UNSUPPORTED_VERSION


def decide_join(numbers: JoinNumbers) -> JoinDecision:
    """Return whether a node may join. Features that are off (level 0) are not checked."""
    rule = first(JOIN_RULES, numbers)
    return JoinDecision(
        is_accepted=rule.says,
        rule=rule.name,
        why=rule.sentence(numbers),
        lacking=() if rule.says else numbers.lacking,
    )
