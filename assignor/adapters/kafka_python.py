"""The assignor inside a kafka-python (3.0 or newer) consumer.

kafka-python calls `metadata`, `assign` and `on_assignment` on the consumer's io thread. Nothing
here blocks it, and nothing is raised from `metadata` and `on_assignment`: what goes wrong becomes a
`failure`. `assign` raises in one case, when no valid answer exists: then nothing must be sent.

Poll with a timeout of a second or more: kafka-python 3.0 throws a join away that ends between two
calls of `poll`.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal
from uuid import UUID, uuid4

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor.adapters.followup import FollowupTimer
from assignor.adapters.kafka_wire import decided, group_member, to_wire
from assignor.attempts import NO_FAILURES
from assignor.config import config_from_mapping
from assignor.errors import LeaderRefused
from assignor.held import TasksHeld
from assignor.leader import LeaderSettings, assign_group
from assignor.listener import TasksListener
from assignor.member import MemberIdentity, Received, StreamsMember
from assignor.observer import (
    AssignmentTaken,
    MemberFailed,
    Observation,
    Observer,
    RejoinRequested,
    SubscriptionWritten,
)
from assignor.placing import LeaderKnowledge
from assignor.routing import Routing
from assignor.state import Strategy
from assignor.sticky import sticky
from assignor.subscriptions import GroupMember
from assignor.topology import Topology
from encoding import RebalanceError, TaskId, TopicPartition
from probing import ClearSchedule, RejoinNow, ReportError, ScheduleRebalance, find_release

_log = logging.getLogger(__name__)

# Wait before asking again after an answer that could not be read: doubled up to a minute.
_FIRST_BACKOFF_MS = 1_000
_LAST_BACKOFF_MS = 60_000
# kafka-python's generation of a member that fell out of the group.
_NO_GENERATION = -1
_KEPT_FAILURES = 20


class StreamsAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # kafka-python is untyped
    """A Kafka Streams style assignor for one `KafkaConsumer`; one instance per consumer.

    Args:
        topology: what the application processes.
        application_id: prefix of internal topics; normally the group id.
        process_id: identity of the process; random when not given. Give the same one after a
            restart and to all consumers of a process, so that its tasks come back.
        upgrade_from: as Kafka Streams' `upgrade.from`.
        start_version: "latest" writes the latest native version at once (KIP-268's optimistic
            start); the default starts at a version that every modern JVM leader reads.
        endpoint: `host:port` where this member answers interactive queries.
        client_tags: KIP-708 tags.
        rack: the consumer's `client_rack`.
        listener: told about tasks; see `assignor.TasksListener`.
        strategy: `(GroupState) -> TaskAssignment`.
        observer: told about every step of a rebalance; see `assignor.observer`.
        release: whose versions and rules to follow; `native` unless a test emulates another.
        settings: `num_standby_replicas=1` and others of `assignor.AssignmentConfig`.

    Raises:
        TopologyError, ConfigError, ReleaseError: what was given cannot be; the message says why.
    """

    name = "stream"

    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str,
        process_id: UUID | None = None,
        upgrade_from: str | None = None,
        start_version: Literal["latest"] | None = None,
        endpoint: str | None = None,
        client_tags: Mapping[str, str] | None = None,
        rack: str | None = None,
        listener: TasksListener | None = None,
        strategy: Strategy = sticky,
        observer: Observer | None = None,
        release: str = "native",
        **settings: Any,
    ) -> None:
        self._leader = LeaderSettings(
            release=find_release(release),
            subtopologies=topology.subtopologies(application_id),
            config=config_from_mapping(settings),
            strategy=strategy,
        )
        identity = MemberIdentity(
            process_id=process_id or uuid4(),
            user_endpoint=endpoint,
            rack=rack,
            client_tags=dict(client_tags or {}),
        )
        self._member = StreamsMember(
            self._leader.release,
            identity,
            subtopologies=self._leader.subtopologies,
            upgrade_from=upgrade_from,
            start_version=start_version,
        )
        self._listener = listener or TasksListener()
        self._observer = observer
        self._told = TasksHeld()
        self._coordinator: Any = None
        self._timer: FollowupTimer | None = None
        self._backoff_ms = _FIRST_BACKOFF_MS
        self._last_bytes = b""
        self._lags: Mapping[str, Mapping[TaskId, int]] = {}
        self._failures = NO_FAILURES
        self.failed: str | None = None
        self.failures: list[str] = []

    @property
    def tasks(self) -> TasksHeld:
        """Active and standby tasks of the last assignment."""
        return self._member.held

    @property
    def routing(self) -> Routing:
        """Partitions by the host that serves them, as of the last assignment."""
        return self._member.routing

    def attach(self, consumer: Any) -> None:
        """Connect to the consumer that this instance was given to, for rejoins and follow-ups.

        Raises:
            TypeError: this is no kafka-python 3 consumer with a group id.
        """
        coordinator: Any = getattr(consumer, "_coordinator", None)
        if not callable(getattr(coordinator, "request_rejoin", None)):
            raise TypeError(
                f"{type(consumer).__name__} has no group coordinator; attach a kafka-python 3 "
                "KafkaConsumer that was made with a group_id"
            )
        self._coordinator = coordinator
        self._timer = FollowupTimer(coordinator.request_rejoin, coordinator.rebalance_in_progress)

    def close(self) -> None:
        """Drop pending follow-ups; call it when the consumer is closed."""
        if self._timer is not None:
            self._timer.close()

    # What kafka-python calls

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Eager: everything is revoked before each rebalance."""
        return [RebalanceProtocol.EAGER]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """The subscription for the next JoinGroup; never raises."""
        self._guarded(self._revoke)
        self._guarded(self._write_subscription)
        return ConsumerProtocolSubscription(
            version=1, topics=sorted(topics), user_data=self._last_bytes, owned_partitions=[]
        )

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """The leader's answers to all members.

        Raises:
            LeaderRefused: the emulated release dies of the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        group = [group_member(member) for member in members]
        topics = {t for s in self._leader.subtopologies for t in s.source_topics}
        counts = {t: len(cluster.partitions_for_topic(t) or ()) for t in sorted(topics)}
        try:
            answer = assign_group(
                self._leader,
                group,
                counts,
                knowledge=self._knowledge(group),
                held_view=self._member.view,
            )
        except LeaderRefused as error:
            self._fail(str(error))
            raise
        except RebalanceError as error:
            self._report(str(error))
            raise
        self._lags, self._failures = answer.lags, answer.failures
        self._observe(decided(answer))
        for warning in answer.warnings:
            _log.warning("%s", warning)
        return {member: to_wire(one) for member, one in answer.answers.items()}

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take the answer of the leader; never raises."""
        self._guarded(lambda: self._receive(assignment, generation))

    # Steps

    def _knowledge(self, group: list[GroupMember]) -> LeaderKnowledge:
        """What is left of the last time that this member led, and which of the group it is."""
        mine = [one.member_id for one in group if one.user_data == self._last_bytes]
        return LeaderKnowledge(
            lags_before=self._lags,
            failures=self._failures,
            leader_id=mine[0] if mine else None,
            now_ms=int(time.time() * 1000),
        )

    def _revoke(self) -> None:
        told, self._told = self._told, TasksHeld()
        if self._coordinator is not None:
            known = getattr(self._coordinator, "_generation", None)
            if getattr(known, "generation_id", 0) == _NO_GENERATION:
                self._member.forget_tasks()
        if told.active or told.standby:
            self._listener.on_tasks_revoked(told.active, told.standby)

    def _write_subscription(self) -> None:
        sums: dict[TaskId, int] = {}
        self._guarded(lambda: sums.update(self._listener.task_offsets()))
        try:
            value, data = self._member.subscription(sums)
        except RebalanceError as error:
            self._fail(str(error))
            return
        self._last_bytes = data
        self._observe(
            SubscriptionWritten(
                version=value.version,
                latest_supported_version=value.latest_supported_version,
                size=len(data),
            )
        )

    def _receive(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        partitions = tuple(TopicPartition(p.topic, p.partition) for p in assignment.partitions())
        used_before = self._member.state.used_version
        received = self._member.receive(
            partitions, bytes(assignment.user_data or b""), now_ms=int(time.time() * 1000)
        )
        if received.assignment is not None:
            self._observe(
                AssignmentTaken(
                    generation=generation,
                    version=received.assignment.version,
                    commonly_supported_version=received.assignment.commonly_supported_version,
                    active_tasks=tuple(sorted(self._member.held.active)),
                    standby_tasks=tuple(sorted(self._member.held.standby)),
                    error_code=received.assignment.error_code,
                    next_version=self._member.state.used_version,
                )
            )
        self._follow(received, used_before=used_before)
        self._told = self._member.held
        self._listener.on_tasks_assigned(self._told.active, self._told.standby)

    def _follow(self, received: Received, *, used_before: int) -> None:
        """Do what probing asks for."""
        for command in received.commands:
            match command:
                case RejoinNow():
                    self._observe(
                        RejoinRequested(
                            rule=command.rule,
                            why=command.why,
                            used_version_before=used_before,
                            used_version_after=self._member.state.used_version,
                            for_version=received.for_version,
                        )
                    )
                    self._rejoin_now()
                case ScheduleRebalance() if self._timer is not None:
                    self._timer.schedule(command.at_ms - time.time() * 1000)
                case ClearSchedule() if self._timer is not None:
                    self._timer.clear()
                case ReportError():
                    self._report(command.why)
                case _:
                    pass
        if received.failure:
            self._lead_astray(received.failure)
        else:
            self._backoff_ms = _FIRST_BACKOFF_MS

    def _lead_astray(self, why: str) -> None:
        """The answer could not be followed: an emulated release dies of it, ours asks again."""
        if not self._leader.release.is_native:
            self._fail(why)
            return
        self._report(why)
        if self._timer is not None:
            self._timer.schedule(self._backoff_ms)
        self._backoff_ms = min(2 * self._backoff_ms, _LAST_BACKOFF_MS)

    def _rejoin_now(self) -> None:
        if self._coordinator is None:
            self._report("a rejoin is due, but attach(consumer) was never called; call it")
            return
        self._coordinator.request_rejoin()

    def _fail(self, why: str) -> None:
        self.failed = why
        self._observe(MemberFailed(why=why))
        self._report(why)

    def _report(self, why: str) -> None:
        _log.error("%s", why)
        self.failures = [*self.failures[1 - _KEPT_FAILURES :], why]
        self._guarded(lambda: self._listener.on_error(why))

    def _observe(self, observation: Observation) -> None:
        if self._observer is not None:
            observer = self._observer
            self._guarded(lambda: observer(observation))

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 raising would skip the client's own bookkeeping
            _log.exception("a rebalance step failed")
            self.failures = [
                *self.failures[1 - _KEPT_FAILURES :],
                f"{type(error).__name__}: {error}",
            ]
