"""One member's half of a rebalance: a subscription out, an assignment in, probing in between.

Sans-IO: an adapter asks for the bytes of the next subscription, hands in the bytes of an answer and
does what the commands say. The member never raises for what a leader sent: what cannot be read or
followed becomes a `failure`, a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from assignor.endpoints import parse_endpoint
from assignor.errors import MemberRefused
from encoding import (
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    Assignment,
    DecodeError,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from probing import (
    AssignmentReceived,
    Command,
    IgnoreTasks,
    KeepVersion,
    MemberModel,
    MemberState,
    Refuse,
    Release,
    member_step,
    start_member,
    subscription_version,
)

_UNIQUE_FIELD_SINCE = 8
# Members that force a rebalance by `enforceRebalance`, with the bytes as they are.
_FORCES_REBALANCES = frozenset({MemberModel.FOLLOWUP, MemberModel.FOLLOWUP_WAITS})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberIdentity:
    """What a member says about itself in every subscription.

    Attributes:
        process_id: of its process; outlives restarts.
        user_endpoint: `host:port` for interactive queries, or None.
        client_tags: KIP-708 tags.
    """

    process_id: UUID
    user_endpoint: str | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksHeld:
    """Tasks of a member with their input partitions, and the routing map that came with them."""

    active: Mapping[TaskId, tuple[TopicPartition, ...]] = field(default_factory=dict)
    standby: Mapping[TaskId, tuple[TopicPartition, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What an answer meant.

    Attributes:
        assignment: decoded, or None when the bytes could not be read.
        commands: what probing asks for, in order.
        for_version: a rejoin among them is only for the version, no follow-up.
        failure: why this member cannot follow, or "".
    """

    assignment: Assignment | None
    commands: tuple[Command, ...] = ()
    for_version: bool = False
    failure: str = ""


class StreamsMember:
    """One member of the group, from its start to its end.

    Attributes:
        state: which version it writes next, and why.
        held: the tasks of its last assignment.
    """

    def __init__(
        self, release: Release, identity: MemberIdentity, *, upgrade_from: str | None = None
    ) -> None:
        """Start a member that has not joined yet.

        Args:
            release: what it can read and write, and whose rules it follows.
            identity: what it says about itself.
            upgrade_from: as in Kafka Streams' setting.

        Raises:
            ReleaseError: the release does not accept this value of `upgrade.from`.
        """
        self._release = release
        self._identity = identity
        self.state: MemberState = start_member(release, upgrade_from=upgrade_from)
        self.held = TasksHeld()
        self._unique = -1

    def subscription(
        self, task_offset_sums: Mapping[TaskId, int] | None = None, *, error_code: int = 0
    ) -> tuple[Subscription, bytes]:
        """The next subscription; two in a row never have equal bytes (KAFKA-10455).

        Args:
            task_offset_sums: sums of the state on this member; active tasks always count as running
                and standby tasks that are missing as unknown.
            error_code: `AssignorError.SHUTDOWN_REQUESTED` to stop the whole application (KIP-671).

        Raises:
            MemberRefused: this release cannot write the version that it was told (KAFKA-8649).
            EncodeError: a value does not fit on the wire.
        """
        version = subscription_version(self.state)
        if isinstance(version, Refuse):
            raise MemberRefused(version.why)
        sums = dict.fromkeys(self.held.standby, UNKNOWN_OFFSET_SUM) | dict(task_offset_sums or {})
        sums |= dict.fromkeys(self.held.active, RUNNING)
        self._unique += 1
        value = Subscription(
            version=version.used,
            latest_supported_version=version.latest_supported,
            process_id=self._identity.process_id,
            user_endpoint=self._identity.user_endpoint,
            task_offset_sums=TaskOffsetSums.from_mapping(sums),
            unique_field=(self._unique + 128) % 256 - 128,
            error_code=error_code,
            client_tags=self._identity.client_tags,
        )
        return value, encode_subscription(value) + self._nonce(value.version)

    def receive(
        self,
        partitions: tuple[TopicPartition, ...],
        user_data: bytes,
        *,
        now_ms: int,
    ) -> Received:
        """Take an answer: tasks are held from now on, and probing says what comes next.

        Args:
            partitions: what the consumer protocol assigned.
            user_data: the assignment blob.
            now_ms: epoch milliseconds, the clock of `next_rebalance_ms`.
        """
        try:
            assignment = decode_assignment(user_data, known_versions=self._release.known_versions)
        except DecodeError as error:
            self.held = TasksHeld()
            return Received(assignment=None, failure=f"the leader's answer is unreadable: {error}")
        event = AssignmentReceived(
            received_version=assignment.version,
            commonly_supported_version=assignment.commonly_supported_version,
            error_code=assignment.error_code,
            host_missing=self._is_missing(assignment),
            next_rebalance_ms=assignment.next_rebalance_ms,
            now_ms=now_ms,
        )
        self.state, commands = member_step(self.state, event)
        for_version = not any(isinstance(command, KeepVersion) for command in commands)
        received = Received(assignment=assignment, commands=commands, for_version=for_version)
        if any(isinstance(command, IgnoreTasks) for command in commands):
            return received
        refusals = [command.why for command in commands if isinstance(command, Refuse)]
        failure = refusals[0] if refusals else _mismatch(partitions, assignment)
        if failure:
            self.held = TasksHeld()
            return replace(received, failure=failure)
        active: dict[TaskId, tuple[TopicPartition, ...]] = {}
        for task, partition in zip(assignment.active_tasks, sorted(partitions), strict=True):
            active[task] = (*active.get(task, ()), partition)
        self.held = TasksHeld(active=active, standby=assignment.standby_tasks)
        return received

    def forget_tasks(self) -> None:
        """Stop claiming tasks: the group went on without this member, so others run them now."""
        self.held = TasksHeld()

    def _is_missing(self, assignment: Assignment) -> bool:
        """Whether this member serves queries but the routing map does not name it (KAFKA-9568)."""
        endpoint = self._identity.user_endpoint
        if not endpoint or not assignment.partitions_by_host:
            return False
        return parse_endpoint(endpoint) not in assignment.partitions_by_host

    def _nonce(self, version: int) -> bytes:
        """A changing byte behind the fields of versions that have no unique field.

        Kafka's decoders stop at their last field. Releases before 2.6 forced a rebalance by leaving
        and joining anew, which the byte stands for here; 2.6.0 alone had neither (KAFKA-10455).
        """
        if version >= _UNIQUE_FIELD_SINCE or self._release.member_model in _FORCES_REBALANCES:
            return b""
        return bytes([self._unique % 256])


def _mismatch(partitions: tuple[TopicPartition, ...], assignment: Assignment) -> str:
    """Why partitions and task ids do not pair up, or ""."""
    if len(partitions) == len(assignment.active_tasks):
        return ""
    return (
        f"{len(partitions)} partitions were assigned but {len(assignment.active_tasks)} active "
        "task ids; the leader's answer is broken, look at the leader's log"
    )
