"""Calls a sans-IO `Member` for a client, an application and resources: one rebalance in order.

A client has its assignor write a subscription for each JoinGroup, decide when it leads, and take an
answer: `Driver.join`, `decide` and `take`. `take` calls the member, then the application, then the
client. `port.py` says who may call what, and what is raised.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from assignor.adapters.membership.followups import RejoinTimer, follow, remember
from assignor.adapters.membership.lasting import LastingWarnings
from assignor.adapters.membership.port import (
    ClientPort,
    ClusterMetadata,
    partition_counts,
)
from assignor.adapters.membership.reports import Reporter, decided
from assignor.embedding import ClusterAccess, ClusterWatch, ProcessDirectory
from assignor.errors import MemberRefused
from assignor.levels import DEFAULT_EVERY_S, LevelSource, LevelWatch, generation_support
from assignor.logs import line_logger
from assignor.observe import AnswerHandled, SubscriptionWritten
from assignor.placement import Strategy
from assignor.rebalance import (
    UNKNOWN_GENERATION,
    GroupAnswer,
    GroupMember,
    LeaderInputs,
    Member,
    MemberAnswer,
    Taken,
)
from encoding import RebalanceError, TaskId, TopicPartition
from probing import rejoin_for_levels
from probing.features import FinalizedLevels
from probing.topologies import Reached

_log = line_logger(__name__)

STREAMS_PROTOCOL: Final = "stream"
"""Name of the assignor in JoinGroup requests, as Kafka Streams' own."""


