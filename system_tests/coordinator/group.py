"""The mutable state of a group and its members, with queries on it.

Decisions are made in `join`, `sync`, `membership`, `rebalance` and `offsets`. Members are kept in
the order in which they joined, so that ties are broken the same way in every run.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from system_tests.coordinator.types import (
    CommittedOffset,
    ErrorCode,
    GroupState,
    JoinedMember,
    OffsetKey,
    Protocol,
)

NEVER = 2**63 - 1


@dataclass(kw_only=True)  # no slots: a search copies it often, and copies all attributes at once
class Member:
    """A member. A token that is not `None` belongs to a request that waits for its response."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    join_token: object = None
    sync_token: object = None
    session_deadline_ms: int = NEVER

    def copy(self) -> Self:
        """Return an independent member in the same state; tokens are shared."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    @property
    def is_waiting(self) -> bool:
        """Whether a JoinGroup or SyncGroup is pending; it replaces heartbeats."""
        return self.join_token is not None or self.sync_token is not None

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """The member's bytes for one protocol; empty if it does not offer it."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    """A member in the group's stored record."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """The last stored generation; it survives a move of the coordinator."""

    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    members: tuple[StoredMember, ...]


@dataclass(kw_only=True)
class Group:
    """A group. `wake_ms` is never later than its earliest deadline."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    member_by_instance: dict[str, str] = field(default_factory=dict)
    pending_deadline_by_id: dict[str, int] = field(default_factory=dict)
    unsynced: set[str] = field(default_factory=set)
    offer_count: Counter[str] = field(default_factory=Counter)
    offsets: dict[OffsetKey, CommittedOffset] = field(default_factory=dict)
    join_deadline_ms: int = NEVER
    join_is_delayed: bool = False
    join_delay_left_ms: int = 0
    new_member_added: bool = False
    sync_deadline_ms: int = NEVER
    stored: StoredGroup | None = None
    wake_ms: int = NEVER

    def copy(self) -> Self:
        """Return an independent group in the same state; tokens and stored values are shared."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.members = {name: member.copy() for name, member in self.members.items()}
        other.member_by_instance = self.member_by_instance.copy()
        other.pending_deadline_by_id = self.pending_deadline_by_id.copy()
        other.unsynced = self.unsynced.copy()
        other.offer_count = Counter.__new__(Counter)  # its own copy() counts everything again
        dict.update(other.offer_count, self.offer_count)
        other.offsets = self.offsets.copy()
        return other

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members; 0 without members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may be started from this state."""
        return self.state in (
            GroupState.EMPTY,
            GroupState.COMPLETING_REBALANCE,
            GroupState.STABLE,
        )

    @property
    def has_all_members(self) -> bool:
        """Whether all members have joined the next generation and no handed-out id is pending."""
        return not self.pending_deadline_by_id and all(
            m.join_token is not None for m in self.members.values()
        )

    def waiting_joins(self) -> int:
        """How many members wait for the next generation."""
        return sum(m.join_token is not None for m in self.members.values())

    def wake_at(self, deadline_ms: int) -> int:
        """Register a deadline at which the coordinator has to run, and return it."""
        self.wake_ms = min(self.wake_ms, deadline_ms)
        return deadline_ms

    def deadlines(self) -> Iterator[tuple[int, str, str]]:
        """Every deadline as (ms, what, member id)."""
        if self.join_deadline_ms != NEVER:
            yield self.join_deadline_ms, "join", ""
        if self.sync_deadline_ms != NEVER:
            yield self.sync_deadline_ms, "sync", ""
        for member_id, deadline_ms in self.pending_deadline_by_id.items():
            yield deadline_ms, "pending", member_id
        for member in self.members.values():
            if member.session_deadline_ms != NEVER:
                yield member.session_deadline_ms, "session", member.member_id

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return NONE if the ids belong to a current member, else the error code (KIP-345)."""
        if instance_id is not None:
            owner = self.member_by_instance.get(instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def add(self, member: Member) -> None:
        """Add a member at the end of the joining order."""
        self.members[member.member_id] = member
        self.offer_count.update({p.name for p in member.protocols})
        if member.instance_id is not None:
            self.member_by_instance[member.instance_id] = member.member_id

    def discard(self, member: Member) -> None:
        """Remove a member; the caller elects a new leader if needed."""
        del self.members[member.member_id]
        self.offer_count.subtract({p.name for p in member.protocols})
        self.unsynced.discard(member.member_id)
        if member.instance_id is not None:
            self.member_by_instance.pop(member.instance_id, None)

    def set_protocols(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        """Replace the protocols that a member offers."""
        self.offer_count.subtract({p.name for p in member.protocols})
        self.offer_count.update({p.name for p in protocols})
        member.protocols = protocols

    def shared_protocols(self) -> frozenset[str]:
        """Protocol names that every member offers."""
        total = len(self.members)
        return frozenset(name for name, count in self.offer_count.items() if count == total)

    def accepts(self, protocol_type: str, protocol_names: Iterable[str]) -> bool:
        """Whether a member with these protocols can be in the group."""
        names = frozenset(protocol_names)
        if not self.members:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and bool(names & self.shared_protocols())

    def elect_protocol(self) -> str:
        """Return the protocol with most votes; a member votes for its first shared protocol.

        A tie is broken by the order of joining.

        Raises:
            ValueError: no protocol is shared, or there is no member.
        """
        shared = self.shared_protocols()
        votes = Counter(
            next(p.name for p in m.protocols if p.name in shared)
            for m in self.members.values()
            if shared
        )
        if not votes:
            raise ValueError(
                f"group {self.group_id!r} with {len(self.members)} members shares no protocol; "
                "admit only members that pass accepts()"
            )
        return max(votes, key=lambda name: votes[name])

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Return the members as in the leader's JoinGroup response, with their metadata."""
        return tuple(
            JoinedMember(m.member_id, m.instance_id, m.metadata_for(self.protocol_name))
            for m in self.members.values()
        )
