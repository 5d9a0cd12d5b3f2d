"""Static members (KIP-345, KIP-814): a restarted instance replaces its old member.

The restart of a static member of a stable group causes no rebalance if the group's protocol stays
the same, *even if the member's metadata changed*: the member gets its stored assignment again. As
in Kafka, that assignment was computed for the old metadata.
"""

from dataclasses import replace

from system_tests.coordinator.group import Group, Member
from system_tests.coordinator.rebalance import (
    generation_answer,
    maybe_prepare_rebalance,
    prepare_rebalance,
)
from system_tests.coordinator.storage import store
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import (
    ErrorCode,
    EventKind,
    GroupState,
    JoinAnswer,
    JoinGroup,
    SyncAnswer,
)


def replace_static_member(
    turn: Turn, group: Group, request: JoinGroup, new_id: str, token: object
) -> None:
    """Handle the join of a known instance without member id: it replaces its old member."""
    instance_id = request.instance_id or ""
    old_leader_id = group.leader_id
    member = group.members[group.member_by_instance[instance_id]]
    before = (member.member_id, member.protocols)
    timeouts_before = (member.session_timeout_ms, member.rebalance_timeout_ms)
    _fence(turn, group, member)
    _rename(group, member, new_id)
    turn.record(
        EventKind.MEMBER_REPLACED, group, member, reason=f"{before[0]} restarted as {new_id}"
    )
    group.set_protocols(member, request.protocols)
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.join_token = token
    turn.touch(group, member)
    match group.state:
        case GroupState.STABLE if group.elect_protocol() == group.protocol_name:
            assignments = {m.member_id: m.assignment for m in group.members.values()}
            if store(turn, group, assignments):
                _answer_without_rebalance(turn, group, member, request, old_leader_id)
                return
            group.set_protocols(member, before[1])
            member.session_timeout_ms, member.rebalance_timeout_ms = timeouts_before
            _rename(group, member, before[0])
            failed = JoinAnswer(error=ErrorCode.UNKNOWN_SERVER_ERROR, member_id="")
            turn.answer_join(member, failed)
        case GroupState.STABLE:
            maybe_prepare_rebalance(turn, group, f"static member {instance_id} changes the vote")
        case GroupState.COMPLETING_REBALANCE:
            # The leader may be assigning to the old member id.
            prepare_rebalance(turn, group, f"static member {instance_id} replaced while syncing")
        case _:
            pass


def _fence(turn: Turn, group: Group, member: Member) -> None:
    """Answer the pending requests of the old member with FENCED_INSTANCE_ID."""
    turn.record(EventKind.MEMBER_FENCED, group, member, reason="its instance id joined again")
    error = ErrorCode.FENCED_INSTANCE_ID
    turn.answer_join(member, JoinAnswer(error=error, member_id=member.member_id))
    turn.answer_sync(member, SyncAnswer(error=error))


def _rename(group: Group, member: Member, new_id: str) -> None:
    """Change the id of a member, and keep its position in the joining order."""
    old_id = member.member_id
    member.member_id = new_id
    group.members = {m.member_id: m for m in group.members.values()}
    group.member_by_instance[member.instance_id or ""] = new_id
    if old_id in group.unsynced:
        group.unsynced.remove(old_id)
        group.unsynced.add(new_id)
    if group.leader_id == old_id:
        group.leader_id = new_id


def _answer_without_rebalance(
    turn: Turn, group: Group, member: Member, request: JoinGroup, old_leader_id: str | None
) -> None:
    """Answer a JoinGroup with the current generation; the member does not assign.

    From v9 on the response of a restarted leader has `skip_assignment`. Before v9 it has the
    leader's old member id, so that the member acts as a follower.
    """
    answer = generation_answer(group, member)
    if request.may_skip_assignment:
        answer = replace(answer, skip_assignment=group.leader_id == member.member_id)
    else:
        answer = replace(answer, leader_id=old_leader_id or "", members=())
    turn.answer_join(member, answer)
