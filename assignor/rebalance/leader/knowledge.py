"""What a leader knows besides the subscriptions: settings, memory, and what is true now."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.config import AssignmentConfig
from assignor.placement import Strategy, high_availability
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory
from assignor.rebalance.leader.members import UNKNOWN_GENERATION
from assignor.rebalance.leader.record_budget import GROUP_RECORD_LIMIT
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.strategy_attempts import NO_FAILURES, StrategyFailures
from assignor.topology import CarriedTopologies, Subtopology, SubtopologyWaits, plain
from encoding import TaskId
from probing import Release


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


@dataclass(frozen=True, kw_only=True)
class LeaderInputs:
    """What is true at one rebalance; everything is optional.

    Attributes:
        end_offset_sums: stateful task -> sum of its changelogs' end offsets; None: not known now.
        leader_id: member id of this leader; its answer carries the time of the next rebalance.
        now_ms: epoch milliseconds.
        generation: the rebalance's generation; -1 if the client does not tell.
        waits: subtopology id -> why its tasks cannot be assigned; tasks that ran already keep
            running, unless the subtopology is refused.
    """

    end_offset_sums: Mapping[TaskId, int] | None = None
    leader_id: str | None = None
    now_ms: int = 0
    generation: int = UNKNOWN_GENERATION
    waits: Mapping[int, SubtopologyWaits] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LeaderMemory:
    """What a leader remembers from one rebalance to the next.

    Attributes:
        lags_before: process id -> `least_lags` when they were last compared; a warm-up whose lag
            does not shrink causes no further probing rebalances.
        lags_at_ms: when that was, epoch milliseconds. Lags are compared again after the probing
            interval: a restore may need so long to begin. 0: not known, they are compared now.
        failures: failures of the strategy.
        stalled: copies whose lag did not shrink.
        claims: which member got and which waits for which task, if this leader also led the
            previous rebalance. They count once the answer has arrived at the leader itself.
        topologies: what the part that follows topology changes remembers; the other steps do not
            use it.
    """

    lags_before: Mapping[str, Mapping[TaskId, int]] = field(default_factory=dict)
    lags_at_ms: int = 0
    failures: StrategyFailures = NO_FAILURES
    stalled: StalledCopies = NONE_STALLED
    claims: ClaimMemory = NO_CLAIMS
    topologies: object = None


NO_MEMORY = LeaderMemory()