class Driver:
    """One member of a group, with its application and its resources, for any client.

    Args:
        member: its state and decisions.
        reporter: calls listener, observers and log.
        cluster: partition counts, internal topics and lags, read on a thread.
        level_source: where finalized levels are kept, or None.
        level_poll_s: seconds between two polls of it.
        directory: the state directory, or None.
        strategy: what a leader places by once it reads lags; None: the user chose another one.
        static_name: what the process id of a static member follows from; None: it is given.

    Attributes:
        member, reporter, cluster, directory: as given.
        levels: polls the level source on a thread; None without one.
        port: of the attached consumer; None before `connect`.
        timer: asks for rebalances.
        warnings: of this member as a leader.
        shutdown_requested: the whole group was asked to stop (KIP-671).
    """

    def __init__(
        self,
        member: Member,
        reporter: Reporter,
        cluster: ClusterWatch,
        *,
        level_source: LevelSource | None = None,
        level_poll_s: float = DEFAULT_EVERY_S,
        directory: ProcessDirectory | None = None,
        strategy: Strategy | None = None,
        static_name: str | None = None,
    ) -> None:
        self.member, self.reporter, self.cluster = member, reporter, cluster
        self.directory, self._strategy, self._static_name = directory, strategy, static_name
        self.levels: LevelWatch | None = None
        if level_source is not None:
            self.levels = LevelWatch(
                level_source,
                on_levels=self.levels_found,
                on_reached=self.reached_found,
                on_error=reporter.report,
                every_s=level_poll_s,
            )
        self.port: ClientPort | None = None
        self.timer = RejoinTimer(reporter.report)
        self.warnings = LastingWarnings(reporter.report)
        self.shutdown_requested = self._is_loss_logged = False
        # The assignor that the group uses instead, once logged; why the next answer was replaced.
        self._other = self._replaced = ""

    def connect(self, port: ClientPort) -> None:
        """Use a client from now on, and begin to poll levels.

        Raises:
            ConfigError: Kafka refuses the client's instance id.
        """
        is_first, self.port, self.timer.port = self.port is None, port, port
        if instance_id := port.group_instance_id():
            identity = self.member.identity
            self.member.identity = identity.as_static(instance_id, application_id=self._static_name)
        self.reporter.check_offsets(self.member.leader)
        if self.levels is not None and is_first:
            self.levels.start()

    def watch_cluster(self, connect: Callable[[], ClusterAccess]) -> None:
        """Read the cluster on a thread, which calls `connect`; place by lags from then on."""
        on_ready, on_error = self.timer.request_new_answer, self.reporter.report
        self.cluster.begin(connect, on_ready=on_ready, on_error=on_error)
        if self.cluster.is_on and self._strategy is not None:
            self.member.leader = replace(self.member.leader, strategy=self._strategy)

    def levels_found(self, levels: FinalizedLevels) -> None:
        """Ask for a rebalance if newer levels need one; called on the thread that polls."""
        member = self.member
        rejoin = rejoin_for_levels(
            member.state, levels, leads=member.leads, is_led_by_jvm=member.is_led_by_jvm
        )
        if rejoin is not None:
            _log.info("%s", rejoin.why)
            self.timer.request_new_answer()

    def reached_found(self, memory: Mapping[bytes, Reached]) -> None:
        """Ask for a rebalance if newer reached versions need one; as `levels_found`."""
        member = self.member
        if ignored := member.topology.why_ignored(memory):
            self.reporter.report(ignored)
        if member.leads and member.topology.is_news(memory, member.known_subtopologies):
            _log.info("reached versions of the topology are newer: this leader tells the group")
            self.timer.request_new_answer()

    def request_shutdown(self) -> None:
        """Ask every member of the group to stop (KIP-671), this one included."""
        self.member.request_shutdown()
        self.timer.request_rejoin()

    def close(self) -> None:
        """End threads and timers and release the state directory."""
        for part in (self.warnings, self.timer, self.levels, self.cluster, self.directory):
            if part is not None:
                part.close()

    # Joining

    def join(self) -> bytes:
        """Return the subscription for the next JoinGroup; `member.owned` is what it names as owned.

        Raises:
            MemberRefused: this member cannot go by the group's levels, or its subscription cannot
                be written; it does not join. A member with the rules of a Kafka release repeats
                its last subscription instead, with the same owned partitions.
        """
        self.cluster.join()
        self.timer.begin_join()
        self.warnings.begin_join()
        self.member.begin_join()
        self._take_levels()
        self.reporter.guarded(lambda: self._give_up(is_lost=self._is_lost))
        before = self.member.last_bytes
        self.reporter.guarded(self._write_subscription)
        if self.member.is_native:
            refusal = self.member.state.refusal
            if refusal is not None:
                raise MemberRefused(refusal.why)
            if self.member.last_bytes == before:  # two in a row are never equal
                why = self.reporter.failures[-1]
                raise MemberRefused(f"no join: the subscription cannot be written: {why}")
        return self.member.last_bytes

    def _take_levels(self) -> None:
        """Take in what polls found; no minimum is raised until the group is decided about."""
        if self.levels is not None:
            self.levels.leads(())
            self.member.levels_polled(self.levels.found)
            self.member.topology.adopt(self.levels.reached)

    def has_left(self, *, is_leaving: bool = False) -> bool:
        """Return whether this member leaves or is in no generation, to a caller that logs why."""
        self._is_loss_logged = is_leaving or self._is_lost
        return self._is_loss_logged

    @property
    def _is_lost(self) -> bool:
        return self.port is not None and self.port.generation() == UNKNOWN_GENERATION

    def _give_up(self, *, is_lost: bool) -> None:
        tasks, is_logged = self.member.give_up(is_lost=is_lost), self._is_loss_logged
        if tasks is not None:
            self.reporter.report_given_up(tasks, is_lost=is_lost, is_logged=is_logged)
        self._is_loss_logged = False

    def _write_subscription(self) -> None:
        sums: dict[TaskId, int] = {}
        restoring: set[TaskId] = set()
        listener = self.reporter.listener
        self.reporter.guarded(lambda: sums.update(listener.task_offsets()))
        self.reporter.guarded(lambda: restoring.update(listener.restoring_tasks()))
        owned: Iterable[TopicPartition] = ()
        if self.port is not None and self.member.is_cooperative:
            owned = sorted(self.port.owned_partitions())
        try:
            value, data = self.member.subscription(
                sums, restoring=restoring, owned_partitions=owned
            )
        except RebalanceError as error:
            self.reporter.fail(str(error))
            return
        self.reporter.observe(
            SubscriptionWritten(
                version=value.version,
                latest_supported_version=value.latest_supported_version,
                size=len(data),
            )
        )

    def assignor_chosen(self, protocol: str) -> None:
        """Give up all tasks if the group chose another assignor, which the log says once.

        Args:
            protocol: name of the assignor that was chosen.
        """
        if protocol == STREAMS_PROTOCOL:
            return
        if protocol != self._other:
            self._other = protocol
            _log.warning(
                "the group uses assignor %s: no task runs here until every member lists %s first",
                protocol,
                STREAMS_PROTOCOL,
            )
        self.reporter.guarded(partial(self._give_up, is_lost=True))

    # Leading

    def decide(
        self, cluster: ClusterMetadata, group: Sequence[GroupMember]
    ) -> Mapping[str, MemberAnswer]:
        """Return the leader's answers to all members, by member id.

        Args:
            cluster: topics as the client knows them.
            group: every member of the generation, with its bytes.

        Raises:
            LeaderRefused: the emulated release ends with the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        self.member.begin_lead()
        self._take_levels()
        began_s = time.perf_counter()
        with self.reporter.leading():
            known = self.member.known_subtopologies
            answer = self._decide_now(cluster, group)
            self.cluster.know(self.member.known_subtopologies)
            if self.member.known_subtopologies != known:
                # Members have brought subtopologies whose topics were not looked at yet.
                answer = self._decide_now(cluster, group)
        for fault in answer.faults:
            self.reporter.report(fault)
        self.reporter.report_waits(answer.waiting)
        self.reporter.observe(decided(answer, seconds=time.perf_counter() - began_s))
        reported = self.cluster.problems
        self.warnings.decided(
            [each for each in answer.warnings if not each.endswith(reported)],
            answer.transient,
            None if self.port is None else self.port.start_timer,
            missing_topics=answer.missing_topics,
        )
        if self.levels is not None:
            self.levels.leads(generation_support(group))
        self.cluster.led()
        return answer.answers

    def _decide_now(self, cluster: ClusterMetadata, group: Sequence[GroupMember]) -> GroupAnswer:
        topics = {t for part in self.member.known_subtopologies for t in part.source_topics}
        known, port = self.cluster.knowledge(partition_counts(cluster, topics)), self.port
        inputs = LeaderInputs(
            end_offset_sums=known.end_offset_sums,
            waits=known.waits,
            generation=UNKNOWN_GENERATION if port is None else port.generation(),
            leader_id=(None if port is None else port.member_id()) or None,
            now_ms=_now_ms(),
        )
        version = 0 if self.directory is None else self.directory.stores.version
        return self.member.decide(group, known.partition_counts, inputs, persistent_version=version)

    # After an answer

    def answer_replaced(self, why: str) -> None:
        """Note why the client cannot take the next answer and takes an empty one; "": it can.

        The reason is reported in place of the failure of the empty answer.
        """
        self._replaced = why

    def take(
        self, partitions: Iterable[tuple[str, int]], user_data: bytes | None, generation: int
    ) -> None:
        """Take the leader's answer: call the listener, then observers, then follow it.

        Nothing is raised but what a callback may raise (port.py). An answer that cannot be taken,
        however it fails, leaves no tasks and is asked for again after a back-off.

        Args:
            partitions: what the consumer protocol assigned, as (topic, partition).
            user_data: the assignment.
            generation: the generation of the rebalance.
        """
        self._other = ""
        taken = self.member.take(partitions, user_data, generation=generation, now_ms=_now_ms())
        guarded, listener = self.reporter.guarded, self.reporter.listener
        call, revoked, held = self.reporter.call_listener, taken.revoked, taken.held
        if revoked.active or revoked.standby:
            call(listener.on_tasks_revoked, revoked.active, revoked.standby)
        call(listener.on_tasks_assigned, held.active, held.standby)
        parts, stopped = self.member.leader.subtopologies, self.cluster.problems
        size = len(user_data or b"")
        guarded(lambda: self.reporter.observe_taken(taken, parts, size=size, stopped=stopped))
        guarded(lambda: self._follow(taken))
        self.reporter.observe(AnswerHandled(generation=generation))

    def _follow(self, taken: Taken) -> None:
        """Do what the answer asks for, then keep what outlives this process."""
        replaced, self._replaced = self._replaced, ""
        steps = self.member.steps(taken, now_ms=time.time() * 1000)
        follow(taken, steps, replaced, self.timer, self.reporter)
        if taken.asks_for_shutdown:
            self.shutdown_requested = True
            self.reporter.guarded(self.reporter.listener.on_shutdown_requested)
        elif taken.received.assignment is not None and not taken.received.failure:
            if self.member.leads and self.levels is not None:
                self.levels.keep(self.member.topology.reached)
            if self.directory is not None:
                remember(taken, self.member, self.directory, self.reporter)


def _now_ms() -> int:
    return int(time.time() * 1000)
