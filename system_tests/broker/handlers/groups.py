"""Group membership APIs: translate requests to coordinator calls, and results to responses."""

import contextlib
from typing import Any

from kafka.protocol import admin, consumer

from system_tests.broker.handlers.table import Call, Handler
from system_tests.coordinator import (
    ErrorCode,
    GroupState,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinGroup,
    LeaveAnswer,
    LeaveGroup,
    LeavingMember,
    Protocol,
    SyncAnswer,
    SyncGroup,
)

_KNOWN_ID_SINCE = 4
_BATCH_LEAVE_SINCE = 3
_NULL_PROTOCOL_SINCE = 7
_SKIP_ASSIGNMENT_SINCE = 9


def is_coordinator(call: Call, group_id: str) -> bool:
    """Whether the node that received the request coordinates the group."""
    return call.cluster.coordinator_of(group_id) == call.node_id


async def join_group(call: Call) -> Any:
    """JoinGroup v0 to v9; the response can take as long as the rebalance."""
    request = call.request
    if not is_coordinator(call, request.group_id):
        return _join_response(
            call, JoinAnswer(error=ErrorCode.NOT_COORDINATOR, member_id=request.member_id)
        )
    rebalance_timeout_ms = request.rebalance_timeout_ms
    if rebalance_timeout_ms < 0:
        rebalance_timeout_ms = request.session_timeout_ms
    answer = await call.cluster.ask(
        JoinGroup(
            group_id=request.group_id,
            protocol_type=request.protocol_type,
            protocols=tuple(Protocol(p.name, bytes(p.metadata)) for p in request.protocols),
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            client_id=call.client_id,
            client_host=call.client_host,
            needs_known_member_id=call.version >= _KNOWN_ID_SINCE,
            may_skip_assignment=call.version >= _SKIP_ASSIGNMENT_SINCE,
            reason=request.reason or "",
        )
    )
    return _join_response(call, answer)


def _join_response(call: Call, answer: Any) -> Any:
    response = consumer.JoinGroupResponse
    protocol_name = answer.protocol_name
    if protocol_name is None and call.version < _NULL_PROTOCOL_SINCE:
        protocol_name = ""
    return response(
        error_code=answer.error,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=protocol_name,
        leader=answer.leader_id,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            response.JoinGroupResponseMember(
                member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.metadata
            )
            for m in answer.members
        ],
    )


async def sync_group(call: Call) -> Any:
    """SyncGroup v0 to v5."""
    request = call.request
    answer: Any = SyncAnswer(error=ErrorCode.NOT_COORDINATOR)
    if is_coordinator(call, request.group_id):
        answer = await call.cluster.ask(
            SyncGroup(
                group_id=request.group_id,
                member_id=request.member_id,
                generation=request.generation_id,
                instance_id=request.group_instance_id,
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignments={a.member_id: bytes(a.assignment) for a in request.assignments},
            )
        )
    return consumer.SyncGroupResponse(
        error_code=answer.error,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        assignment=answer.assignment,
    )


async def heartbeat(call: Call) -> Any:
    """Heartbeat v0 to v4."""
    request = call.request
    answer: Any = HeartbeatAnswer(error=ErrorCode.NOT_COORDINATOR)
    if is_coordinator(call, request.group_id):
        answer = await call.cluster.ask(
            Heartbeat(
                group_id=request.group_id,
                member_id=request.member_id,
                generation=request.generation_id,
                instance_id=request.group_instance_id,
            )
        )
    return consumer.HeartbeatResponse(error_code=answer.error)


async def leave_group(call: Call) -> Any:
    """LeaveGroup v0 to v5; before v3, the response has the error of the single member."""
    request = call.request
    response = consumer.LeaveGroupResponse
    is_batch = call.version >= _BATCH_LEAVE_SINCE
    answer: Any = LeaveAnswer(error=ErrorCode.NOT_COORDINATOR)
    if is_coordinator(call, request.group_id):
        leaving: tuple[LeavingMember, ...] = (LeavingMember(request.member_id),)
        if is_batch:
            leaving = tuple(
                LeavingMember(m.member_id, m.group_instance_id, m.reason or "")
                for m in request.members
            )
        answer = await call.cluster.ask(LeaveGroup(group_id=request.group_id, members=leaving))
    error = answer.error
    if not is_batch and error is ErrorCode.NONE:
        error = answer.members[0].error
    rows = [
        response.MemberResponse(
            member_id=m.member_id, group_instance_id=m.instance_id, error_code=m.error
        )
        for m in answer.members
    ]
    return response(error_code=error, members=rows)


async def describe_groups(call: Call) -> Any:
    """DescribeGroups v0 to v5; an unknown group is described as Dead, without an error."""
    response = admin.DescribeGroupsResponse
    rows = []
    for group_id in call.request.groups:
        if not is_coordinator(call, group_id):
            rows.append(
                response.DescribedGroup(
                    error_code=ErrorCode.NOT_COORDINATOR, group_id=group_id, members=[]
                )
            )
            continue
        group = call.cluster.coordinator.describe(group_id)
        members = [
            response.DescribedGroup.DescribedGroupMember(
                member_id=m.member_id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                member_metadata=m.metadata,
                member_assignment=m.assignment,
            )
            for m in group.members
        ]
        rows.append(
            response.DescribedGroup(
                error_code=ErrorCode.NONE,
                group_id=group_id,
                group_state=group.state.value,
                protocol_type=group.protocol_type,
                protocol_data=group.protocol_name,
                members=members,
            )
        )
    return response(groups=rows)


async def list_groups(call: Call) -> Any:
    """ListGroups v0 to v5: the groups that this node coordinates, filtered by state and type."""
    states = {state.lower() for state in call.request.states_filter or ()}
    types = {kind.lower() for kind in call.request.types_filter or ()}
    rows = []
    for group_id, group in call.cluster.groups().items():
        is_wanted = (not states or group.state.lower() in states) and (
            not types or "classic" in types
        )
        if is_wanted and is_coordinator(call, group_id):
            rows.append(
                admin.ListGroupsResponse.ListedGroup(
                    group_id=group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state.value,
                    group_type="classic",
                )
            )
    return admin.ListGroupsResponse(error_code=ErrorCode.NONE, groups=rows)


async def delete_groups(call: Call) -> Any:
    """DeleteGroups v0 to v2."""
    rows = []
    for group_id in call.request.groups_names:
        error = ErrorCode.NOT_COORDINATOR
        if is_coordinator(call, group_id):
            error = call.cluster.delete_group(group_id)
        rows.append(
            admin.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
        )
    return admin.DeleteGroupsResponse(results=rows)


def subscribed_topics(call: Call, group_id: str) -> frozenset[str]:
    """Topics to which members of a stable consumer group subscribe."""
    group = call.cluster.coordinator.describe(group_id)
    if group.state is not GroupState.STABLE or group.protocol_type != "consumer":
        return frozenset()
    topics: set[str] = set()
    for member in group.members:
        # A member whose bytes do not decode subscribes to nothing; the decoder can raise
        # any exception.
        with contextlib.suppress(Exception):
            topics.update(consumer.ConsumerProtocolSubscription.decode(member.metadata).topics)
    return frozenset(topics)


GROUP_HANDLERS: dict[str, Handler] = {
    "DeleteGroups": delete_groups,
    "DescribeGroups": describe_groups,
    "Heartbeat": heartbeat,
    "JoinGroup": join_group,
    "LeaveGroup": leave_group,
    "ListGroups": list_groups,
    "SyncGroup": sync_group,
}
