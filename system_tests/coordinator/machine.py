"""The group coordinator: requests and time in, responses and events out.

It is a state machine without IO: the caller provides the time (`now_ms`, any origin, monotonic),
the random part of member ids, and the tokens of pending requests. The embedded broker and the
simulator use it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

from system_tests.coordinator import membership, offsets, rebalance
from system_tests.coordinator.group import NEVER, Group, Member
from system_tests.coordinator.join import check_join_request, join, refuse
from system_tests.coordinator.sync import sync
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import (
    UNKNOWN_MEMBER_ID,
    CommitAnswer,
    CommitOffsets,
    CommittedOffset,
    CoordinatorConfig,
    Effects,
    ErrorCode,
    EventKind,
    GroupDescription,
    GroupState,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinGroup,
    LeaveAnswer,
    LeaveGroup,
    LeftMember,
    MemberDescription,
    OffsetKey,
    Request,
    SyncAnswer,
    SyncGroup,
)


class Coordinator:
    """The groups of a cluster, on all nodes.

    Args:
        config: settings of the brokers.
        new_member_id: returns a new member id for a client id or an instance id.
        choose_leader: returns the new leader from the member ids, in the order of joining, when
            the leader is gone. Kafka's choice depends on a hash map; default: the first.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        new_member_id: Callable[[str], str],
        *,
        choose_leader: Callable[[Sequence[str]], str] | None = None,
    ) -> None:
        self.config = config
        self._new_member_id = new_member_id
        self._choose_leader = choose_leader or _first
        self._groups: dict[str, Group] = {}

    def copy(
        self,
        new_member_id: Callable[[str], str],
        *,
        choose_leader: Callable[[Sequence[str]], str] | None = None,
    ) -> "Coordinator":
        """Return an independent coordinator in the same state.

        Args:
            new_member_id: function of the copy; existing ids are kept.
            choose_leader: function of the copy.
        """
        other = Coordinator(self.config, new_member_id, choose_leader=choose_leader)
        other._groups = {name: group.copy() for name, group in self._groups.items()}
        return other

    def handle(self, request: Request, *, token: object, now_ms: int) -> Effects:
        """Handle a request; its response is in these effects or in those of a later call.

        Raises:
            ValueError: the token is `None`.
        """
        if token is None:
            raise ValueError("token is None, so the request cannot be answered; pass another token")
        turn = self._turn(now_ms)
        group = self._groups.get(request.group_id)
        if isinstance(request, JoinGroup):
            group = self._group_to_join(turn, group, request, token)
        elif isinstance(request, CommitOffsets):
            group = self._group_to_commit_to(turn, group, request, token)
        elif group is None:
            self._refuse_unknown_group(turn, request, token)
        if group is not None:
            self._dispatch(turn, group, request, token)
            self._expire(turn, group)
        return turn.effects()

    def tick(self, now_ms: int) -> Effects:
        """Handle all deadlines up to `now_ms`."""
        turn = self._turn(now_ms)
        for group_id in sorted(self._groups):
            self._expire(turn, self._groups[group_id])
        return turn.effects()

    def expire(self, group_id: str, member_id: str, *, now_ms: int) -> Effects:
        """Expire a member's session, or a handed-out member id, now.

        For a search without a clock; an unknown id changes nothing.
        """
        turn = self._turn(now_ms)
        group = self._groups.get(group_id)
        if group is not None and member_id in group.pending_deadline_by_id:
            membership.on_pending_deadline(turn, group, member_id)
        elif group is not None and member_id in group.members:
            membership.on_session_deadline(turn, group, member_id)
        return turn.effects()

    def peek(self, group_id: str) -> Group | None:
        """Return a group, which must not be changed; None if it is unknown."""
        return self._groups.get(group_id)

    def next_deadline_ms(self) -> int | None:
        """Return when to call `tick` next; `None` if there is no deadline."""
        earliest = NEVER
        for group in self._groups.values():
            earliest = min(earliest, group.wake_ms)
        return None if earliest == NEVER else earliest

    def group_ids(self) -> tuple[str, ...]:
        """Return all group ids, sorted."""
        return tuple(sorted(self._groups))

    def describe(self, group_id: str) -> GroupDescription:
        """Return a group as in DescribeGroups; an unknown group is `Dead`."""
        group = self._groups.get(group_id) or Group(group_id=group_id, state=GroupState.DEAD)
        is_stable = group.state is GroupState.STABLE
        return GroupDescription(
            group_id=group_id,
            state=group.state,
            generation=group.generation,
            protocol_type=group.protocol_type or "",
            protocol_name=(group.protocol_name or "") if is_stable else "",
            leader_id=group.leader_id,
            members=tuple(_describe_member(group, m) for m in group.members.values()),
        )

    def fetch_offsets(
        self, group_id: str, keys: Iterable[OffsetKey] | None = None
    ) -> Mapping[OffsetKey, CommittedOffset]:
        """Return the committed offsets of `keys` (`None`: all); offset -1 if there is none."""
        return offsets.fetch(self._groups.get(group_id) or Group(group_id=group_id), keys)

    def delete_offsets(
        self,
        group_id: str,
        keys: Iterable[OffsetKey],
        subscribed_topics: frozenset[str] = frozenset(),
    ) -> tuple[ErrorCode, Mapping[OffsetKey, ErrorCode]]:
        """Delete committed offsets; return the error of the group and those of the keys."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, {}
        return ErrorCode.NONE, offsets.delete(group, keys, subscribed_topics)

    def delete_group(self, group_id: str, *, now_ms: int) -> tuple[ErrorCode, Effects]:
        """Delete a group that has no members, with its offsets (KIP-229)."""
        turn = self._turn(now_ms)
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, turn.effects()
        if group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP, turn.effects()
        group.state = GroupState.DEAD
        turn.record(EventKind.GROUP_DELETED, group)
        del self._groups[group_id]
        return ErrorCode.NONE, turn.effects()

    def forget_topic(self, topic: str) -> None:
        """Delete all offsets that groups committed for a deleted topic."""
        for group in self._groups.values():
            for key in [key for key in group.offsets if key.topic == topic]:
                del group.offsets[key]

    def reload(self, group_id: str, *, now_ms: int) -> Effects:
        """Move the group to another coordinator, which reads the group's stored record.

        Pending requests are answered NOT_COORDINATOR. The last stored generation is restored and
        all sessions start again. An unfinished rebalance and handed-out ids are lost.
        """
        turn = self._turn(now_ms)
        group = self._groups.get(group_id)
        if group is None:
            return turn.effects()
        moved = ErrorCode.NOT_COORDINATOR
        for member in group.members.values():
            turn.answer_join(member, JoinAnswer(error=moved, member_id=member.member_id))
            turn.answer_sync(member, SyncAnswer(error=moved))
        loaded = _load(turn, group)
        self._groups[group_id] = loaded
        if group.stored is None and not group.offsets:
            # Nothing of the group was stored, so the new coordinator does not know it.
            del self._groups[group_id]
        if len(loaded.members) > self.config.group_max_size:
            rebalance.prepare_rebalance(turn, loaded, "more members than group.max.size")
        return turn.effects()

    def _turn(self, now_ms: int) -> Turn:
        return Turn(
            now_ms=now_ms,
            config=self.config,
            new_member_id=self._new_member_id,
            choose_leader=self._choose_leader,
        )

    def _group_to_join(
        self, turn: Turn, group: Group | None, request: JoinGroup, token: object
    ) -> Group | None:
        error = check_join_request(turn, request)
        if error is ErrorCode.NONE and group is None and request.member_id != UNKNOWN_MEMBER_ID:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            refuse(turn, token, error, request.member_id)
            return None
        return group or self._groups.setdefault(request.group_id, Group(group_id=request.group_id))

    def _group_to_commit_to(
        self, turn: Turn, group: Group | None, request: CommitOffsets, token: object
    ) -> Group | None:
        error = ErrorCode.NONE
        if not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif group is None and request.generation >= 0:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is not ErrorCode.NONE:
            turn.answer(token, CommitAnswer(errors=dict.fromkeys(request.offsets, error)))
            return None
        return group or self._groups.setdefault(request.group_id, Group(group_id=request.group_id))

    @staticmethod
    def _refuse_unknown_group(turn: Turn, request: Request, token: object) -> None:
        has_name = bool(request.group_id)
        error = ErrorCode.UNKNOWN_MEMBER_ID if has_name else ErrorCode.INVALID_GROUP_ID
        match request:
            case SyncGroup():
                turn.answer(token, SyncAnswer(error=error))
            case Heartbeat():
                turn.answer(token, HeartbeatAnswer(error=error))
            case LeaveGroup():
                rows = tuple(LeftMember(m.member_id, m.instance_id, error) for m in request.members)
                whole = ErrorCode.NONE if has_name else error
                turn.answer(token, LeaveAnswer(error=whole, members=rows))
            case JoinGroup() | CommitOffsets():
                pass

    @staticmethod
    def _dispatch(turn: Turn, group: Group, request: Request, token: object) -> None:
        match request:
            case JoinGroup():
                join(turn, group, request, token)
            case SyncGroup():
                sync(turn, group, request, token)
            case Heartbeat():
                membership.heartbeat(turn, group, request, token)
            case LeaveGroup():
                membership.leave(turn, group, request, token)
            case CommitOffsets():
                offsets.commit(turn, group, request, token)
            case _:
                assert_never(request)

    @staticmethod
    def _expire(turn: Turn, group: Group) -> None:
        """Handle the group's deadlines that are due, the earliest first."""
        if group.wake_ms > turn.now_ms:
            return
        while True:
            due = min(group.deadlines(), default=(NEVER, "", ""))
            if due[0] > turn.now_ms:
                group.wake_ms = due[0]
                return
            _, what, member_id = due
            match what:
                case "join":
                    rebalance.on_join_deadline(turn, group)
                case "sync":
                    rebalance.on_sync_deadline(turn, group)
                case "pending":
                    membership.on_pending_deadline(turn, group, member_id)
                case _:
                    membership.on_session_deadline(turn, group, member_id)


