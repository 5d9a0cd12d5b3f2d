"""One member of a group: what it writes, what it does with an answer, what it remembers.

Sans-IO: bytes and facts in; bytes, tasks and steps out. It knows no client, listener, timer, thread
or clock: a `Driver` calls it for a client, the simulator by itself. It never raises for what a
leader sent: an answer that cannot be read or followed becomes a `failure`, a sentence.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from assignor.config import AssignmentConfig
from assignor.rebalance.adoption import adopt, adopt_as_first, unexpected
from assignor.rebalance.forms.own import OwnTopology
from assignor.rebalance.held_tasks import NO_TASKS, TasksHeld, moved_away
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory
from assignor.rebalance.leader.knowledge import LeaderInputs, LeaderSettings
from assignor.rebalance.leader.members import UNKNOWN_GENERATION, GroupMember
from assignor.rebalance.leader.parts.knowledge import LeaderKnowledge
from assignor.rebalance.leader.whole import GroupAnswer, assign_group
from assignor.rebalance.member_facts import Adopted, MemberIdentity, Received, Taken
from assignor.rebalance.rejoin_backoff import NEW_PACE, RejoinPace, Step, steps_after
from assignor.rebalance.routing_view import Routing
from assignor.rebalance.writing import written_subscription
from assignor.topology import CarriedTopologies, Subtopology, plain, with_sinks
from encoding import AssignorError, Subscription, TaskId, TopicPartition, View
from probing import (
    LevelsPolled,
    MemberState,
    Release,
    go_by,
    member_step,
    start_member,
)
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.topologies import Reached


class Member:
    """One member of the group, from its start to its end; public as `assignor.StreamsMember`.

    Attributes:
        leader: what it leads by.
        is_native: it follows this package's rules, not those of a Kafka release.
        is_cooperative: it gives up only what moves (KIP-429).
        identity: what it reports about itself.
        topology: what it can run, and what it remembers of reached versions.
        state: which version it writes next, and why.
        owned, last_bytes: partitions that its last subscription names as owned, and its bytes.
        leads: the client has it lead the generation; is_led_by_jvm: another one did last.
        memory: what it keeps as leader; its claims are those of the last answers that arrived.
        held: the tasks of its last assignment.
        view: the group's routing view, if a native leader sent one and it is current.
        routing: partitions by the host that serves them, from the view or from Kafka's host maps.
        partition_counts: topic -> partitions, as the last native leader sent them.
    """

    owned: tuple[TopicPartition, ...] = ()
    last_bytes = b""
    leads = is_led_by_jvm = _has_answer = _awaits_answer = False
    memory = _memory_before = LeaderKnowledge()
    _sent_claims: ClaimMemory = NO_CLAIMS  # of answers that were decided and have not arrived yet
    held = _reported = NO_TASKS  # `_reported`: what the listener was last called with
    view: View | None = None
    routing = Routing()
    partition_counts: Mapping[str, int] = MappingProxyType({})
    _sizes: tuple[int, ...] = ()
    _unique, _error_code, _generation = -1, 0, UNKNOWN_GENERATION
    _pace: RejoinPace | None = NEW_PACE

    def __init__(
        self,
        release: Release,
        identity: MemberIdentity,
        *,
        subtopologies: Sequence[Subtopology] = (),
        upgrade_from: str | None = None,
        start_version: Literal["latest"] | None = None,
        remembered_version: int | None = None,
        levels: FinalizedLevels = UNKNOWN_LEVELS,
        carried: CarriedTopologies | None = None,
        reached: Mapping[bytes, Reached] | None = None,
        leader: LeaderSettings | None = None,
        is_cooperative: bool = False,
    ) -> None:
        """Start a member that has not joined yet.

        Args:
            release: what it can read and write, and whose rules it follows.
            identity: what it reports about itself.
            subtopologies: of its topology; native answers name tasks only, and what a task reads
                is derived from here.
            upgrade_from: as in Kafka Streams' setting.
            start_version: "latest" writes the latest native version immediately, as KIP-268 does.
            remembered_version: which the group agreed on before a restart.
            levels: finalized levels to begin with; the group's newer ones replace them.
            carried: what it can run, where that is not one topology of version 1.
            reached: reached versions that it remembers from before a restart.
            leader: what it leads by; default: the same release and topology, with the defaults.
            is_cooperative: it gives up only what moves.

        Raises:
            ReleaseError: the release does not accept this value of `upgrade.from`.
        """
        self.topology = OwnTopology(carried or plain(subtopologies), reached)
        self.leader = leader or LeaderSettings(
            release=release,
            subtopologies=self.topology.carried.subtopologies,
            config=AssignmentConfig(),
        )
        self._release, self.is_native = release, release.is_native
        self.identity, self.is_cooperative = identity, is_cooperative
        self.state: MemberState = start_member(
            release,
            upgrade_from=upgrade_from,
            start_version=start_version,
            remembered_version=remembered_version,
            levels=levels,
        )

    @property
    def known_subtopologies(self) -> tuple[Subtopology, ...]:
        """Its own subtopologies, and those of other members, as it numbers them when it leads."""
        found = self.memory.topologies
        return with_sinks((*self.leader.subtopologies, *found.appended), found.sinks)

    def request_shutdown(self) -> None:
        """Ask the whole group to stop with the next subscription (KIP-671)."""
        self._error_code = int(AssignorError.SHUTDOWN_REQUESTED)

    # Joining

    def begin_join(self) -> None:
        """Begin a rebalance: an answer that has not arrived by now never will."""
        self.leads, self._sent_claims = False, NO_CLAIMS

    def give_up(self, *, is_lost: bool) -> TasksHeld | None:
        """Return the tasks to give up before a join, or None; if they are lost, forget them.

        Everything if eager or lost; `NO_TASKS` if what is lost was given up before, and no answer
        has come since.

        Args:
            is_lost: the group removed this member, or uses another assignor: other members may run
                its tasks already.
        """
        if is_lost:
            self.forget_tasks()
            self._generation = UNKNOWN_GENERATION
        elif self.is_cooperative:
            return None
        reported, self._reported = self._reported, NO_TASKS
        if reported == NO_TASKS and not (is_lost and self._awaits_answer):
            return None
        self._awaits_answer = not is_lost
        return reported

    def subscription(
        self,
        task_offset_sums: Mapping[TaskId, int] | None = None,
        *,
        restoring: Collection[TaskId] = (),
        gave_up_tasks: bool = False,
        error_code: int | None = None,
        owned_partitions: Iterable[TopicPartition] = (),
        owned_generation: int | None = None,
    ) -> tuple[Subscription, bytes]:
        """Return the next subscription; two in a row never have equal bytes (KAFKA-10455).

        Args:
            task_offset_sums: sums of the state on this member; active tasks count as running and
                standby tasks that are missing as unknown.
            restoring: stateful active tasks that count by their sums, as in Kafka Streams.
            gave_up_tasks: active tasks count by their sums instead, and not at all without a sum:
                what an eager member of Kafka Streams 2.6 or newer writes, which suspends its tasks
                before it joins. Leaders of version 6 and below take them for standby tasks.
            error_code: `AssignorError.SHUTDOWN_REQUESTED` to stop the whole application (KIP-671);
                default: as `request_shutdown` was called.
            owned_partitions: what a cooperative member has not given up; empty for an eager one.
                For leaders whose client hides the consumer protocol's field.
            owned_generation: in which it got its tasks, -1: unknown; default: of the last `take`.

        Raises:
            MemberRefused: this release cannot write the version that the leader asked for
                (KAFKA-8649), or cannot meet a finalized level.
            EncodeError: a value does not fit on the wire.
        """
        self.state = go_by(self.state, self.state.polled)
        owned, number = tuple(owned_partitions), self._unique + 1
        value, data = written_subscription(
            self._adopted(),
            release=self._release,
            identity=self.identity,
            topology=self.topology,
            sums=task_offset_sums or {},
            restoring=restoring,
            gave_up=gave_up_tasks,
            number=number,
            error_code=self._error_code if error_code is None else int(error_code),
            owned_partitions=owned,
            owned_generation=self._generation if owned_generation is None else owned_generation,
        )
        self.owned, self.last_bytes, self._unique = owned, data, number
        return value, data

    def levels_polled(self, polled: FinalizedLevels) -> None:
        """Take in levels that polls found; the next subscription goes by them if they are newer."""
        self.state, _ = member_step(self.state, LevelsPolled(polled=polled))

    # Leading

    def begin_lead(self) -> None:
        """Lead this generation; all its decisions start from the `memory` of this moment."""
        self.leads, self._memory_before = True, self.memory

    def decide(
        self,
        group: Sequence[GroupMember],
        partition_counts: Mapping[str, int],
        inputs: LeaderInputs,
        *,
        persistent_version: int = 0,
    ) -> GroupAnswer:
        """Return the leader's answers to all members; the last ones of a generation are remembered.

        Args:
            group: every member of the generation, with its bytes.
            partition_counts: source topic -> partitions; subtopologies of a missing topic wait.
            inputs: what is true now.
            persistent_version: what this member's own stores are written in; 0: it has none.

        Raises:
            LeaderRefused: the emulated release ends with the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        knowledge = replace(
            self._memory_before.with_new_topologies(self.memory),
            **vars(inputs),
            levels=self.state.known_levels,
            reached=self.topology.known,
            persistent_version=persistent_version,
        )
        answer = assign_group(
            self.leader, group, partition_counts, knowledge=knowledge, held_view=self.view
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
        """Take the leader's answer; one that cannot be taken, however it fails, leaves no tasks.

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
        used_before, before = self.state.used_version, self._reported
        try:
            assigned = tuple(TopicPartition(topic, number) for topic, number in partitions)
            received = self.receive(assigned, bytes(user_data or b""), now_ms=now_ms)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 a leader's bytes are no reason to end a member
            self.forget_tasks()
            received = unexpected(error)
        self._generation, self._reported, self._awaits_answer = generation, self.held, False
        if received.assignment is not None:
            native = received.assignment.native
            self.is_led_by_jvm = native is None
            self.partition_counts = {} if native is None else native.partition_counts
        return Taken(
            received=received,
            generation=generation,
            used_before=used_before,
            used_after=self.state.used_version,
            revoked=moved_away(before, self.held) if self.is_cooperative else NO_TASKS,
            held=self.held,
        )

    def steps(self, taken: Taken, *, now_ms: float) -> tuple[Step, ...]:
        """Return what to do after an answer, in order."""
        # A native member ends as well if it cannot meet the group's level.
        survives = self.is_native and self.state.refusal is None
        self._pace, steps = steps_after(
            taken.received, self._pace, now_ms=now_ms, survives=survives
        )
        return steps

    def receive(
        self,
        partitions: tuple[TopicPartition, ...],
        user_data: bytes,
        *,
        now_ms: int,
        led_supported_version: int | None = None,
    ) -> Received:
        """Hold the tasks of an answer from now on, and return what probing asks for.

        Args:
            partitions: what the consumer protocol assigned.
            user_data: the assignment blob.
            now_ms: epoch milliseconds, the clock of `next_rebalance_ms`.
            led_supported_version: lowest version supported in the group, by the leader of this
                rebalance; only the model of KIP-268's text asks for it.
        """
        before, is_first, self._has_answer = self._adopted(), not self._has_answer, True
        after, received = adopt(
            before,
            partitions,
            user_data,
            now_ms=now_ms,
            led_supported_version=led_supported_version,
            release=self._release,
            identity=self.identity,
            topology=self.topology,
        )
        if is_first and self.identity.instance_id and self.is_native:
            after, received = adopt_as_first(before, after, received, self.topology)
        self.state, self.held, self.routing = after.state, after.held, after.routing
        self._sizes, self.view = after.sizes, after.view
        return received

    def _adopted(self) -> Adopted:
        return Adopted(self.state, self.held, self._sizes, self.view, self.routing)

    def forget_tasks(self) -> None:
        """Hold no tasks: the group removed this member, or its answer cannot be followed."""
        self.held = NO_TASKS
