"""The membership core: one member's state from join to answer, and what it remembers as leader.

Sans-IO: bytes and facts in, bytes, tasks and steps out. It knows no client, listener, timer, thread
or clock; `Membership` calls it in order and carries out what it returns.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.adapters.membership.client import UNKNOWN_GENERATION
from assignor.adapters.membership.setup import MemberSetup
from assignor.adapters.membership.static_membership import static_identity
from assignor.embedding import ClusterKnowledge, lags_or_prior
from assignor.logs import line_logger
from assignor.rebalance import (
    NEW_PACE,
    NO_CLAIMS,
    ClaimMemory,
    GroupAnswer,
    GroupMember,
    LeaderKnowledge,
    Received,
    RejoinPace,
    Step,
    StreamsMember,
    TasksHeld,
    assign_group,
    steps_after,
)
from assignor.topology import Subtopology, with_sinks
from encoding import AssignorError, Subscription, TaskId, TopicPartition, shown
from probing import RebalanceProtocol, Refuse, rejoin_for_levels
from probing.features import FinalizedLevels

_log = line_logger(__name__)

NO_TASKS = TasksHeld()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Tasks that a member gives up before a join; `is_lost`: others may run them already."""

    tasks: TasksHeld
    is_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What taking an answer changed.

    Attributes:
        received: the answer, with what probing asks for.
        generation: of the rebalance.
        used_before: version of the subscription that was answered.
        used_after: version of the next subscription.
        revoked: tasks that a cooperative member gives up now; empty for an eager member, which has
            given up everything before it joined.
        held: all tasks that the member holds from now on.
    """

    received: Received
    generation: int
    used_before: int
    used_after: int
    revoked: TasksHeld
    held: TasksHeld

    @property
    def asks_for_shutdown(self) -> bool:
        """Whether the answer asks the whole group to stop (KIP-671)."""
        assignment = self.received.assignment
        return assignment is not None and assignment.error_code == AssignorError.SHUTDOWN_REQUESTED


class MembershipCore:
    """One member of a group, from its start to its end.

    Args:
        setup: the checked options.
        member: the member's half of the protocol.

    Attributes:
        setup: as given.
        member: as given.
        leader_settings: what this member leads by; `follow_lags` changes the strategy.
        memory: what it keeps as leader; its claims are those of the last answers that arrived.
        owned: partitions that the last subscription named as owned; empty for an eager member.
        last_bytes: the last subscription.
        partition_counts: topic -> partitions, as the last native leader sent them.
        leads: whether the client has this member lead the generation.
    """

    def __init__(self, setup: MemberSetup, member: StreamsMember) -> None:
        self.setup = setup
        self.member = member
        self.leader_settings = setup.leader
        self.memory = self._memory_before = LeaderKnowledge()
        # Claims of answers that were decided and have not arrived yet.
        self._sent_claims: ClaimMemory = NO_CLAIMS
        self.owned: tuple[TopicPartition, ...] = ()
        self.last_bytes = b""
        self.partition_counts: Mapping[str, int] = {}
        # What the listener was last called with; whether an answer may return what it gave up.
        self._reported, self._awaits_answer = NO_TASKS, False
        self._generation, self._error_code = UNKNOWN_GENERATION, 0
        self._pace: RejoinPace | None = NEW_PACE
        self.leads = self._led_by_jvm = False

    @property
    def is_native(self) -> bool:
        """Whether this member follows this package's rules, not those of a Kafka release."""
        return self.leader_settings.release.is_native

    @property
    def is_cooperative(self) -> bool:
        """Whether this member gives up only what moves (KIP-429)."""
        return self.setup.protocol is RebalanceProtocol.COOPERATIVE

    @property
    def levels(self) -> FinalizedLevels:
        """The finalized levels that this member goes by."""
        return self.member.state.levels

    @property
    def refusal(self) -> Refuse | None:
        """Why this member cannot go by the group's levels, or None."""
        return self.member.state.refusal

    @property
    def known_subtopologies(self) -> tuple[Subtopology, ...]:
        """Its own subtopologies, and those of other members, as it numbers them when it leads."""
        found = self.memory.topologies
        return with_sinks((*self.leader_settings.subtopologies, *found.appended), found.sinks)

    def become_static(self, group_instance_id: str) -> None:
        """Take the identity of a static member (KIP-345).

        Raises:
            ConfigError: Kafka refuses this instance id.
        """
        self.member.identity = static_identity(
            self.member.identity,
            group_instance_id,
            application_id=None if self.setup.identity_is_given else self.setup.application_id,
        )

    def follow_lags(self) -> None:
        """Place tasks by lags from now on, unless the user chose a strategy."""
        if self.setup.strategy_is_default:
            self.leader_settings = replace(self.leader_settings, strategy=lags_or_prior)

    def request_shutdown(self) -> None:
        """Have the next subscription ask the whole group to stop (KIP-671)."""
        self._error_code = int(AssignorError.SHUTDOWN_REQUESTED)

    # Joining

    def begin_join(self) -> None:
        """Begin a rebalance: an answer that has not arrived by now never will."""
        self.leads = False
        self._sent_claims = NO_CLAIMS

    def give_up(self, *, is_lost: bool) -> GivenUp | None:
        """Return the tasks to give up before a join, or None; if they are lost, forget them.

        Everything if eager or lost; `NO_TASKS` if what is lost was given up before.

        Args:
            is_lost: the group removed this member, or uses another assignor: its tasks are lost.
        """
        if is_lost:
            self.member.forget_tasks()
            self._generation = UNKNOWN_GENERATION
        elif self.is_cooperative:
            return None
        reported, self._reported = self._reported, NO_TASKS
        if reported == NO_TASKS and not (is_lost and self._awaits_answer):
            return None
        self._awaits_answer = not is_lost
        return GivenUp(tasks=reported, is_lost=is_lost)

    def write_subscription(
        self,
        offset_sums: Mapping[TaskId, int],
        owned: Iterable[TopicPartition],
        restoring: Collection[TaskId] = (),
    ) -> Subscription:
        """Write the next subscription into `last_bytes` and `owned`, and return it as a value.

        Args:
            offset_sums: task -> sum of changelog offsets of the state on this member.
            owned: partitions that a cooperative member has not given up; none of an eager one.
            restoring: active tasks whose state is not restored.

        Raises:
            MemberRefused: this member cannot write the version or meet the level that it has to.
            EncodeError: a value does not fit on the wire.
        """
        owned_partitions = tuple(sorted(owned))
        value, data = self.member.subscription(
            offset_sums,
            restoring=restoring,
            error_code=self._error_code,
            owned_partitions=owned_partitions,
            owned_generation=self._generation,
        )
        self.owned, self.last_bytes = owned_partitions, data
        return value

    # Leading

    def begin_lead(self) -> None:
        """Lead this generation; all its decisions start from the `memory` of this moment."""
        self.leads, self._memory_before = True, self.memory

    def decide(
        self,
        group: Sequence[GroupMember],
        cluster: ClusterKnowledge,
        *,
        persistent_version: int,
        generation: int,
        leader_id: str,
        now_ms: int,
    ) -> GroupAnswer:
        """Return the leader's answers to all members; the last ones of a generation are remembered.

        Args:
            group: every member of the generation, with its bytes.
            cluster: partition counts, end offsets, and subtopologies that wait.
            persistent_version: what this member's own stores are written in; 0: it has none.
            generation: of the rebalance; -1: unknown.
            leader_id: of this member; "": unknown.
            now_ms: epoch milliseconds.

        Raises:
            LeaderRefused: the emulated release ends with the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        answer = assign_group(
            self.leader_settings,
            group,
            cluster.partition_counts,
            knowledge=replace(
                self._memory_before.with_new_topologies(self.memory),
                generation=generation,
                leader_id=leader_id or None,
                now_ms=now_ms,
                levels=self.member.state.known_levels,
                reached=self.member.topology.known,
                persistent_version=persistent_version,
                waits=cluster.waits,
                end_offset_sums=cluster.end_offset_sums,
            ),
            held_view=self.member.view,
        )
        self.memory = replace(answer.remembered(), claims=self.memory.claims)
        self._sent_claims = answer.claims
        return answer

    # After an answer

    def take(
        self,
        partitions: Iterable[tuple[str, int]],
        user_data: bytes | None,
        *,
        generation: int,
        now_ms: int,
    ) -> Taken:
        """Take the leader's answer; an answer that cannot be taken leaves no tasks.

        An answer whose tasks probing ignores (`IgnoreTasks`) leaves those of before.

        Args:
            partitions: what the consumer protocol assigned, as (topic, partition).
            user_data: the assignment.
            generation: of the rebalance.
            now_ms: epoch milliseconds.

        Raises:
            MemoryError: as Python does; nothing else for what a leader sent.
        """
        self.memory = replace(self.memory, claims=self._sent_claims)
        self._sent_claims = NO_CLAIMS
        if not self.leads:
            self.memory = self.memory.of_a_follower()
        used_before = self.member.state.used_version
        received = self._received(partitions, user_data, now_ms)
        self._generation = generation
        before, self._reported, self._awaits_answer = self._reported, self.member.held, False
        if received.assignment is not None:
            native = received.assignment.native
            self._led_by_jvm = native is None
            self.partition_counts = {} if native is None else native.partition_counts
        return Taken(
            received=received,
            generation=generation,
            used_before=used_before,
            used_after=self.member.state.used_version,
            revoked=_moved_away(before, self.member.held) if self.is_cooperative else NO_TASKS,
            held=self.member.held,
        )

    def _received(
        self, partitions: Iterable[tuple[str, int]], user_data: bytes | None, now_ms: int
    ) -> Received:
        """Read an answer; whatever fails makes it an answer that cannot be followed."""
        try:
            assigned = tuple(TopicPartition(topic, number) for topic, number in partitions)
            return self.member.receive(assigned, bytes(user_data or b""), now_ms=now_ms)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 a leader's bytes are no reason to end a member
            _log.exception("an answer of the leader caused an unexpected error")
            self.member.forget_tasks()
            what = shown(f"{type(error).__name__}: {error}")
            return Received(
                assignment=None,
                failure=f"the leader's answer caused an unexpected error ({what})",
            )

    def steps(self, taken: Taken, *, now_ms: float) -> tuple[Step, ...]:
        """Return what to do after an answer, in order."""
        # A native member ends as well if it cannot meet the group's level.
        survives = self.is_native and self.refusal is None
        self._pace, steps = steps_after(
            taken.received, self._pace, now_ms=now_ms, survives=survives
        )
        return steps

    # Finalized levels

    def why_rejoin_for(self, found: FinalizedLevels) -> str:
        """Return why this member has to ask for a rebalance for new levels, or "".

        Called on the thread that reads the levels.
        """
        state, is_led_by_jvm = self.member.state, self._led_by_jvm
        rejoin = rejoin_for_levels(state, found, leads=self.leads, is_led_by_jvm=is_led_by_jvm)
        return "" if rejoin is None else rejoin.why


def _moved_away(before: TasksHeld, held: TasksHeld) -> TasksHeld:
    """Return tasks that are held no more, and active ones whose partitions changed."""
    return TasksHeld(
        active={t: p for t, p in before.active.items() if held.active.get(t) != p},
        standby={t: p for t, p in before.standby.items() if t not in held.standby},
    )
