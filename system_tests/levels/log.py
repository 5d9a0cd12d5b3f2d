"""The log of a simulated group's levels: an operator's updates, and minimums that leaders raise."""

from collections.abc import Sequence

from probing.features import (
    ControllerView,
    FeatureTable,
    FeatureUpdate,
    FinalizedLevels,
    NodeSupport,
    UpdateKind,
    UpdateRequest,
    decide_update,
    raised_minimums,
)


class GroupLog:
    """Every state of the levels that was ever finalized, and the minimums in force.

    Attributes:
        levels: by epoch, from 0; the last ones hold.
        minimums: lowest level that is not deprecated, by feature.
    """

    def __init__(self) -> None:
        self.levels = [FinalizedLevels()]
        self.minimums: dict[str, int] = {}

    @property
    def last(self) -> FinalizedLevels:
        """What is finalized now."""
        return self.levels[-1]

    def ask(
        self, feature: str, level: int, nodes: Sequence[NodeSupport], table: FeatureTable
    ) -> str:
        """Decide an operator's update; why it was done, empty where it was refused."""
        lower = level < self.last.level_of(feature)
        kind = UpdateKind.SAFE_DOWNGRADE if lower else UpdateKind.UPGRADE
        update = FeatureUpdate(feature=feature, level=level, kind=kind)
        view = ControllerView(
            table=table, finalized=self.last, nodes=tuple(nodes), floors=self.minimums
        )
        outcome = decide_update(view, UpdateRequest(updates=(update,)))
        if not outcome.ok or not outcome.records:
            return ""
        self.levels.append(outcome.finalized)
        return outcome.results[0].why

    def raise_minimums(self, nodes: Sequence[NodeSupport]) -> bool:
        """Raise what all nodes have come to, as `FeatureTopic.raise_minimums` does; if any rose."""
        raised = raised_minimums(self.last, self.minimums, nodes)
        if raised:
            self.minimums |= raised
            self.levels.append(self.last.changed({}))
        return bool(raised)
