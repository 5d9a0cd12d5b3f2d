"""SyncGroup: stores the leader's assignment and sends each member its part."""

from collections.abc import Mapping

from system_tests.coordinator.group import NEVER, Group
from system_tests.coordinator.rebalance import fail_syncs, maybe_prepare_rebalance
from system_tests.coordinator.storage import store
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import ErrorCode, EventKind, GroupState, SyncAnswer, SyncGroup


def sync(turn: Turn, group: Group, request: SyncGroup, token: object) -> None:
    """Handle a SyncGroup for a group that exists."""
    error = _check(group, request)
    if error is not ErrorCode.NONE:
        if error is ErrorCode.FENCED_INSTANCE_ID:
            turn.record(EventKind.MEMBER_FENCED, group, reason=f"sync of {request.member_id}")
        turn.answer(token, SyncAnswer(error=error))
        return
    member = group.members[request.member_id]
    group.unsynced.discard(member.member_id)
    if not group.unsynced:
        group.sync_deadline_ms = NEVER
    if group.state is GroupState.STABLE:
        turn.touch(group, member)
        turn.answer(token, _assignment_answer(group, member.assignment))
        return
    turn.park_sync(member, token)
    if group.leader_id == member.member_id:
        _store_assignment(turn, group, request.assignments)


def _check(group: Group, request: SyncGroup) -> ErrorCode:
    """Return the first error of the request; NONE if it is valid."""
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    named = (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    )
    if any(asked is not None and asked != current for asked, current in named):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _store_assignment(turn: Turn, group: Group, assignments: Mapping[str, bytes]) -> None:
    """Store the leader's assignment; if its record is too large, start another rebalance."""
    if not store(turn, group, assignments):
        fail_syncs(turn, group, ErrorCode.UNKNOWN_SERVER_ERROR)
        maybe_prepare_rebalance(turn, group, "the assignment could not be stored")
        return
    group.state = GroupState.STABLE
    turn.record(EventKind.ASSIGNMENT_STORED, group, all_members=True)
    for member in group.members.values():
        # Members without an assignment get an empty one.
        member.assignment = assignments.get(member.member_id, b"")
        if member.sync_token is not None:
            turn.answer_sync(member, _assignment_answer(group, member.assignment))
            turn.touch(group, member)


def _assignment_answer(group: Group, assignment: bytes) -> SyncAnswer:
    return SyncAnswer(
        error=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )
