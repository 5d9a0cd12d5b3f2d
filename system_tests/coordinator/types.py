"""Requests, responses and events of the coordinator: frozen values without behaviour.

A request has a *token*: any value but `None`, by which the transport finds the connection that
waits. Every token gets exactly one `Answer`, in this call or in a later one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple


class GroupState(StrEnum):
    """State of a classic group; the value is that of DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ErrorCode(IntEnum):
    """Kafka error codes of group coordination."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86


UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1


class Protocol(NamedTuple):
    """A protocol that a member offers: its name and the member's metadata for it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Broker settings of group coordination; defaults are Apache Kafka's.

    Times are in milliseconds. `group_record_limit` is the maximum size in bytes of a generation's
    record, which holds all subscriptions and assignments.
    """

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    new_member_join_timeout_ms: int = 300_000
    group_max_size: int = 2**31 - 1
    group_record_limit: int = 1_048_588
    offset_metadata_limit: int = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """A JoinGroup request.

    `needs_known_member_id` is true from JoinGroup v4 on, `may_skip_assignment` from v9 on.
    """

    group_id: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str = UNKNOWN_MEMBER_ID
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    needs_known_member_id: bool = True
    may_skip_assignment: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup:
    """A SyncGroup request; that of the leader holds the assignments of all members."""

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A Heartbeat request."""

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None


class LeavingMember(NamedTuple):
    """A leaving member: its member id, or only its instance id if an operator removes it."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroup:
    """A LeaveGroup request; the members leave in this order."""

    group_id: str
    members: tuple[LeavingMember, ...]


class OffsetKey(NamedTuple):
    """A partition, as the key of a committed offset."""

    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    """A committed offset, its leader epoch (-1: unknown), and the user's metadata."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOffsets:
    """An OffsetCommit request of a member, or of a client outside the group (generation -1)."""

    group_id: str
    offsets: Mapping[OffsetKey, CommittedOffset]
    member_id: str = UNKNOWN_MEMBER_ID
    generation: int = NO_GENERATION
    instance_id: str | None = None


Request = JoinGroup | SyncGroup | Heartbeat | LeaveGroup | CommitOffsets


class JoinedMember(NamedTuple):
    """A member in the leader's JoinGroup response, with its metadata for the chosen protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAnswer:
    """Answer to `JoinGroup`; `members` is filled for the group leader only."""

    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswer:
    """Answer to `SyncGroup`."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """Answer to `Heartbeat`."""

    error: ErrorCode


class LeftMember(NamedTuple):
    """The result for one leaving member."""

    member_id: str
    instance_id: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveAnswer:
    """Answer to `LeaveGroup`: `error` of the whole request, `members` with their own errors."""

    error: ErrorCode
    members: tuple[LeftMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAnswer:
    """Answer to `CommitOffsets`, one code per partition."""

    errors: Mapping[OffsetKey, ErrorCode]


Response = JoinAnswer | SyncAnswer | HeartbeatAnswer | LeaveAnswer | CommitAnswer


class Answer(NamedTuple):
    """The response to the request with this token."""

    token: object
    response: Response


class EventKind(StrEnum):
    """Kind of a group's event."""

    MEMBER_ID_HANDED_OUT = "member id handed out"
    MEMBER_JOINED = "member joined"
    MEMBER_REJOINED = "member rejoined"
    MEMBER_KEPT = "member kept its generation"
    MEMBER_LEFT = "member left"
    MEMBER_EXPIRED = "member expired"
    MEMBER_REPLACED = "static member replaced"
    MEMBER_FENCED = "member fenced"
    LEADER_ELECTED = "leader elected"
    REBALANCE_STARTED = "rebalance started"
    GENERATION_COMPLETED = "generation completed"
    ASSIGNMENT_STORED = "assignment stored"
    STORE_FAILED = "store failed"
    GROUP_EMPTIED = "group emptied"
    GROUP_DELETED = "group deleted"
    GROUP_RELOADED = "group reloaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvent:
    """An event of a group; `members` is filled for events of the whole group."""

    at_ms: int
    kind: EventKind
    group_id: str
    generation: int
    member_id: str = ""
    instance_id: str | None = None
    reason: str = ""
    members: tuple[str, ...] = ()


class Effects(NamedTuple):
    """Effects of a call, in order: responses to send, and events."""

    answers: tuple[Answer, ...]
    events: tuple[GroupEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member as in DescribeGroups; metadata and assignment are empty unless Stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as in DescribeGroups; an unknown group is `Dead` and has no members."""

    group_id: str
    state: GroupState
    generation: int
    protocol_type: str
    protocol_name: str
    leader_id: str | None
    members: tuple[MemberDescription, ...]
