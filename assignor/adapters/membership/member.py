"""One member of a group, independent of its client: the order and the steps of a rebalance.

A client has its assignor write a subscription for each JoinGroup, decide when it leads, and take an
answer: `Membership.join`, `decide` and `take`. `take` calls the membership core, then the
application, then the client. Nothing is raised into a client but from `join` by a refused member
and from `decide`, where no valid answer exists: then nothing must be sent.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from assignor.adapters.membership.client import (
    UNKNOWN_GENERATION,
    ClientPort,
    ClusterMetadata,
    partition_counts,
)
from assignor.adapters.membership.core import GivenUp, MembershipCore, Taken
from assignor.adapters.membership.followups import Followups
from assignor.adapters.membership.lasting import LastingWarnings
from assignor.adapters.membership.reports import Reporter, decided
from assignor.adapters.membership.resources import Resources
from assignor.embedding import ClusterAccess
from assignor.errors import LeaderRefused, MemberRefused, TaskAssignmentError
from assignor.logs import line_logger
from assignor.observe import AnswerHandled, AssignmentFailed, MembershipLost, SubscriptionWritten
from assignor.rebalance import GroupAnswer, GroupMember, MemberAnswer, answered_persistent_version
from encoding import RebalanceError, TaskId, TopicPartition, shown, task_order
from probing.features import PERSISTENT_METADATA, FinalizedLevels
from probing.topologies import Reached

_log = line_logger(__name__)

STREAMS_PROTOCOL: Final = "stream"
"""Name of the assignor in JoinGroup requests, as Kafka Streams' own."""


