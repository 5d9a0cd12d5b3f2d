"""What a leader knows besides the subscriptions: its settings, and what it has learnt."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from assignor.config import AssignmentConfig
from assignor.placement import Strategy, high_availability
from assignor.rebalance.forms import NO_TOPOLOGIES, TopologyMemory, plain
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory
from assignor.rebalance.leader.members import UNKNOWN_GENERATION
from assignor.rebalance.leader.record_budget import GROUP_RECORD_LIMIT
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.strategy_attempts import NO_FAILURES, StrategyFailures
from assignor.topology import CarriedTopologies, Subtopology, SubtopologyWaits
from encoding import TaskId
from probing import Release
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.topologies import Reached

T = TypeVar("T")


def unknown_topic(topic: str) -> str:
    """Return the warning about a source topic whose partition count is not known."""
    return f"partition count of {topic} is not known yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """Settings of a leader, the same in every rebalance.

    Attributes:
        release: whose versions it reads and whose rules it follows.
        subtopologies: of its own topology.
        config: settings for the strategy.
        strategy: places tasks on clients; `high_availability` by default.
        group_record_limit: bytes of the group's whole record that the broker accepts.
        versions: of each subtopology, the versions of the topology that contain it; empty: the
            program carries version 1 alone.
    """

    release: Release
    subtopologies: tuple[Subtopology, ...]
    config: AssignmentConfig
    strategy: Strategy = high_availability
    group_record_limit: int = GROUP_RECORD_LIMIT
    versions: tuple[tuple[int, ...], ...] = ()

    @property
    def carried(self) -> CarriedTopologies:
        """The subtopologies that this program can run, with their versions."""
        if not self.versions:
            return plain(self.subtopologies)
        return CarriedTopologies(subtopologies=self.subtopologies, versions=self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderKnowledge:
    """What a leader has learnt outside the subscriptions; everything is optional.

    Attributes:
        end_offset_sums: stateful task -> sum of its changelogs' end offsets; None: not known now.
        lags_before: process id -> `least_lags` when they were last compared; a warm-up whose lag
            does not shrink causes no further probing rebalances.
        lags_at_ms: when that was, epoch milliseconds. Lags are compared again after the probing
            interval: a restore may need so long to begin. 0: not known, they are compared now.
        failures: of the strategy, as the previous answer returned them.
        stalled: copies whose lag did not shrink, as the previous answer returned them.
        levels: the newest finalized levels that this leader knows; a member that reports newer ones
            corrects it (KIP-584).
        persistent_version: of this leader's own stores (KIP-384); 0: it has none.
        leader_id: member id of this leader; its answer carries the time of the next rebalance.
        now_ms: epoch milliseconds.
        claims: which member got and which waits for which task, if this leader also led the
            previous rebalance.
        generation: of this rebalance; -1 if the client does not tell.
        waits: subtopology id -> why its tasks cannot be assigned; tasks that ran already go on,
            unless the subtopology is refused.
        topologies: what this leader remembers of its members' topologies.
        reached: reached versions of the topology that this leader knows besides its subscription.
    """

    end_offset_sums: Mapping[TaskId, int] | None = None
    lags_before: Mapping[str, Mapping[TaskId, int]] = field(default_factory=dict)
    lags_at_ms: int = 0
    failures: StrategyFailures = NO_FAILURES
    stalled: StalledCopies = NONE_STALLED
    levels: FinalizedLevels = UNKNOWN_LEVELS
    persistent_version: int = 0
    leader_id: str | None = None
    now_ms: int = 0
    claims: ClaimMemory = NO_CLAIMS
    generation: int = UNKNOWN_GENERATION
    waits: Mapping[int, SubtopologyWaits] = field(default_factory=dict)
    topologies: TopologyMemory = NO_TOPOLOGIES
    reached: Mapping[bytes, Reached] = field(default_factory=dict)

    def without_subtopologies(self, numbers: Collection[int]) -> "LeaderKnowledge":
        """Return this memory without what is known of tasks of some subtopologies.

        Args:
            numbers: that are of another subtopology since.
        """
        if not numbers:
            return self

        def kept(by_task: Mapping[TaskId, T]) -> dict[TaskId, T]:
            return {t: value for t, value in by_task.items() if t.subtopology not in numbers}

        claims, sums = self.claims, self.end_offset_sums
        return replace(
            self,
            waits={number: why for number, why in self.waits.items() if number not in numbers},
            end_offset_sums=None if sums is None else kept(sums),
            lags_before={process: kept(lags) for process, lags in self.lags_before.items()},
            stalled=self.stalled.without_subtopologies(numbers),
            claims=replace(
                claims,
                given=kept(claims.given),
                withheld=kept(claims.withheld),
                waited=kept(claims.waited),
            ),
        )

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
