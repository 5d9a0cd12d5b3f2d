"""One member's part of a rebalance: it writes subscriptions and reads answers.

Sans-IO: an adapter asks for the bytes of the next subscription, passes in the bytes of an answer
and carries out the commands. The member never raises for what a leader sent: an answer that cannot
be read or followed becomes a `failure`, a sentence.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from assignor.errors import MemberRefused
from assignor.rebalance.blobs import read_answer, write_subscription
from assignor.rebalance.endpoints import parse_endpoint
from assignor.rebalance.forms.own import OwnTopology
from assignor.rebalance.held_tasks import (
    TasksHeld,
    UnfollowableAnswer,
    held_tasks,
    known_sizes,
    offset_sums,
    stateful_tasks,
    view_after,
    view_routing,
)
from assignor.rebalance.level_reports import supported_ranges
from assignor.rebalance.member_facts import (
    MemberIdentity,
    Received,
    changing_byte,
    other_topology,
    outdated_answer,
    read_native_answer,
    seen_by_jvm_leaders,
)
from assignor.rebalance.routing_view import Routing, routing_of
from assignor.topology import CarriedTopologies, Subtopology, plain
from encoding import (
    Assignment,
    DecodeError,
    NativeSubscription,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    View,
    partition_ranges,
    view_reference,
)
from probing import (
    AssignmentReceived,
    IgnoreTasks,
    KeepVersion,
    LevelsPolled,
    MemberState,
    Refuse,
    RejoinNow,
    Release,
    SubscriptionVersion,
    WriteNextTime,
    go_by,
    member_step,
    start_member,
    subscription_version,
)
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.topologies import Reached

_HEADER_BYTES = 8


class StreamsMember:
    """One member of the group, from its start to its end.

    Attributes:
        state: which version it writes next, and why.
        identity: what it reports about itself.
        held: the tasks of its last assignment.
        topology: what it can run, and what it remembers of reached versions.
        view: the group's routing view, if a native leader sent one and it is current.
        routing: partitions by the host that serves them, from the view or from Kafka's host maps.
    """

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
    ) -> None:
        """Start a member that has not joined yet.

        Args:
            release: what it can read and write, and whose rules it follows.
            identity: what it reports about itself.
            subtopologies: of its topology; native answers name tasks only, and what a task reads
                is derived from here.
            upgrade_from: as in Kafka Streams' setting.
            start_version: "latest" writes the latest native version at once, as KIP-268 does.
            remembered_version: which the group agreed on before a restart.
            levels: finalized levels to begin with; the group's newer ones replace them.
            carried: what it can run, where that is not one topology of version 1.
            reached: reached versions that it remembers from before a restart.

        Raises:
            ReleaseError: the release does not accept this value of `upgrade.from`.
        """
        self._release = release
        self.identity = identity
        self.topology = OwnTopology(carried or plain(subtopologies), reached)
        self._subtopologies = self.topology.carried.subtopologies
        self.state: MemberState = start_member(
            release,
            upgrade_from=upgrade_from,
            start_version=start_version,
            remembered_version=remembered_version,
            levels=levels,
        )
        self.held = TasksHeld()
        self.view: View | None = None
        self.routing = Routing()
        self._sizes: tuple[int, ...] = ()
        self._unique = -1
        self._has_answer = False

    def subscription(
        self,
        task_offset_sums: Mapping[TaskId, int] | None = None,
        *,
        restoring: Collection[TaskId] = (),
        gave_up_tasks: bool = False,
        error_code: int = 0,
        owned_partitions: Iterable[TopicPartition] = (),
        owned_generation: int = -1,
    ) -> tuple[Subscription, bytes]:
        """Return the next subscription; two in a row never have equal bytes (KAFKA-10455).

        Args:
            task_offset_sums: sums of the state on this member; active tasks count as running and
                standby tasks that are missing as unknown.
            restoring: stateful active tasks that count by their sums, as in Kafka Streams.
            gave_up_tasks: active tasks count by their sums instead, and not at all without a sum:
                what an eager member of Kafka Streams 2.6 or newer writes, which suspends its tasks
                before it joins. Leaders of version 6 and below take them for standby tasks.
            error_code: `AssignorError.SHUTDOWN_REQUESTED` to stop the whole application (KIP-671).
            owned_partitions: what a cooperative member has not given up; empty for an eager one.
                For leaders whose client hides the consumer protocol's field.
            owned_generation: in which the member got its tasks; -1 when it is unknown.

        Raises:
            MemberRefused: this release cannot write the version that the leader asked for
                (KAFKA-8649), or cannot meet a finalized level.
            EncodeError: a value does not fit on the wire.
        """
        self.state = go_by(self.state, self.state.polled)
        version = subscription_version(self.state)
        if isinstance(version, Refuse):
            raise MemberRefused(version.why)
        restores = stateful_tasks(restoring, self._subtopologies)
        sums = offset_sums(self.held, task_offset_sums or {}, restores, gave_up=gave_up_tasks)
        self._unique += 1
        value = Subscription(
            version=version.used,
            latest_supported_version=version.latest_supported,
            process_id=self.identity.process_id,
            user_endpoint=self.identity.user_endpoint,
            task_offset_sums=TaskOffsetSums.from_mapping(sums),
            unique_field=(self._unique + 128) % 256 - 128,
            error_code=int(error_code),
            client_tags=self.identity.client_tags,
            native=self._native_part(version, tuple(owned_partitions), owned_generation),
        )
        seen = seen_by_jvm_leaders(value, self._subtopologies)
        return value, write_subscription(value, kafka_offset_sums=seen) + changing_byte(
            value, self._release, self._unique
        )

    def receive(
        self,
        partitions: tuple[TopicPartition, ...],
        user_data: bytes,
        *,
        now_ms: int,
        led_supported_version: int | None = None,
    ) -> Received:
        """Take an answer: hold its tasks from now on, and return what probing asks for.

        The first answer of a static member may be from before its restart, since the coordinator
        keeps it. If that answer cannot be read or followed, is about another topology, or is not
        about the newest of several that this member carries, it asks for a new answer, once.

        Args:
            partitions: what the consumer protocol assigned.
            user_data: the assignment blob.
            now_ms: epoch milliseconds, the clock of `next_rebalance_ms`.
            led_supported_version: lowest version supported in the group, by the leader of this
                rebalance; only the model of KIP-268's text asks for it.
        """
        before, is_first = self.state, not self._has_answer
        self._has_answer = True
        received = self._receive(
            partitions, user_data, now_ms=now_ms, led_supported_version=led_supported_version
        )
        if not (is_first and self.identity.instance_id and self._release.is_native):
            return received
        outdated = received.failure or outdated_answer(received.assignment, self.topology)
        if not outdated:
            return received
        if received.failure:
            self.state = before
        rejoin = RejoinNow(
            used_version=self.state.used_version,
            rule="answer from before the restart",
            why=f"{outdated}; this may be what the group kept for this member's former self, so it"
            " asks for a new answer",
        )
        return Received(assignment=received.assignment, commands=(*received.commands, rejoin))

    def _receive(
        self,
        partitions: tuple[TopicPartition, ...],
        user_data: bytes,
        *,
        now_ms: int,
        led_supported_version: int | None,
    ) -> Received:
        known = self._release.readable_versions
        try:
            assignment = read_answer(user_data, known)
        except DecodeError as error:
            return self._receive_unreadable(user_data, error, now_ms=now_ms)
        routing = self._take_routing(assignment)
        event = AssignmentReceived(
            received_version=assignment.version,
            commonly_supported_version=assignment.commonly_supported_version,
            error_code=assignment.error_code,
            host_missing=self._is_missing(routing),
            next_rebalance_ms=assignment.next_rebalance_ms,
            now_ms=now_ms,
            led_supported_version=led_supported_version,
            native=read_native_answer(assignment),
        )
        self.state, commands = member_step(self.state, event)
        for_version = not any(isinstance(c, KeepVersion | WriteNextTime) for c in commands)
        received = Received(assignment=assignment, commands=commands, for_version=for_version)
        if any(isinstance(command, IgnoreTasks) for command in commands):
            return received
        refusals = [command.why for command in commands if isinstance(command, Refuse)]
        if refusals:
            self.forget_tasks()
            return replace(received, failure=refusals[0])
        try:
            if self._release.is_native:
                assignment = self.topology.taken(assignment)
                received = replace(received, assignment=assignment)
            self.held = held_tasks(assignment, partitions, self._subtopologies)
        except UnfollowableAnswer as error:
            self.forget_tasks()
            return replace(received, failure=str(error))
        self.routing = routing
        return received

    def _receive_unreadable(self, user_data: bytes, error: DecodeError, *, now_ms: int) -> Received:
        """Follow the two numbers that an answer of a later version begins with, by probing."""
        self.forget_tasks()
        failure = f"the leader's answer is unreadable: {error}"
        version, common = (int.from_bytes(user_data[i : i + 4], signed=True) for i in (0, 4))
        if len(user_data) < _HEADER_BYTES or version <= max(self._release.known_versions):
            return Received(assignment=None, failure=failure)
        event = AssignmentReceived(
            received_version=version, commonly_supported_version=common, now_ms=now_ms
        )
        self.state, commands = member_step(self.state, event)
        if any(isinstance(command, RejoinNow) for command in commands):
            return Received(assignment=None, commands=commands, for_version=True)
        return Received(assignment=None, commands=commands, failure=failure)

    def levels_polled(self, polled: FinalizedLevels) -> None:
        """Take in levels that polls found; the next subscription goes by them if they are newer."""
        self.state, _ = member_step(self.state, LevelsPolled(polled=polled))

    def forget_tasks(self) -> None:
        """Hold no tasks: the group removed this member, or its answer cannot be followed."""
        self.held = TasksHeld()

    def _take_routing(self, assignment: Assignment) -> Routing:
        """Keep the view that the answer carries, if it fits; return which host serves what."""
        native = assignment.native
        if native is None:
            return Routing(
                active=assignment.partitions_by_host,
                standby=assignment.standby_partitions_by_host,
            )
        if native.numbered_by:
            self._sizes = known_sizes(self._subtopologies, native.partition_counts) or ()
            self.view = view_after(self.view, native, native.sizes)
            parts = self.topology.in_group_numbers(native.numbered_by)
            return routing_of(self.view, parts, native.partition_counts) if self.view else Routing()
        # Numbers the tasks of the next subscription, if the answer is about this topology.
        self._sizes = () if other_topology(assignment, self._subtopologies) else native.sizes
        sizes = known_sizes(self._subtopologies, native.partition_counts)
        self.view = view_after(self.view, native, sizes)
        if self.view is None:
            return Routing()
        return view_routing(self.view, self._subtopologies, native.partition_counts)

    def _is_missing(self, routing: Routing) -> bool:
        """Whether this member serves queries but the routing map does not name it (KAFKA-9568)."""
        endpoint = self.identity.user_endpoint
        host = parse_endpoint(endpoint) if endpoint else None
        if host is None or not routing.active:
            return False  # no leader can list an invalid endpoint
        return host not in routing.active

    def _native_part(
        self,
        version: SubscriptionVersion,
        owned_partitions: tuple[TopicPartition, ...],
        owned_generation: int,
    ) -> NativeSubscription | None:
        """Return the native part, for the body or for the trailer behind Kafka's fields."""
        if version.native is None:
            return None
        held = None if self.view is None else view_reference(self.view)
        is_body = not version.has_trailer
        levels, topology = self.state.levels, self.topology
        return NativeSubscription(
            version=version.used if is_body else version.native,
            latest_supported_version=version.latest_supported if is_body else version.native,
            instance_id=self.identity.instance_id,
            rack=self.identity.rack,
            sizes=self._sizes,
            owned_partitions=partition_ranges(owned_partitions),
            owned_generation=owned_generation,
            nonce=self._unique + 1,
            view_epoch=-1 if held is None else held.epoch,
            view_checksum=0 if held is None else held.checksum,
            pinned_version=version.used if version.pinned else None,
            feature_ranges={**supported_ranges(self.state.all_versions), **topology.ranges()},
            adopted_levels=levels.levels,
            adopted_epoch=levels.epoch,
            **topology.reported(),
        )
