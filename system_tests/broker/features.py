"""Feature levels of an embedded cluster: supported ranges, finalized levels, stale nodes.

The cluster has one state, like the controller's log. A stale node keeps reporting the levels that
it had when it became stale (KIP-584: nodes learn levels at different times).
"""

from collections.abc import Iterable, Mapping

from probing.features import (
    KAFKA_FEATURES,
    ControllerView,
    FinalizedLevels,
    LevelRange,
    NodeSupport,
    UpdateModel,
    UpdateOutcome,
    UpdateRequest,
    decide_update,
    default_levels,
    find_kafka_release,
)


class ClusterFeatures:
    """Finalized levels of a cluster, and the supported ranges of each node.

    Args:
        release: series of Kafka that the nodes emulate; see `set_release`.
        metadata_version: initial level of the cluster; None: the highest of the release.
        model: rules by which the controller decides.

    Raises:
        FeatureError: the release is unknown.
    """

    def __init__(
        self,
        release: str,
        *,
        metadata_version: int | None = None,
        model: UpdateModel = UpdateModel.KAFKA,
    ) -> None:
        found = find_kafka_release(release)
        known = found.ranges
        wanted = default_levels(metadata_version or found.metadata[1])
        self._ranges: Mapping[str, LevelRange] = known
        self._ranges_by_node: dict[int, Mapping[str, LevelRange]] = {}
        self._stale: dict[int, FinalizedLevels] = {}
        self._model = model
        self.finalized = FinalizedLevels(
            # kraft.version belongs to the quorum and is never a finalized feature.
            levels={
                n: min(v, known[n].max)
                for n, v in wanted.items()
                if n in known and "kraft" not in n
            }
        )

    def ranges_of(self, node_id: int) -> Mapping[str, LevelRange]:
        """Return the supported ranges of a node."""
        return self._ranges_by_node.get(node_id, self._ranges)

    def set_release(self, node_id: int, release: str) -> None:
        """Let a node emulate another release, as after a bounce.

        Raises:
            FeatureError: the release is unknown.
        """
        self._ranges_by_node[node_id] = find_kafka_release(release).ranges

    def seen_by(self, node_id: int) -> FinalizedLevels:
        """Return the levels that a node reports."""
        return self._stale.get(node_id, self.finalized)

    def freeze(self, node_ids: Iterable[int]) -> None:
        """Make nodes stale: they learn no new levels."""
        for node_id in node_ids:
            self._stale.setdefault(node_id, self.finalized)

    def thaw(self, node_ids: Iterable[int] | None = None) -> None:
        """Let stale nodes learn the current levels; default: all of them."""
        for node_id in list(self._stale) if node_ids is None else node_ids:
            self._stale.pop(node_id, None)

    def update(
        self, request: UpdateRequest, *, node_id: int, controller_id: int, live: Iterable[int]
    ) -> UpdateOutcome:
        """Apply a client's update request to a node; only the controller accepts it."""
        outcome = decide_update(
            ControllerView(
                table=KAFKA_FEATURES,
                finalized=self.finalized,
                nodes=tuple(NodeSupport(node_id=n, ranges=self.ranges_of(n)) for n in sorted(live)),
                node_id=node_id,
                is_active=node_id == controller_id,
                model=self._model,
            ),
            request,
        )
        self.finalized = outcome.finalized
        return outcome
