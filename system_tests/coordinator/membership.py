"""Heartbeats, expired sessions, and members that leave."""

from system_tests.coordinator.group import Group
from system_tests.coordinator.rebalance import remove_member, settle_after_removal
from system_tests.coordinator.turn import Turn, disarm_session
from system_tests.coordinator.types import (
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    EventKind,
    GroupState,
    Heartbeat,
    HeartbeatAnswer,
    LeaveAnswer,
    LeaveGroup,
    LeavingMember,
    LeftMember,
)

_HEARTBEAT_ANSWERS = {error: HeartbeatAnswer(error=error) for error in ErrorCode}


def heartbeat(turn: Turn, group: Group, request: Heartbeat, token: object) -> None:
    """Handle a Heartbeat: extend the session; the response tells the member to rejoin or not."""
    error = group.check_member(request.member_id, request.instance_id)
    if error is ErrorCode.FENCED_INSTANCE_ID:
        turn.record(EventKind.MEMBER_FENCED, group, reason=f"heartbeat of {request.member_id}")
    elif error is ErrorCode.NONE and request.generation != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION
    if error is ErrorCode.NONE:
        turn.touch(group, group.members[request.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
    turn.answer(token, _HEARTBEAT_ANSWERS[error])


def leave(turn: Turn, group: Group, request: LeaveGroup, token: object) -> None:
    """Handle a LeaveGroup; the response has an error for each member."""
    rows = tuple(
        LeftMember(m.member_id, m.instance_id, _remove_member(turn, group, m))
        for m in request.members
    )
    turn.answer(token, LeaveAnswer(error=ErrorCode.NONE, members=rows))


def _remove_member(turn: Turn, group: Group, leaving: LeavingMember) -> ErrorCode:
    reason = leaving.reason or "asked to leave"
    member_id = leaving.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = group.member_by_instance.get(leaving.instance_id or "", UNKNOWN_MEMBER_ID)
    elif member_id in group.pending_deadline_by_id:
        _forget_pending(turn, group, member_id, EventKind.MEMBER_LEFT, reason)
        return ErrorCode.NONE
    error = group.check_member(member_id, leaving.instance_id)
    if error is ErrorCode.NONE:
        member = group.members[member_id]
        remove_member(turn, group, member, EventKind.MEMBER_LEFT, reason)
    return error


def on_session_deadline(turn: Turn, group: Group, member_id: str) -> None:
    """Remove a member whose session expired, unless it has a pending JoinGroup or SyncGroup.

    A *new* member has no session: its deadline is that of its first generation.
    """
    member = group.members[member_id]
    if member.is_waiting and not member.is_new:
        disarm_session(member)
        return
    reason = f"session of {member.session_timeout_ms} ms expired"
    if member.is_new:
        reason = f"no generation within {turn.config.new_member_join_timeout_ms} ms of joining"
    remove_member(turn, group, member, EventKind.MEMBER_EXPIRED, reason)


def on_pending_deadline(turn: Turn, group: Group, member_id: str) -> None:
    """Drop a member id that was handed out and not used for a join in time."""
    _forget_pending(turn, group, member_id, EventKind.MEMBER_EXPIRED, "never came with its new id")


def _forget_pending(turn: Turn, group: Group, member_id: str, kind: EventKind, reason: str) -> None:
    del group.pending_deadline_by_id[member_id]
    turn.record(kind, group, reason=f"pending member {member_id}: {reason}")
    if group.state is GroupState.PREPARING_REBALANCE:
        settle_after_removal(turn, group, reason)
