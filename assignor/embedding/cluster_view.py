"""One member's view of its cluster: what the leader takes into account, and when it looks again.

Without a client to ask, or without internal topics, there is nothing to watch: then nothing waits,
and lags are unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assignor.embedding.cluster_thread import LeaderProvider
from assignor.embedding.internal_topics import ClusterAccess, InternalTopicSettings
from assignor.embedding.leader_facts import NOTHING_FOUND, LeaderFacts, knowledge_of
from assignor.placement import (
    LAG_UNKNOWN,
    GroupState,
    TaskAssignment,
    fallback_prior,
    high_availability,
)
from assignor.topology import Subtopology, SubtopologyWaits, plan_tasks
from encoding import RebalanceError, TaskId


def lags_or_prior(state: GroupState) -> TaskAssignment:
    """`high_availability` while lags are known, else `fallback_prior`, as KIP-441 has it."""
    stateful = state.end_offset_sums[state.stateful]
    if len(stateful) and bool((stateful == LAG_UNKNOWN).all()):
        return fallback_prior(state)
    return high_availability(state)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHand:
    """What is known when the leader has to answer.

    Attributes:
        partition_counts: source topic -> partitions.
        waits: subtopologies that get no tasks yet.
        end_offset_sums: for lags; None: unknown.
    """

    partition_counts: Mapping[str, int]
    waits: Mapping[int, SubtopologyWaits]
    end_offset_sums: Mapping[TaskId, int] | None


class ClusterWatch:
    """Facts about the cluster for one member; every method returns at once.

    Args:
        subtopologies: of the application.
        settings: how internal topics are created; None: somebody else creates and watches them.
    """

    def __init__(
        self, subtopologies: Sequence[Subtopology], settings: InternalTopicSettings | None
    ) -> None:
        self._subtopologies = tuple(subtopologies)
        self._settings = settings
        self._provider: LeaderProvider | None = None
        self._used = NOTHING_FOUND
        self._waits = False

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to watch."""
        return self._settings is not None and any(
            part.changelog_topics or part.repartition_topics for part in self._subtopologies
        )

    @property
    def is_on(self) -> bool:
        """Whether the cluster is asked."""
        return self._provider is not None

    def begin(
        self,
        connect: Callable[[], ClusterAccess],
        *,
        on_ready: Callable[[], None],
        on_error: Callable[[str], None],
    ) -> None:
        """Start to watch, on a thread of its own; both functions are called there."""
        if self.is_wanted and self._provider is None:
            self._provider = LeaderProvider(
                connect,
                self._subtopologies,
                settings=self._settings,
                on_ready=on_ready,
                on_error=on_error,
            )
            self._provider.start()

    def join(self) -> None:
        """A rebalance begins."""
        if self._provider is not None:
            self._provider.join()

    def at_hand(self, partition_counts: Mapping[str, int]) -> AtHand:
        """What this leader knows now.

        Args:
            partition_counts: as the client has them; 0 where it knows none, which is filled in.

        Raises:
            TaskAssignmentError: the topology does not fit the partition counts.
        """
        if self._provider is None:
            return AtHand(partition_counts=partition_counts, waits={}, end_offset_sums=None)
        self._used = facts = self._provider.facts()
        counts = {t: n or facts.partition_counts.get(t, 0) for t, n in partition_counts.items()}
        plan = plan_tasks(self._subtopologies, counts)
        known = knowledge_of(facts, self._subtopologies, plan)
        self._waits = bool(known.waits)
        return AtHand(
            partition_counts=counts, waits=known.waits, end_offset_sums=known.end_offset_sums
        )

    def led(self) -> None:
        """The group is answered by what was at hand."""
        if self._provider is not None:
            self._provider.lead(self._used, waits=self._waits)

    def partition_counts(self) -> Mapping[str, int]:
        """Of all topics of the topology that are known, for queries; empty without a watch."""
        if self._provider is None:
            return {}
        facts: LeaderFacts = self._provider.facts()
        try:
            return plan_tasks(self._subtopologies, facts.partition_counts).partition_counts
        except RebalanceError:
            # The leader reports what does not fit; a query has to do with what is there.
            return facts.partition_counts

    def close(self) -> None:
        """Stop watching."""
        provider, self._provider = self._provider, None
        if provider is not None:
            provider.close()