def _first(member_ids: Sequence[str]) -> str:
    return member_ids[0]


def _describe_member(group: Group, member: Member) -> MemberDescription:
    is_stable = group.state is GroupState.STABLE
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=member.metadata_for(group.protocol_name) if is_stable else b"",
        assignment=member.assignment if is_stable else b"",
    )


def _load(turn: Turn, group: Group) -> Group:
    """Return the group as in its stored record."""
    loaded = Group(group_id=group.group_id, offsets=group.offsets, stored=group.stored)
    if group.stored is not None:
        stored = group.stored
        loaded.generation = stored.generation
        loaded.protocol_type = stored.protocol_type
        loaded.protocol_name = stored.protocol_name
        loaded.leader_id = stored.leader_id
        loaded.state = GroupState.STABLE if stored.members else GroupState.EMPTY
        for kept in stored.members:
            member = Member(
                member_id=kept.member_id,
                instance_id=kept.instance_id,
                client_id=kept.client_id,
                client_host=kept.client_host,
                session_timeout_ms=kept.session_timeout_ms,
                rebalance_timeout_ms=kept.rebalance_timeout_ms,
                protocols=kept.protocols,
                assignment=kept.assignment,
            )
            loaded.add(member)
            turn.touch(loaded, member)
    turn.record(EventKind.GROUP_RELOADED, loaded, all_members=True)
    return loaded
