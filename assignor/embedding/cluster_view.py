"""One member's knowledge of its cluster, which it uses when it leads the group.

Without a Kafka client or without internal topics nothing is queried: no task waits for a topic, and
lags are unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from assignor.embedding.internal_topic_manager import InternalTopicManager
from assignor.embedding.internal_topics import ClusterAccess, InternalTopicSettings
from assignor.embedding.leader_facts import NOTHING_FOUND, LeaderFacts, knowledge_of
from assignor.errors import TaskAssignmentError
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
    """Return the assignment of `high_availability`; of `fallback_prior` if no lag is known.

    This is KIP-441's behaviour for a failed lag request.
    """
    stateful = state.end_offset_sums[state.stateful]
    if len(stateful) and bool((stateful == LAG_UNKNOWN).all()):
        return fallback_prior(state)
    return high_availability(state)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKnowledge:
    """What is known at the moment when the leader has to answer.

    Attributes:
        partition_counts: source topic -> number of partitions.
        waits: subtopology id -> why its tasks are not assigned yet.
        end_offset_sums: stateful task -> end offset sum, for lags; None: not known.
    """

    partition_counts: Mapping[str, int]
    waits: Mapping[int, SubtopologyWaits]
    end_offset_sums: Mapping[TaskId, int] | None


class ClusterWatch:
    """Facts about the cluster for one member; no method but `knowledge` waits for the cluster.

    Args:
        subtopologies: subtopologies of the application.
        settings: how internal topics are created; None: they are neither created nor checked.

    Attributes:
        patience_s: how long `knowledge` may wait for end offsets that replace old ones.
    """

    def __init__(
        self, subtopologies: Sequence[Subtopology], settings: InternalTopicSettings | None
    ) -> None:
        self._subtopologies = self._own = tuple(subtopologies)
        self._settings = settings
        self._provider: InternalTopicManager | None = None
        self._used = NOTHING_FOUND
        self._waits = False
        self.patience_s = 0.0
        self._begin: Callable[[], None] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether the application has internal topics that this member creates and checks."""
        return self._settings is not None and any(
            part.changelog_topics or part.repartition_topics for part in self._subtopologies
        )

    @property
    def is_on(self) -> bool:
        """Whether the background thread has been started."""
        return self._provider is not None

    def begin(
        self,
        connect: Callable[[], ClusterAccess],
        *,
        on_ready: Callable[[], None],
        on_error: Callable[[str], None],
    ) -> None:
        """Start the background thread if it is needed; both callbacks run on that thread.

        It is started later if other members bring subtopologies with internal topics (`know`).
        """
        self._begin = partial(self.begin, connect, on_ready=on_ready, on_error=on_error)
        if self.is_wanted and self._provider is None:
            self._provider = InternalTopicManager(
                connect,
                self._subtopologies,
                settings=self._settings,
                on_ready=on_ready,
                on_error=on_error,
            )
            self._provider.start()

    def join(self) -> None:
        """Request a query because a rebalance begins."""
        if self._provider is not None:
            self._provider.join()

    def know(self, subtopologies: Sequence[Subtopology]) -> None:
        """Read the cluster for these subtopologies: those of other members besides the own ones."""
        if tuple(subtopologies) == self._subtopologies:
            return
        self._subtopologies = tuple(subtopologies)
        if self._provider is not None:
            self._provider.know(self._subtopologies)
        elif self._begin is not None:
            self._begin()

    def knowledge(self, partition_counts: Mapping[str, int]) -> ClusterKnowledge:
        """Return what this leader knows now.

        Args:
            partition_counts: the client's partition counts; a 0 (not known) is filled in if the
                background thread knows the count.

        Raises:
            TaskAssignmentError: the partition counts do not fit the topology.
        """
        if self._provider is None:
            return ClusterKnowledge(
                partition_counts=partition_counts, waits={}, end_offset_sums=None
            )
        self._used = facts = self._provider.facts(patience_s=self.patience_s)
        counts = {t: n or facts.partition_counts.get(t, 0) for t, n in partition_counts.items()}
        try:
            parts, plan = self._subtopologies, plan_tasks(self._subtopologies, counts)
        except TaskAssignmentError:
            # Subtopologies that other members brought do not keep the own ones from running.
            parts, plan = self._own, plan_tasks(self._own, counts)
        known = knowledge_of(facts, parts, plan)
        self._waits = bool(known.waits)
        return ClusterKnowledge(
            partition_counts=counts, waits=known.waits, end_offset_sums=known.end_offset_sums
        )

    def led(self) -> None:
        """Note that this leader has answered the group with the last result of `knowledge`."""
        if self._provider is not None:
            self._provider.lead(self._used, waits=self._waits)

    @property
    def problems(self) -> tuple[str, ...]:
        """What has to be corrected before all tasks run; empty without queries."""
        return () if self._provider is None else self._provider.problems

    def partition_counts(self) -> Mapping[str, int]:
        """Return topic -> number of partitions for queries; empty if the cluster is not queried."""
        if self._provider is None:
            return {}
        facts: LeaderFacts = self._provider.facts()
        try:
            return plan_tasks(self._subtopologies, facts.partition_counts).partition_counts
        except RebalanceError:
            # The leader reports the mismatch; queries use the counts that are known.
            return facts.partition_counts

    def close(self) -> None:
        """Stop the background thread."""
        provider, self._provider, self._begin = self._provider, None, None
        if provider is not None:
            provider.close()
