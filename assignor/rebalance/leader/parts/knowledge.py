"""What a leader with all its parts knows besides the subscriptions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assignor.rebalance.forms.asking import NO_TOPOLOGIES, TopologyMemory
from assignor.rebalance.leader.knowledge import LeaderInputs, LeaderMemory
from assignor.rebalance.leader.stalled_copies import NONE_STALLED
from assignor.rebalance.leader.strategy_attempts import NO_FAILURES
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.topologies import Reached


@dataclass(frozen=True, kw_only=True)
class LeaderKnowledge(LeaderMemory, LeaderInputs):
    """What a leader has learnt outside the subscriptions; everything is optional.

    Its memory, what is true now, and what its parts need:

    Attributes:
        levels: the newest finalized levels that this leader knows; a member that reports newer ones
            corrects it (KIP-584).
        persistent_version: of this leader's own stores (KIP-384); 0: it has none.
        topologies: what this leader remembers of its members' topologies.
        reached: reached versions of the topology that this leader knows besides its subscription.
    """

    levels: FinalizedLevels = UNKNOWN_LEVELS
    persistent_version: int = 0
    topologies: TopologyMemory = NO_TOPOLOGIES
    reached: Mapping[bytes, Reached] = field(default_factory=dict)

    def of_a_follower(self) -> "LeaderKnowledge":
        """Return this memory after an answer of another leader: without what is of the past.

        Lags, failures of the strategy and stalled copies are compared with those of the previous
        rebalance, which the other leader has decided.
        """
        return replace(
            self, lags_before={}, lags_at_ms=0, failures=NO_FAILURES, stalled=NONE_STALLED
        )

    def with_new_topologies(self, decided: "LeaderKnowledge") -> "LeaderKnowledge":
        """Return this memory for a second decision of the same rebalance.

        Only what members described is taken over: the lags, copies and questions of the first
        decision are of the same rebalance, not of the one before.

        Args:
            decided: what the first decision remembered.
        """
        found = decided.topologies
        topologies = replace(self.topologies, appended=found.appended, described=found.described)
        return replace(self, topologies=topologies)


NOTHING_KNOWN = LeaderKnowledge()
