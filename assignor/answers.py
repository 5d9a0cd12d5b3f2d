"""From a placement to the bytes of each member's answer.

Partitions travel in the consumer protocol, sorted; the n-th task id belongs to the n-th partition.
One wrong answer kills every JVM thread that gets it, so each answer is decoded again and compared
before it may leave.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.endpoints import parse_endpoint
from assignor.errors import TaskAssignmentError
from encoding import (
    Assignment,
    HostInfo,
    TaskId,
    TopicPartition,
    decode_assignment,
    encode_assignment,
)
from probing import Answer, Content, LeaderDecision

# A host map exists from this version on, one for standbys from that.
_HOSTS_SINCE = 2

HostMap = Mapping[HostInfo, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Who gets what, by member id.

    Attributes:
        active_by_member, standby_by_member: tasks; a member that is missing gets none.
        partitions_by_member: partitions that a quarantined member keeps, without tasks.
        endpoint_by_member: `host:port` of members that serve queries.
    """

    active_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    standby_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    partitions_by_member: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    endpoint_by_member: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAnswer:
    """What the SyncGroup carries for one member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes
    assignment: Assignment


def build_answers(
    decision: LeaderDecision,
    placement: Placement,
    partitions_by_task: Mapping[TaskId, tuple[TopicPartition, ...]],
) -> dict[str, MemberAnswer]:
    """Write every member's answer, each in the version decided for it.

    Raises:
        TaskAssignmentError: bytes do not say what was meant (a defect; nothing is sent).
    """
    hosts = _hosts(placement, placement.active_by_member, partitions_by_task)
    standby_hosts = _hosts(placement, placement.standby_by_member, partitions_by_task)
    return {
        answer.member_id: _build(
            answer, decision.error_code, placement, partitions_by_task, (hosts, standby_hosts)
        )
        for answer in decision.answers
    }


def _build(
    answer: Answer,
    error_code: int,
    placement: Placement,
    partitions_by_task: Mapping[TaskId, tuple[TopicPartition, ...]],
    hosts: tuple[HostMap, HostMap],
) -> MemberAnswer:
    member = answer.member_id
    is_error = answer.content is Content.ERROR
    is_bare = is_error or answer.content is Content.EMPTY
    tasks = () if is_bare else placement.active_by_member.get(member, ())
    standby = () if is_bare else placement.standby_by_member.get(member, ())
    pairs = sorted((p, task) for task in tasks for p in partitions_by_task[task])
    kept = placement.partitions_by_member.get(member, ())
    has_hosts = answer.version >= _HOSTS_SINCE and not is_error
    assignment = Assignment(
        version=answer.version,
        commonly_supported_version=answer.commonly_supported_version,
        active_tasks=tuple(task for _, task in pairs),
        standby_tasks={task: partitions_by_task[task] for task in standby},
        partitions_by_host=hosts[0] if has_hosts else {},
        standby_partitions_by_host=hosts[1] if has_hosts else {},
        error_code=error_code if is_error else 0,
    )
    user_data = encode_assignment(assignment)
    _check(member, assignment, user_data)
    partitions = tuple(p for p, _ in pairs) or tuple(sorted(kept))
    return MemberAnswer(partitions=partitions, user_data=user_data, assignment=assignment)


def _hosts(
    placement: Placement,
    tasks_by_member: Mapping[str, tuple[TaskId, ...]],
    partitions_by_task: Mapping[TaskId, tuple[TopicPartition, ...]],
) -> dict[HostInfo, tuple[TopicPartition, ...]]:
    hosts: dict[HostInfo, set[TopicPartition]] = {}
    for member, endpoint in sorted(placement.endpoint_by_member.items()):
        host = parse_endpoint(endpoint)
        if host is not None:
            found = hosts.setdefault(host, set())
            for task in tasks_by_member.get(member, ()):
                found.update(partitions_by_task[task])
    return {host: tuple(sorted(partitions)) for host, partitions in sorted(hosts.items())}


def _check(member: str, meant: Assignment, user_data: bytes) -> None:
    said = decode_assignment(user_data)
    agrees = (
        said.version == meant.version
        and said.active_tasks == meant.active_tasks
        and dict(said.standby_tasks) == dict(meant.standby_tasks)
    )
    if not agrees:
        raise TaskAssignmentError(
            f"the answer for {member} does not decode to what was decided (version "
            f"{meant.version}, {len(user_data)} bytes); this is a defect, please report it"
        )