class Membership:
    """The membership core with a client, an application and resources around it.

    Args:
        core: state and decisions of the member.
        reporter: calls listener, observers and log.
        resources: cluster facts, levels, state directory.

    Attributes:
        core: as given.
        reporter: as given.
        resources: as given.
        followups: rejoins, through the attached client.
        shutdown_requested: the whole group was asked to stop (KIP-671).
    """

    def __init__(self, core: MembershipCore, reporter: Reporter, resources: Resources) -> None:
        self.core = core
        self.reporter = reporter
        self.resources = resources
        self.followups = Followups(reporter)
        self.shutdown_requested = self._is_loss_logged = False
        self.warnings = LastingWarnings(self.reporter.report)
        # The assignor that the group uses instead, once the log has said so.
        self._other = ""

    def connect(self, client: ClientPort) -> None:
        """Use a client from now on, and begin to poll levels.

        Raises:
            ConfigError: Kafka refuses the client's instance id.
        """
        self.followups.connect(client)
        instance_id = client.group_instance_id()
        if instance_id:
            self.core.become_static(instance_id)
        self.reporter.check_offsets(self.core.leader_settings)
        self.resources.levels.start(self.levels_found, self.reached_found, self.reporter.report)

    def watch_cluster(self, connect: Callable[[], ClusterAccess]) -> None:
        """Read the cluster on a thread, which calls `connect`; place by lags from then on."""
        cluster = self.resources.cluster
        cluster.begin(
            connect,
            on_ready=self.followups.request_new_answer,
            on_error=self.reporter.report,
        )
        if cluster.is_on:
            self.core.follow_lags()

    def levels_found(self, levels: FinalizedLevels) -> None:
        """Ask for a rebalance if newer levels need one; called on the thread that polls."""
        why = self.core.why_rejoin_for(levels)
        if why:
            _log.info("%s", why)
            self.followups.request_new_answer()

    def reached_found(self, memory: Mapping[bytes, Reached]) -> None:
        """Ask for a rebalance if newer reached versions need one; as `levels_found`."""
        core = self.core
        ignored = core.member.topology.why_ignored(memory)
        if ignored:
            self.reporter.report(ignored)
        if core.leads and core.member.topology.is_news(memory, core.known_subtopologies):
            _log.info("reached versions of the topology are newer: this leader tells the group")
            self.followups.request_new_answer()

    def request_shutdown(self) -> None:
        """Have every member of the group stop (KIP-671), this one included."""
        self.core.request_shutdown()
        self.followups.request_rejoin()

    def close(self) -> None:
        """End threads and timers and release the state directory."""
        self.warnings.close()
        self.followups.close()
        self.resources.close()

    # Joining

    def join(self) -> bytes:
        """Return the subscription for the next JoinGroup; `core.owned` is what it names as owned.

        Raises:
            MemberRefused: this member cannot go by the group's levels, or its subscription cannot
                be written; it does not join. A member with the rules of a Kafka release repeats
                its last subscription instead, with the same owned partitions.
        """
        self.resources.cluster.join()
        self.followups.begin_join()
        self.warnings.begin_join()
        self.resources.levels.stop_leading()
        self.core.begin_join()
        self._poll_levels()
        self.reporter.guarded(self._give_up)
        before = self.core.last_bytes
        self.reporter.guarded(self._write_subscription)
        if self.core.is_native:
            if self.core.refusal is not None:
                raise MemberRefused(self.core.refusal.why)
            if self.core.last_bytes == before:  # two in a row are never equal
                why = self.reporter.failures[-1]
                raise MemberRefused(f"no join: the subscription cannot be written: {why}")
        return self.core.last_bytes

    def _poll_levels(self) -> None:
        if self.resources.levels.is_on:
            self.core.member.levels_polled(self.resources.levels.found)
            self.core.member.topology.adopt(self.resources.levels.reached)

    def has_left(self, *, is_leaving: bool = False) -> bool:
        """Return whether this member leaves or is in no generation, to a caller that logs why."""
        client = self.followups.client
        is_lost = client is not None and client.has_lost_membership()
        self._is_loss_logged = is_leaving or is_lost
        return self._is_loss_logged

    def _give_up(self) -> None:
        client = self.followups.client
        given_up = self.core.give_up(is_lost=client is not None and client.has_lost_membership())
        if given_up is not None:
            self._report_given_up(given_up)
        self._is_loss_logged = False

    def _report_given_up(self, given_up: GivenUp) -> None:
        listener, tasks = self.reporter.listener, given_up.tasks
        revoke = listener.on_tasks_revoked
        if given_up.is_lost:
            lost, why = tuple(sorted(tasks.active, key=task_order)), self._is_loss_logged
            self.reporter.observe(MembershipLost(active_tasks=lost, is_logged=why))
            revoke = listener.on_tasks_lost
        self.reporter.call_listener(revoke, tasks.active, tasks.standby)

    def _write_subscription(self) -> None:
        sums: dict[TaskId, int] = {}
        restoring: set[TaskId] = set()
        listener = self.reporter.listener
        self.reporter.guarded(lambda: sums.update(listener.task_offsets()))
        self.reporter.guarded(lambda: restoring.update(listener.restoring_tasks()))
        client = self.followups.client
        owned: Iterable[TopicPartition] = ()
        if client is not None and self.core.is_cooperative:
            owned = client.owned_partitions()
        try:
            value = self.core.write_subscription(sums, owned, restoring)
        except RebalanceError as error:
            self.reporter.fail(str(error))
            return
        self.reporter.observe(
            SubscriptionWritten(
                version=value.version,
                latest_supported_version=value.latest_supported_version,
                size=len(self.core.last_bytes),
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
        given_up = self.core.give_up(is_lost=True)
        if given_up is not None:
            self.reporter.guarded(partial(self._report_given_up, given_up))

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
        self.core.begin_lead()
        self._poll_levels()
        began_s = time.perf_counter()
        answer = self._decide_or_report(cluster, group)
        for fault in answer.faults:
            self.reporter.report(fault)
        self.reporter.report_waits(answer.waiting)
        self.reporter.observe(decided(answer, seconds=time.perf_counter() - began_s))
        client, reported = self.followups.client, self.resources.cluster.problems
        self.warnings.decided(
            [each for each in answer.warnings if not each.endswith(reported)],
            answer.transient,
            None if client is None else client.start_timer,
            missing_topics=answer.missing_topics,
        )
        self.resources.levels.lead(group)
        self.resources.cluster.led()
        return answer.answers

    def _decide_or_report(
        self, cluster: ClusterMetadata, group: Sequence[GroupMember]
    ) -> GroupAnswer:
        try:
            known = self.core.known_subtopologies
            answer = self._decide_now(cluster, group)
            self.resources.cluster.know(self.core.known_subtopologies)
            # Members may have brought subtopologies whose topics were not looked at yet.
            is_complete = self.core.known_subtopologies == known
            return answer if is_complete else self._decide_now(cluster, group)
        except LeaderRefused as error:
            self.reporter.fail(str(error))
            raise
        except RebalanceError as error:
            self._report_no_answer(str(error))
            raise
        except MemoryError:
            raise
        except Exception as error:
            # A defect of a client, a strategy or a resource: reported as any failure of a leader.
            why = (
                f"the leader failed, {type(error).__name__}: {shown(error)}; the group joins again"
            )
            self._report_no_answer(why)
            raise TaskAssignmentError(why) from error

    def _decide_now(self, cluster: ClusterMetadata, group: Sequence[GroupMember]) -> GroupAnswer:
        client, directory = self.followups.client, self.resources.directory
        topics = {t for part in self.core.known_subtopologies for t in part.source_topics}
        return self.core.decide(
            group,
            self.resources.cluster.knowledge(partition_counts(cluster, topics)),
            persistent_version=0 if directory is None else directory.stores.version,
            generation=UNKNOWN_GENERATION if client is None else client.generation(),
            leader_id="" if client is None else client.member_id(),
            now_ms=_now_ms(),
        )

    def _report_no_answer(self, why: str) -> None:
        self.reporter.observe(AssignmentFailed(why=why))
        self.reporter.report(why)

    # After an answer

    def take(
        self, partitions: Iterable[tuple[str, int]], user_data: bytes | None, generation: int
    ) -> None:
        """Take the leader's answer: call the listener, then observers, then follow it.

        Nothing is raised but KeyboardInterrupt, GeneratorExit and MemoryError. An answer that
        cannot be taken, however it fails, leaves no tasks and is asked for again after a back-off.

        Args:
            partitions: what the consumer protocol assigned, as (topic, partition).
            user_data: the assignment.
            generation: of the rebalance.
        """
        self._other = ""
        taken = self.core.take(partitions, user_data, generation=generation, now_ms=_now_ms())
        guarded, listener = self.reporter.guarded, self.reporter.listener
        call, revoked, held = self.reporter.call_listener, taken.revoked, taken.held
        if revoked.active or revoked.standby:
            call(listener.on_tasks_revoked, revoked.active, revoked.standby)
        call(listener.on_tasks_assigned, held.active, held.standby)
        parts, stopped = self.core.leader_settings.subtopologies, self.resources.cluster.problems
        size = len(user_data or b"")
        guarded(lambda: self.reporter.observe_taken(taken, parts, size=size, stopped=stopped))
        guarded(lambda: self._follow(taken))
        self.reporter.observe(AnswerHandled(generation=generation))

    def _follow(self, taken: Taken) -> None:
        """Do what the answer asks for, each step whatever became of the one before."""
        for step in self.core.steps(taken, now_ms=time.time() * 1000):
            self.reporter.guarded(partial(self.followups.carry_out, step, taken))
        self.followups.answered()
        if taken.asks_for_shutdown:
            self.shutdown_requested = True
            self.reporter.guarded(self.reporter.listener.on_shutdown_requested)
        else:
            self._remember(taken)

    def _remember(self, taken: Taken) -> None:
        """Keep version, reached versions and format in the directory; a leader also in levels."""
        assignment, directory = taken.received.assignment, self.resources.directory
        if assignment is None or taken.received.failure:
            return
        reached = self.core.member.topology.reached
        if self.core.leads:
            self.resources.levels.keep(reached)
        if directory is None:
            return
        # Written only when the version changes; a restart then needs no rebalance for it.
        self.reporter.guarded(lambda: directory.remember(taken.used_after))
        self.reporter.guarded(lambda: directory.remember_reached(reached))
        level = self.core.levels.level_of(PERSISTENT_METADATA)
        level = level or answered_persistent_version(assignment)
        if level > 0:
            self.reporter.guarded(lambda: directory.follow(level))


def _now_ms() -> int:
    return int(time.time() * 1000)
