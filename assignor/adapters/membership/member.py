"""What the adapters share: one member of a group beside any client that calls assignors.

A client has an assignor write a subscription for each JoinGroup, decide when it leads, and take an
answer. The steps are here, once; an adapter turns its client's values into ours and back, and says
through `ClientPort` what it can ask of the client. Nothing is raised into a client but from
`decide`, when no valid answer exists: then nothing must be sent.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from assignor.adapters.membership.client import ClientPort
from assignor.adapters.membership.commands import Following
from assignor.adapters.membership.options import (
    identity_of,
    leader_settings,
    offered_protocol,
    static_identity,
)
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from assignor.adapters.membership.reports import decided, taken
from assignor.errors import LeaderRefused, TaskAssignmentError
from assignor.logs import line_logger
from assignor.observe import (
    AnswerHandled,
    AssignmentFailed,
    MembershipLost,
    Observer,
    RebalanceHook,
    SubscriptionWritten,
)
from assignor.placement import Strategy, high_availability
from assignor.rebalance import (
    NO_CLAIMS,
    NO_FAILURES,
    NONE_STALLED,
    GroupMember,
    LeaderKnowledge,
    MemberAnswer,
    Received,
    Routing,
    StreamsMember,
    TasksHeld,
    TasksListener,
    assign_group,
)
from assignor.topology import Topology
from encoding import RebalanceError, TaskId, TopicPartition, shown, task_order
from probing import (
    RebalanceProtocol,
)
from probing.features import UNKNOWN_LEVELS, FinalizedLevels

_log = line_logger(__name__)

_UNKNOWN_GENERATION = -1


class SharedAssignor(Following):
    """One member, for one consumer; the base of every `StreamsAssignor`.

    Args:
        topology: what the application processes.
        application_id: prefix of internal topics; normally the group id.
        process_id: identity of the process. Give the same one after a restart and to all consumers
            of a process, so that its tasks come back. Without it a static member has one that
            follows from its `group.instance.id`, any other member a random one.
        upgrade_from: as Kafka Streams' `upgrade.from`.
        start_version: "latest" writes the latest native version at once (KIP-268's optimistic
            start); the default starts at a version that every modern JVM leader reads.
        rebalance_protocol: "eager" gives everything up before each rebalance, "cooperative" only
            what moves (KIP-429). A value of `upgrade_from` up to 2.3 keeps a member eager.
        endpoint: `host:port` where this member answers interactive queries.
        client_tags: KIP-708 tags.
        rack: the consumer's `client_rack`.
        listener: told about tasks; see `assignor.TasksListener`.
        strategy: a name, or `(GroupState) -> TaskAssignment`; `high_availability` by default.
        observer: told about every step of a rebalance; see `assignor.observe`.
        hooks: told about whole rebalances; see `assignor.observe`.
            A line in the log by default.
        release: whose versions and rules to follow; `native` unless a test emulates another.
        remembered_version: which the group agreed on before this member was started again.
        levels: finalized levels to begin with.
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
        rebalance_protocol: Literal["eager", "cooperative"] = "eager",
        endpoint: str | None = None,
        client_tags: Mapping[str, str] | None = None,
        rack: str | None = None,
        listener: TasksListener | None = None,
        strategy: Strategy | str = high_availability,
        observer: Observer | None = None,
        hooks: Sequence[RebalanceHook] | None = None,
        release: str = "native",
        remembered_version: int | None = None,
        levels: FinalizedLevels = UNKNOWN_LEVELS,
        **settings: Any,
    ) -> None:
        super().__init__(listener or TasksListener(), observer, hooks)
        self._leader = leader_settings(topology, application_id, release, strategy, settings)
        self._application_id = application_id
        self._identity_is_given = process_id is not None
        self._protocol = offered_protocol(self._leader.release, upgrade_from, rebalance_protocol)
        self._member = StreamsMember(
            self._leader.release,
            identity_of(process_id, endpoint=endpoint, rack=rack, client_tags=client_tags),
            subtopologies=self._leader.subtopologies,
            upgrade_from=upgrade_from,
            start_version=start_version,
            remembered_version=remembered_version,
            levels=levels,
        )
        self._told = TasksHeld()
        self._generation = _UNKNOWN_GENERATION
        self._last_bytes = b""
        self._offered: tuple[TopicPartition, ...] = ()
        self._lags: Mapping[str, Mapping[TaskId, int]] = {}
        self._failures, self._stalled = NO_FAILURES, NONE_STALLED
        # Of the last answers that reached the group, and of those that are on their way.
        self._claims, self._answered = NO_CLAIMS, NO_CLAIMS
        self._error_code = 0

    @property
    def tasks(self) -> TasksHeld:
        """Active and standby tasks of the last assignment."""
        return self._member.held

    @property
    def routing(self) -> Routing:
        """Partitions by the host that serves them, as of the last assignment."""
        return self._member.routing

    @property
    def is_cooperative(self) -> bool:
        """Whether this member gives up only what moves (KIP-429)."""
        return self._protocol is RebalanceProtocol.COOPERATIVE

    # What an adapter calls

    def _connect(
        self, client: ClientPort, timer: FollowupTimer, group_instance_id: str | None
    ) -> None:
        self._client, self._timer = client, timer
        if group_instance_id:
            self._member.identity = static_identity(
                self._member.identity,
                group_instance_id,
                application_id=None if self._identity_is_given else self._application_id,
            )

    def _join(self) -> bytes:
        """The subscription for the next JoinGroup; what it says is owned is in `_offered`."""
        self._answered = NO_CLAIMS  # an answer that has not arrived by now never does
        self._guarded(self._give_up)
        self._guarded(self._write_subscription)
        return self._last_bytes

    def _decide(self, cluster: Any, group: Sequence[GroupMember]) -> Mapping[str, MemberAnswer]:
        """The leader's answers to all members.

        Raises:
            LeaderRefused: the emulated release dies of the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        began_s = time.perf_counter()
        try:
            counts = self._partition_counts(cluster)
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
            self._observe(AssignmentFailed(why=str(error)))
            self._report(str(error))
            raise
        except MemoryError:
            raise
        except Exception as error:
            # What stands around the leader failed: the client must hear of it as of any failure.
            why = (
                f"the leader failed, {type(error).__name__}: {shown(error)}; the group joins again"
            )
            self._observe(AssignmentFailed(why=why))
            self._report(why)
            raise TaskAssignmentError(why) from error
        self._lags, self._failures, self._answered = answer.lags, answer.failures, answer.claims
        self._stalled = answer.stalled
        for fault in answer.faults:
            self._report(fault)
        self._observe(decided(answer, seconds=time.perf_counter() - began_s))
        for warning in answer.warnings:
            _log.warning("%s", warning)
        return answer.answers

    def _take(
        self, partitions: Iterable[tuple[str, int]], user_data: bytes | None, generation: int
    ) -> None:
        """Take the answer of the leader, in this order: adopt, observe, follow.

        Nothing is raised but KeyboardInterrupt, GeneratorExit and MemoryError. An answer that
        cannot be taken, however it fails, leaves no tasks and is asked for again after a back-off.
        """
        self._claims, self._answered = self._answered, NO_CLAIMS
        used_before = self._member.state.used_version
        received = self._received(partitions, user_data)
        self._generation = generation
        self._adopt()
        assignment, size = received.assignment, len(user_data or b"")
        if assignment is not None:
            self._guarded(
                lambda: self._observe(taken(assignment, self._member, generation, size=size))
            )
        self._guarded(lambda: self._follow(received, used_before=used_before))
        self._observe(AnswerHandled(generation=generation))

    # Steps

    def _partition_counts(self, cluster: Any) -> Mapping[str, int]:
        """Source topic -> partitions as the client has them, 0 where it knows none."""
        topics = {t for s in self._leader.subtopologies for t in s.source_topics}
        return {t: len(cluster.partitions_for_topic(t) or ()) for t in sorted(topics)}

    def _knowledge(self, group: Sequence[GroupMember]) -> LeaderKnowledge:
        """What is left of the last time that this member led, and which of the group it is."""
        mine = [one.member_id for one in group if one.user_data == self._last_bytes]
        return LeaderKnowledge(
            lags_before=self._lags,
            failures=self._failures,
            stalled=self._stalled,
            claims=self._claims,
            generation=_UNKNOWN_GENERATION if self._client is None else self._client.generation(),
            leader_id=mine[0] if mine else None,
            now_ms=int(time.time() * 1000),
        )

    def _give_up(self) -> None:
        """Before a rebalance: everything under the eager protocol, or when membership was lost."""
        lost = self._client is not None and self._client.has_lost_membership()
        if lost:
            self._member.forget_tasks()
            self._generation = _UNKNOWN_GENERATION
        elif self.is_cooperative:
            return
        told, self._told = self._told, TasksHeld()
        if not told.active and not told.standby:
            return
        if lost:
            self._observe(MembershipLost(active_tasks=tuple(sorted(told.active, key=task_order))))
            self._listener.on_tasks_lost(told.active, told.standby)
        else:
            self._listener.on_tasks_revoked(told.active, told.standby)

    def _write_subscription(self) -> None:
        sums: dict[TaskId, int] = {}
        self._guarded(lambda: sums.update(self._listener.task_offsets()))
        self._offered = tuple(self._owned()) if self.is_cooperative else ()
        try:
            value, data = self._member.subscription(
                sums,
                error_code=self._error_code,
                owned_partitions=self._offered,
                owned_generation=self._generation,
            )
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

    def _owned(self) -> Iterable[TopicPartition]:
        return () if self._client is None else sorted(self._client.owned_partitions())

    def _received(self, partitions: Iterable[tuple[str, int]], user_data: bytes | None) -> Received:
        """What an answer means; one that the member trips over is one that it cannot follow."""
        try:
            assigned = tuple(TopicPartition(topic, number) for topic, number in partitions)
            return self._member.receive(
                assigned, bytes(user_data or b""), now_ms=int(time.time() * 1000)
            )
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 a leader's bytes are no reason to end a member
            _log.exception("an answer of the leader could not be taken")
            self._member.forget_tasks()
            what = shown(f"{type(error).__name__}: {error}")
            return Received(
                assignment=None,
                failure=f"the leader's answer could not be taken ({what}); this member asks again",
            )

    def _adopt(self) -> None:
        """Tell the listener of the tasks that are held now."""
        told, held = self._told, self._member.held
        self._told = held
        if self.is_cooperative:
            self._guarded(lambda: self._give_back(told, held))
        self._guarded(lambda: self._listener.on_tasks_assigned(held.active, held.standby))

    def _give_back(self, told: TasksHeld, held: TasksHeld) -> None:
        """After a cooperative rebalance: only what moved away, or changed its partitions."""
        active = {t: p for t, p in told.active.items() if held.active.get(t) != p}
        standby = {t: p for t, p in told.standby.items() if t not in held.standby}
        if active or standby:
            self._listener.on_tasks_revoked(active, standby)
