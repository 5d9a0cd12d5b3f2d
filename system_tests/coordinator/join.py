"""JoinGroup: which members are admitted, and whether a join starts a rebalance.

Version probing depends on two rules. A follower of a stable group that rejoins with *unchanged*
metadata gets its current generation, without a rebalance (KAFKA-10455: a forced rejoin must change
the metadata). A leader that rejoins always starts a rebalance.
"""

from system_tests.coordinator.group import Group, Member
from system_tests.coordinator.rebalance import (
    drop_member,
    generation_answer,
    maybe_prepare_rebalance,
    try_complete_join,
)
from system_tests.coordinator.static import replace_static_member
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import (
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    EventKind,
    GroupState,
    JoinAnswer,
    JoinGroup,
)


def check_join_request(turn: Turn, request: JoinGroup) -> ErrorCode:
    """Return the error of a request that does not depend on the group; NONE if it is valid."""
    config = turn.config
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not (
        config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms
    ):
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def join(turn: Turn, group: Group, request: JoinGroup, token: object) -> None:
    """Handle a JoinGroup for a group that exists."""
    if not _is_admitted(turn, group, request.member_id):
        member = group.members.get(request.member_id)
        if member is not None:
            drop_member(turn, group, member)
            turn.record(EventKind.MEMBER_LEFT, group, member, reason="the group is full")
        refuse(turn, token, ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID)
    elif not group.accepts(request.protocol_type, (p.name for p in request.protocols)):
        refuse(turn, token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif request.member_id == UNKNOWN_MEMBER_ID:
        _join_without_id(turn, group, request, token)
    elif request.member_id in group.pending_deadline_by_id:
        _add_member(turn, group, request, request.member_id, token)
    else:
        _rejoin(turn, group, request, token)
    try_complete_join(turn, group)


def refuse(turn: Turn, token: object, error: ErrorCode, member_id: str) -> None:
    """Answer a join with an error."""
    turn.answer(token, JoinAnswer(error=error, member_id=member_id))


def _is_admitted(turn: Turn, group: Group, member_id: str) -> bool:
    """Whether `group.max.size` admits the member; in PreparingRebalance joined members count."""
    limit = turn.config.group_max_size
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            has_joined = member is not None and member.join_token is not None
            return has_joined or group.waiting_joins() < limit
        case _:
            return member_id in group.members or len(group.members) < limit


def _join_without_id(turn: Turn, group: Group, request: JoinGroup, token: object) -> None:
    member_id = turn.new_member_id(request.instance_id or request.client_id)
    if request.instance_id is not None:
        old_id = group.member_by_instance.get(request.instance_id)
        if old_id is None:
            _add_member(turn, group, request, member_id, token)
        else:
            replace_static_member(turn, group, request, member_id, token)
    elif request.needs_known_member_id:
        # KIP-394: the id is sent first, so that retries of lost responses add no dead members.
        group.pending_deadline_by_id[member_id] = group.wake_at(
            turn.now_ms + request.session_timeout_ms
        )
        turn.record(EventKind.MEMBER_ID_HANDED_OUT, group, reason=member_id)
        refuse(turn, token, ErrorCode.MEMBER_ID_REQUIRED, member_id)
    else:
        _add_member(turn, group, request, member_id, token)


def _add_member(
    turn: Turn, group: Group, request: JoinGroup, member_id: str, token: object
) -> None:
    member = Member(
        member_id=member_id,
        instance_id=request.instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
        is_new=True,
        join_token=token,
    )
    if group.state is GroupState.PREPARING_REBALANCE and group.generation == 0:
        group.new_member_added = True
    if not group.members:
        group.protocol_type = request.protocol_type
    group.pending_deadline_by_id.pop(member_id, None)
    group.add(member)
    turn.record(EventKind.MEMBER_JOINED, group, member, reason=request.reason)
    if group.leader_id is None:
        turn.elect_leader(group, member_id, "first member")
    # A new member sends no heartbeats before its first generation; this timeout limits its wait.
    turn.touch(group, member, turn.config.new_member_join_timeout_ms)
    maybe_prepare_rebalance(turn, group, f"new member {member_id}")


def _rejoin(turn: Turn, group: Group, request: JoinGroup, token: object) -> None:
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        if error is ErrorCode.FENCED_INSTANCE_ID:
            turn.record(EventKind.MEMBER_FENCED, group, reason=f"join of {request.member_id}")
        refuse(turn, token, error, request.member_id)
        return
    member = group.members[request.member_id]
    is_leader = group.leader_id == member.member_id
    is_unchanged = member.protocols == request.protocols
    match group.state:
        case GroupState.STABLE if is_leader:
            reason = f"leader {member.member_id} rejoined"
        case GroupState.STABLE | GroupState.COMPLETING_REBALANCE if is_unchanged:
            turn.record(EventKind.MEMBER_KEPT, group, member, reason="unchanged metadata")
            turn.answer(token, generation_answer(group, member))
            return
        case _:
            reason = f"member {member.member_id} rejoined with changed metadata"
    group.set_protocols(member, request.protocols)
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    turn.park_join(member, token)
    turn.record(EventKind.MEMBER_REJOINED, group, member, reason=request.reason)
    maybe_prepare_rebalance(turn, group, reason)
