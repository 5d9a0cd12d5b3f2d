"""The feature levels of an embedded cluster: what nodes support, what is finalized, who is late.

One state for the cluster, as the controller's log would hold it; a node that is made stale goes on
telling what it knew then (KIP-584: nodes learn at different times).
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
    """Finalized levels of a cluster, and what each node supports.

    Args:
        release: series of Kafka that every node passes for, unless told otherwise.
        metadata_version: level that the cluster begins with; None takes the release's highest.
        model: whose rules its controller goes by.

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
            # kraft.version is the quorum's own and never among the finalized ones.
            levels={
                n: min(v, known[n].max)
                for n, v in wanted.items()
                if n in known and "kraft" not in n
            }
        )

    def ranges_of(self, node_id: int) -> Mapping[str, LevelRange]:
        """What a node supports."""
        return self._ranges_by_node.get(node_id, self._ranges)

    def set_release(self, node_id: int, release: str) -> None:
        """Let a node pass for another release, as after a bounce.

        Raises:
            FeatureError: the release is unknown.
        """
        self._ranges_by_node[node_id] = find_kafka_release(release).ranges

    def seen_by(self, node_id: int) -> FinalizedLevels:
        """The levels that a node tells."""
        return self._stale.get(node_id, self.finalized)

    def freeze(self, node_ids: Iterable[int]) -> None:
        """Let nodes learn nothing from now on."""
        for node_id in node_ids:
            self._stale.setdefault(node_id, self.finalized)

    def thaw(self, node_ids: Iterable[int] | None = None) -> None:
        """Let nodes learn everything again; all of them if left out."""
        for node_id in list(self._stale) if node_ids is None else node_ids:
            self._stale.pop(node_id, None)

    def update(
        self, request: UpdateRequest, *, node_id: int, controller_id: int, live: Iterable[int]
    ) -> UpdateOutcome:
        """Do what a client asks of a node; only the controller does it."""
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
