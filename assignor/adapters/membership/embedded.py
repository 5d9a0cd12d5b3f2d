"""A member with its surroundings: cluster facts, a state directory, queries, the group's end.

Between `SharedAssignor`, which is the rebalance, and an adapter, which is the client. What talks to
the cluster or may wait for it runs on a thread of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from assignor.adapters.membership.client import ClientPort
from assignor.adapters.membership.member import SharedAssignor
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from assignor.embedding import (
    AtHand,
    ClusterAccess,
    ClusterWatch,
    InternalTopicSettings,
    KeyHosts,
    Partitioner,
    ProcessDirectory,
    key_hosts,
    lags_or_prior,
    partition_for_key,
)
from assignor.errors import MemberRefused
from assignor.levels import DEFAULT_EVERY_S, LevelSource, LevelWatch, generation_support
from assignor.logs import line_logger
from assignor.placement import Strategy
from assignor.rebalance import (
    GroupMember,
    LeaderKnowledge,
    MemberAnswer,
    Received,
    persistent_version_told,
)
from assignor.topology import Topology
from encoding import AssignorError
from probing import HELD_BACK, protocol_level
from probing.features import (
    PERSISTENT_METADATA,
    UNKNOWN_LEVELS,
    FinalizedLevels,
    LookNumbers,
    decide_look,
)
from probing.persisted_formats import PersistedSettings

_log = line_logger(__name__)

KAFKA_STREAMS_TOPICS = InternalTopicSettings()


class EmbeddedAssignor(SharedAssignor):
    """A member and all that an application needs around it.

    Args:
        topology: what the application processes.
        application_id: prefix of internal topics; normally the group id.
        state_dir: directory for state, locked for this process: its process id outlives restarts,
            and so does the version that the group agreed on.
        process_id: identity of the process, where there is no state directory.
        persistent_metadata_version: in which formats the state directory is written (KIP-384); None
            is `message_format_version`. Once raised and written it cannot go back. A finalized
            level of that name goes before it; where no level is finalized, all members write what
            the leader writes, and never go back.
        message_format_version: the conservative value; not above the other.
        internal_topics: how changelogs and repartition topics are created. They exist, with the
            right partition counts, before a task that needs them is handed out. None: they are
            somebody else's care, and lags are not known.
        strategy: a name, or `(GroupState) -> TaskAssignment`; without one `high_availability`, and
            `fallback_prior` while lags that are looked at cannot be read. Without internal topics
            nobody looks: stateful tasks then stay where they run, with a warning; `sticky` moves
            and restores them.
        level_source: where finalized levels are kept (`GroupLevels`, `ClusterFeature`), looked at
            on a thread; the group's leader rejoins when they change. Without one this member goes
            by what the others know.
        level_poll_s: seconds between two looks, give or take a fifth.
        hold_back: as long as nothing was ever finalized the whole group writes Kafka's newest
            version at most, so that a release that knows no other can still join and lead.
        settings: the others of `SharedAssignor`.

    Attributes:
        shutdown_requested: the whole group was asked to stop (KIP-671): close this member.

    Raises:
        StateDirectoryLocked: another process works in the directory.
        StoreError: the directory cannot be used.
        TopologyError, ConfigError, ReleaseError: what was given cannot be; the message says why.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str,
        state_dir: str | Path | None = None,
        process_id: UUID | None = None,
        persistent_metadata_version: int | None = None,
        message_format_version: int = 1,
        internal_topics: InternalTopicSettings | None = KAFKA_STREAMS_TOPICS,
        strategy: Strategy | str | None = None,
        level_source: LevelSource | None = None,
        level_poll_s: float = DEFAULT_EVERY_S,
        hold_back: bool = False,
        **settings: Any,
    ) -> None:
        persisted = PersistedSettings(
            message_format_version=message_format_version,
            persistent_metadata_version=persistent_metadata_version,
        )
        home = None if state_dir is None else ProcessDirectory(state_dir, persisted)
        self._directory = home
        if home is not None:
            process_id = process_id or home.process_id
        try:
            super().__init__(
                topology,
                application_id=application_id,
                process_id=process_id,
                remembered_version=None if home is None else home.remembered_version,
                levels=HELD_BACK if hold_back else UNKNOWN_LEVELS,
                **(settings if strategy is None else settings | {"strategy": strategy}),
            )
        except BaseException:
            self._leave_directory()
            raise
        self._topology = topology
        self._chooses_strategy = strategy is None
        managed = internal_topics if self._leader.release.is_native else None
        self._watch = ClusterWatch(self._leader.subtopologies, managed)
        self._at_hand: AtHand | None = None
        # As a leader of ours said; a JVM leader does not.
        self._counts: Mapping[str, int] = {}
        self.shutdown_requested = False
        self._leads = self._led_by_jvm = False
        # Something changed that the group's next answer must tell: asked for until the next join.
        self._is_outdated = False
        self._levels: LevelWatch | None = None
        if level_source is not None and self._leader.release.is_native:
            self._levels = LevelWatch(
                level_source,
                on_levels=self._levels_found,
                on_error=self._report,
                every_s=level_poll_s,
            )

    @property
    def levels(self) -> FinalizedLevels:
        """The finalized levels that this member goes by."""
        return self._member.state.levels

    @property
    def directory(self) -> ProcessDirectory | None:
        """The state directory, for the application's own state; None without one."""
        return self._directory

    def hosts_for_key(
        self, store: str, key: bytes, *, partitioner: Partitioner = partition_for_key
    ) -> KeyHosts:
        """Who has the state of a key, as of the last assignment; may be asked from any thread.

        Args:
            store: name of the state store.
            key: serialised, as it is in the store's input topic.
            partitioner: (key, partitions) -> partition, if the topic's is not Kafka's default.

        Raises:
            TopologyError: there is no such store.
            MissingSourceTopic: the partition count of the store's input is not known yet.
        """
        topics = self._topology.store_topics(store, self._application_id)
        counts = {**self._watch.partition_counts(), **self._counts}
        return key_hosts(self.routing, topics, counts, key, partitioner=partitioner)

    def request_shutdown(self) -> None:
        """Have every member of the group stop (KIP-671), this one included.

        The next subscription says so; the leader answers everybody with it, and each member calls
        `TasksListener.on_shutdown_requested`. JVM members stop their application.
        """
        self._error_code = int(AssignorError.SHUTDOWN_REQUESTED)
        self._rejoin_now()

    def close(self) -> None:
        """End threads and timers and give the state directory free; after the consumer's close."""
        super().close()
        if self._levels is not None:
            self._levels.close()
        self._watch.close()
        self._leave_directory()

    # What an adapter calls

    def _watch_cluster(self, connect: Callable[[], ClusterAccess]) -> None:
        """Have the cluster looked at on a thread, which calls `connect`."""
        self._watch.begin(connect, on_ready=self._answer_again, on_error=self._report)
        if self._watch.is_on and self._chooses_strategy:
            self._leader = replace(self._leader, strategy=lags_or_prior)

    def _answer_again(self) -> None:
        """Internal topics came or changed since this leader's answer; called on the thread."""
        self._ask_anew()

    def _ask_anew(self) -> None:
        """Ask for a rebalance; while one runs whose answer is made already, right after it."""
        self._is_outdated = True
        if self._timer is not None:
            self._timer.schedule(0)

    def _levels_found(self, levels: FinalizedLevels) -> None:
        """Newer levels were found; called on the thread. One rebalance tells the whole group."""
        # What this leader has put into an answer that is still on its way, is no news.
        known = self._member.state.known_levels
        look = decide_look(LookNumbers(polled=levels, adopted=known))
        level, used = protocol_level(levels), self._member.state.used_version
        # A JVM leader tells nobody, so whoever writes above the level comes down by itself.
        tells = self._leads or (self._led_by_jvm and level is not None and used > level)
        if look.starts_rebalance and tells:
            _log.info("%s", look.why)
            self._ask_anew()

    # Steps of the shared member

    def _connect(
        self, client: ClientPort, timer: FollowupTimer, group_instance_id: str | None
    ) -> None:
        super()._connect(client, timer, group_instance_id)
        if self._levels is not None:
            self._levels.start()

    def _join(self) -> bytes:
        self._watch.join()
        self._is_outdated = self._leads = False
        if self._levels is not None:
            self._levels.leads(())
        self._take_levels()
        subscription = super()._join()
        refusal = self._member.state.refusal
        if refusal is not None and self._leader.release.is_native:
            raise MemberRefused(refusal.why)
        return subscription

    def _take_levels(self) -> None:
        if self._levels is not None:
            self._member.levels_polled(self._levels.found, leads=False)

    def _partition_counts(self, cluster: Any) -> Mapping[str, int]:
        self._at_hand = self._watch.at_hand(super()._partition_counts(cluster))
        return self._at_hand.partition_counts

    def _knowledge(self, group: Sequence[GroupMember]) -> LeaderKnowledge:
        known = replace(
            super()._knowledge(group),
            levels=self._member.state.known_levels,
            persistent_version=0 if self._directory is None else self._directory.stores.version,
        )
        if self._at_hand is None:
            return known
        return replace(
            known, waits=self._at_hand.waits, end_offset_sums=self._at_hand.end_offset_sums
        )

    def _decide(self, cluster: Any, group: Sequence[GroupMember]) -> Mapping[str, MemberAnswer]:
        self._leads = True
        self._take_levels()
        answers = super()._decide(cluster, group)
        if self._levels is not None:
            self._levels.leads(generation_support(group))
        self._watch.led()
        return answers

    def _follow(self, received: Received, *, used_before: int) -> None:
        super()._follow(received, used_before=used_before)
        if self._is_outdated:  # the answer was made before, and its follow-up replaced the request
            self._ask_anew()
        assignment = received.assignment
        if assignment is None:
            return
        self._led_by_jvm = assignment.native is None
        self._counts = {} if assignment.native is None else assignment.native.partition_counts
        if assignment.error_code == AssignorError.SHUTDOWN_REQUESTED:
            self.shutdown_requested = True
            self._guarded(self._listener.on_shutdown_requested)
        elif not received.failure and self._directory is not None:
            directory = self._directory
            # Written when the version changes only, so that a restart costs no rebalance for it.
            self._guarded(lambda: directory.remember(self._member.state.used_version))
            level = self.levels.level_of(PERSISTENT_METADATA)
            level = level or persistent_version_told(assignment)
            if level > 0:
                self._guarded(lambda: directory.follow(level))

    def _leave_directory(self) -> None:
        if self._directory is not None:
            self._directory.close()
