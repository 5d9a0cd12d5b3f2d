"""Inputs of the update tables: one line of a request, and facts derived from it."""

from collections.abc import Mapping
from dataclasses import dataclass

from probing.features.kafka_table import CONTROLLERS_REGISTER_SINCE, METADATA_VERSION
from probing.features.table import Feature, Level
from probing.features.updates.values import (
    ControllerView,
    FeatureUpdate,
    NodeSupport,
    Role,
    UpdateKind,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateNumbers:
    """Inputs of a row.

    Attributes:
        view: the controller's state.
        update: the line of the request.
        proposed: level by feature if the whole request were applied.
    """

    view: ControllerView
    update: FeatureUpdate
    proposed: Mapping[str, int]

    @property
    def name(self) -> str:
        """Return the feature's name."""
        return self.update.feature

    @property
    def old(self) -> int:
        """Return the level in force, 0 for none."""
        return self.view.finalized.level_of(self.name)

    @property
    def new(self) -> int:
        """Return the requested level, 0 to delete."""
        return max(self.update.level, 0)

    @property
    def feature(self) -> Feature | None:
        """Return the feature, None if the controller does not know it."""
        return self.view.table.find(self.name)

    @property
    def minimum(self) -> int:
        """Return the lowest level that is not deprecated, 0 for none."""
        return self.view.minimums.get(self.name, 0)

    @property
    def is_lower(self) -> bool:
        """Tell whether the level is lowered or deleted."""
        return self.new < self.old

    @property
    def is_unsafe(self) -> bool:
        """Tell whether the operator accepts losses."""
        return self.update.kind is UpdateKind.UNSAFE_DOWNGRADE

    @property
    def lossy(self) -> tuple[Level, ...]:
        """Return the levels that a downgrade would undo with data loss, the highest last."""
        if self.feature is None or not self.is_lower:
            return ()
        return self.feature.lossy_between(low=self.new, high=self.old)

    @property
    def lossy_name(self) -> str:
        """Return number, name and change of the highest lossy level; empty if there is none."""
        level = self.lossy[-1] if self.lossy else None
        return "" if level is None else f"{level.number} ({level.name}: {level.changed})"

    @property
    def cannot(self) -> tuple[NodeSupport, ...]:
        """Return the live brokers, and this controller itself, that lack the new level."""
        return tuple(
            node
            for node in self.view.nodes
            if (node.role is not Role.CONTROLLER or node.node_id == self.view.node_id)
            and not node.supports(self.name, self.new)
        )

    @property
    def cannot_text(self) -> str:
        """Return those nodes with their ranges as text."""
        return ", ".join(node.range_text(self.name) for node in self.cannot)

    @property
    def voters(self) -> tuple[NodeSupport, ...]:
        """Return the registered controllers of the quorum."""
        return tuple(
            node
            for node in self.view.nodes
            if node.role is Role.CONTROLLER and node.node_id in self.view.quorum
        )

    @property
    def supporting(self) -> int:
        """Return how many voters are known to support the new level."""
        return sum(node.supports(self.name, self.new) for node in self.voters)

    @property
    def majority(self) -> int:
        """Return how many voters must support the new level; 0 without a quorum."""
        return len(self.view.quorum) // 2 + 1 if self.view.quorum else 0

    @property
    def voters_text(self) -> str:
        """Return all voters with their ranges as text, including unregistered ones."""
        heard = {node.node_id: node for node in self.voters}
        return ", ".join(
            heard[voter].range_text(self.name)
            if voter in heard
            else f"controller {voter} (not registered)"
            for voter in self.view.quorum
        )

    @property
    def unmet(self) -> str:
        """Return ``name=level`` of a required level that the request does not reach, or empty."""
        return self.view.table.unmet(self.name, self.new, self.proposed) or ""

    @property
    def dependent(self) -> str:
        """Return ``name=level`` of a finalized feature that requires a higher level, or empty."""
        for other, level in sorted(self.proposed.items()):
            unmet = self.view.table.unmet(other, level, self.proposed) if level else None
            if other != self.name and unmet and unmet.startswith(f"{self.name}="):
                return f"{other}={level}"
        return ""

    @property
    def silent(self) -> str:
        """Return the first voter that is unregistered or lacks the level; empty if none."""
        if self.view.finalized.level_of(METADATA_VERSION) < CONTROLLERS_REGISTER_SINCE:
            return ""
        heard = {node.node_id: node for node in self.voters}
        for voter in self.view.quorum:
            node = heard.get(voter)
            if node is None:
                return f"controller {voter} (not registered)"
            if not node.supports(self.name, self.new):
                return node.range_text(self.name)
        return ""
