"""May this node come in: the check at start-up and the check at registration are the same table.

A node whose supported ranges do not hold every finalized level would not understand the others
(KIP-584). It is told which levels, what it supports, and what to do; it stays fenced (KIP-778).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from probing.features.levels import FinalizedLevels
from probing.features.table import FeatureTable
from probing.features.update import NodeSupport

UNSUPPORTED_VERSION: Final = 35
"""Kafka's error of a registration that is rejected for a level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinNumbers:
    """What a row may look at.

    Attributes:
        node: who wants in, with what it supports.
        finalized: the levels in force.
        table: for the names of levels.
        is_enabled: levels count for who decides; False in KIP-584's phase 1.
    """

    node: NodeSupport
    finalized: FinalizedLevels
    table: FeatureTable
    is_enabled: bool = True

    @property
    def lacking(self) -> tuple[str, ...]:
        """Return the features whose finalized level the node does not support."""
        return tuple(
            feature
            for feature, level in sorted(self.finalized.levels.items())
            if not self.node.supports(feature, level)
        )

    @property
    def who(self) -> str:
        """Name the node."""
        return f"{self.node.role.value} {self.node.node_id}"

    @property
    def lacking_said(self) -> str:
        """Say each level that is missing, with its name, and the node's range."""
        said = []
        for feature in self.lacking:
            level = self.finalized.level_of(feature)
            name = self.table.level_name(feature, level)
            shown = str(level) if name == str(level) else f"{level} ({name})"
            said.append(f"{feature}={shown} where it supports {self.range_of(feature)}")
        return ", ".join(said)

    def range_of(self, feature: str) -> str:
        """Return the node's range of a feature as text."""
        found = self.node.ranges.get(feature)
        return "none" if found is None else str(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRule:
    """One row: when it holds, whether the node may come in, and the sentence."""

    name: str
    holds: Callable[[JoinNumbers], bool]
    is_accepted: bool
    why: str


JOIN_RULES: Final = (
    JoinRule(
        name="levels do not count yet",
        holds=lambda n: not (n.is_enabled and n.node.is_migrated),
        is_accepted=True,
        why="{who} comes in unchecked: levels count once every node has the migration version",
    ),
    JoinRule(
        name="lacks a finalized level",
        holds=lambda n: bool(n.lacking),
        is_accepted=False,
        why="{who} cannot join: finalized is {lacking_said}; start it with a release that supports"
        " that, or lower the level first",
    ),
    JoinRule(
        name="supports all",
        holds=lambda n: True,  # noqa: ARG005 the last row always holds
        is_accepted=True,
        why="{who} supports every finalized level",
    ),
)
"""First row that holds, wins (KIP-584, KIP-778)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDecision:
    """Whether a node may come in, by which rule, why, and the features that it lacks."""

    is_accepted: bool
    rule: str
    why: str
    lacking: tuple[str, ...] = ()

    @property
    def error_code(self) -> int:
        """Return what a registration is answered with on the wire."""
        return 0 if self.is_accepted else UNSUPPORTED_VERSION


def decide_join(numbers: JoinNumbers) -> JoinDecision:
    """Return whether a node may come in. A feature that is off is no reason to stay out."""
    rule = next(row for row in JOIN_RULES if row.holds(numbers))
    why = rule.why.format(who=numbers.who, lacking_said=numbers.lacking_said)
    lacking = () if rule.is_accepted else numbers.lacking
    return JoinDecision(is_accepted=rule.is_accepted, rule=rule.name, why=why, lacking=lacking)
