"""The log of a simulated group's levels: updates of the operator, minimums raised by leaders."""

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
    """The finalized levels of a group, and its minimums.

    Attributes:
        last: the finalized levels.
        minimums: lowest level that is not deprecated, by feature.
    """

    def __init__(self) -> None:
        self.last = FinalizedLevels()
        self.minimums: dict[str, int] = {}

    def update(
        self, feature: str, level: int, nodes: Sequence[NodeSupport], table: FeatureTable
    ) -> str:
        """Apply an operator's update; return its reason, or "" if it was refused."""
        lower = level < self.last.level_of(feature)
        kind = UpdateKind.SAFE_DOWNGRADE if lower else UpdateKind.UPGRADE
        update = FeatureUpdate(feature=feature, level=level, kind=kind)
        view = ControllerView(
            table=table, finalized=self.last, nodes=tuple(nodes), minimums=self.minimums
        )
        outcome = decide_update(view, UpdateRequest(updates=(update,)))
        if not outcome.ok or not outcome.records:
            return ""
        self.last = outcome.finalized
        return outcome.results[0].why

    def raise_minimums(self, nodes: Sequence[NodeSupport]) -> bool:
        """Raise the minimums that all nodes allow, as `FeatureTopic.raise_minimums` does.

        Returns:
            Whether a minimum was raised.
        """
        raised = raised_minimums(self.last, self.minimums, nodes)
        if raised:
            self.minimums |= raised
            self.last = self.last.changed({})
        return bool(raised)
