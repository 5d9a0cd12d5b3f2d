"""The group leader's half of a rebalance: subscriptions in, one answer per member out.

A pure function: metadata, end offsets and settings are handed in. The *version* of the answers is
decided by `probing`, the *tasks* by a strategy; this module joins the two, and it never lets one
member's bytes hurt another: what cannot be decoded is quarantined, keeps what the consumer protocol
says it owns, and is reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assignor.answers import MemberAnswer, Placement, build_answers
from assignor.config import AssignmentConfig
from assignor.errors import LeaderRefused, TaskAssignmentError
from assignor.partitions import TaskPlan, plan_tasks
from assignor.state import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    ClientInput,
    GroupState,
    Strategy,
    TaskAssignment,
    group_state,
    validate,
)
from assignor.sticky import sticky
from assignor.threads import assign_threads
from assignor.topology import Subtopology
from encoding import (
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    AssignorError,
    DecodeError,
    FutureSubscription,
    Subscription,
    TaskId,
    TopicPartition,
    decode_subscription,
)
from probing import Content, LeaderDecision, MemberVersions, Release, decide_answers

# What a default broker stores of one group: all subscriptions and assignments in one record.
GROUP_RECORD_LIMIT = 1_048_588


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member as the JoinGroup response shows it to the leader.

    Attributes:
        member_id: given by the coordinator.
        user_data: its subscription blob.
        owned_partitions: what the consumer protocol says it owns (wire version 1 and up).
    """

    member_id: str
    user_data: bytes
    owned_partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """What a leader knows besides the subscriptions.

    Attributes:
        release: whose versions it reads and whose rules it follows.
        subtopologies: of its own topology.
        config: settings for the strategy.
        strategy: places tasks on clients.
    """

    release: Release
    subtopologies: tuple[Subtopology, ...]
    config: AssignmentConfig
    strategy: Strategy = sticky


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """What the leader sends.

    Attributes:
        answers: member id -> partitions and user data; one entry for every member.
        decision: the versions, and the rule that fired.
        quarantined: member id -> why its bytes could not be read.
        warnings: what the operator should hear of.
    """

    answers: Mapping[str, MemberAnswer]
    decision: LeaderDecision
    quarantined: Mapping[str, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A member with what its bytes said: a subscription, a future one, or a reason why neither."""

    member: GroupMember
    subscription: Subscription | FutureSubscription | None
    unreadable: str = ""

    @property
    def client(self) -> str:
        """Key of the process: its id, or the member alone where no process id can be read."""
        if isinstance(self.subscription, Subscription):
            return str(self.subscription.process_id)
        return f"member {self.member.member_id}"


def assign_group(
    settings: LeaderSettings,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    end_offset_sums: Mapping[TaskId, int] | None = None,
) -> GroupAnswer:
    """Decide the versions, place the tasks, write the answers.

    Args:
        settings: release, topology, configuration and strategy.
        members: every member of the generation, this leader included.
        partition_counts: source topic -> partitions; a topic that is missing is not known yet, and
            its subtopologies wait without an error.
        end_offset_sums: stateful task -> sum of the end offsets of its changelogs, where known.

    Raises:
        LeaderRefused: a leader of this release dies of the group's versions, as Kafka's did.
        TaskAssignmentError: the topology does not fit the partition counts.
    """
    read = [_read(member, settings.release) for member in sorted(members, key=_by_id)]
    decision = decide_answers(
        settings.release,
        [_versions(one) for one in read],
        shutdown_requested=any(_wants_shutdown(one) for one in read),
    )
    if decision.refuse is not None:
        raise LeaderRefused(decision.refuse.why)
    plan = plan_tasks(settings.subtopologies, partition_counts)
    warnings = [f"partition count of {topic} is not known yet" for topic in plan.unknown_topics]
    quarantined = {one.member.member_id: one.unreadable for one in read if one.unreadable}
    warnings += [f"quarantined {member}: {why}" for member, why in sorted(quarantined.items())]
    content = {a.member_id: a.content for a in decision.answers}
    if Content.PREVIOUS in content.values():
        placement = _previous(read, plan, content)
    else:
        placement, said = _place(settings, read, plan, end_offset_sums or {})
        warnings += said
    answers = build_answers(decision, placement, plan.partitions_by_task)
    total = sum(len(m.user_data) for m in members) + sum(len(a.user_data) for a in answers.values())
    if total > GROUP_RECORD_LIMIT:
        warnings.append(
            f"subscriptions and assignments are {total} bytes together, over the "
            f"{GROUP_RECORD_LIMIT} that a default broker stores of a group; raise its "
            "message.max.bytes or drop application.server"
        )
    return GroupAnswer(
        answers=answers, decision=decision, quarantined=quarantined, warnings=tuple(warnings)
    )


def _by_id(member: GroupMember) -> str:
    return member.member_id


def _read(member: GroupMember, release: Release) -> _Read:
    try:
        value = decode_subscription(member.user_data, known_versions=release.known_versions)
    except DecodeError as error:
        return _Read(member=member, subscription=None, unreadable=str(error))
    return _Read(member=member, subscription=value)


def _versions(one: _Read) -> MemberVersions:
    value = one.subscription
    if value is None:
        return MemberVersions(
            member_id=one.member.member_id,
            used_version=0,
            latest_supported_version=0,
            quarantined=True,
        )
    return MemberVersions(
        member_id=one.member.member_id,
        used_version=value.version,
        latest_supported_version=value.latest_supported_version,
    )


def _wants_shutdown(one: _Read) -> bool:
    return (
        isinstance(one.subscription, Subscription)
        and one.subscription.error_code == AssignorError.SHUTDOWN_REQUESTED
    )


def _previous_tasks(one: _Read, task_by_partition: Mapping[TopicPartition, TaskId]) -> set[TaskId]:
    """Tasks that ran on this member: what it reports, and what the consumer protocol says."""
    owned = {task_by_partition[p] for p in one.member.owned_partitions if p in task_by_partition}
    if isinstance(one.subscription, Subscription):
        owned |= set(one.subscription.prev_tasks)
    return owned


def _clients(
    read: Sequence[_Read],
    task_by_partition: Mapping[TopicPartition, TaskId],
    end_offset_sums: Mapping[TaskId, int],
) -> list[ClientInput]:
    """Merge the readable members of each process into one client."""
    parts: dict[str, list[_Read]] = {}
    for one in read:
        if one.subscription is not None:
            parts.setdefault(one.client, []).append(one)
    clients = []
    for process_id, group in sorted(parts.items()):
        active: set[TaskId] = set()
        lags: dict[TaskId, int] = {}
        tags: tuple[tuple[str, str], ...] = ()
        for one in group:
            active |= _previous_tasks(one, task_by_partition)
            if isinstance(one.subscription, Subscription):
                tags = tags or tuple(one.subscription.client_tags)
                for task, offset_sum in one.subscription.task_offset_sums:
                    lags[task] = _lag(offset_sum, end_offset_sums.get(task))
        clients.append(
            ClientInput(
                process_id=process_id,
                threads=len(group),
                active_tasks=frozenset(active),
                lags=lags,
                tags=tags,
            )
        )
    return clients


def _lag(offset_sum: int, end: int | None) -> int:
    if offset_sum == RUNNING:
        return LAG_RUNNING
    if offset_sum == UNKNOWN_OFFSET_SUM or end is None:
        return LAG_UNKNOWN
    return max(0, end - offset_sum)


def _place(
    settings: LeaderSettings,
    read: Sequence[_Read],
    plan: TaskPlan,
    end_offset_sums: Mapping[TaskId, int],
) -> tuple[Placement, list[str]]:
    """Tasks to clients by the strategy, then to threads; what a quarantined member owns stays."""
    task_by_partition = plan.task_by_partition()
    held_back = {
        one.member.member_id: one.member.owned_partitions
        for one in read
        if one.subscription is None
    }
    frozen = {task_by_partition[p] for ps in held_back.values() for p in ps if p in task_by_partition}
    clients = _clients(read, task_by_partition, end_offset_sums)
    if not clients:
        return Placement(partitions_by_member=held_back), []
    state = group_state(
        tasks=plan.partitions_by_task.keys() - frozen,
        stateful_tasks=plan.stateful_tasks,
        clients=clients,
        config=settings.config,
    )
    assignment, warnings = _run(settings.strategy, state)
    members_by_client: dict[str, list[_Read]] = {}
    for one in read:
        if one.subscription is not None:
            members_by_client.setdefault(one.client, []).append(one)
    active: dict[str, tuple[TaskId, ...]] = {}
    standby: dict[str, tuple[TaskId, ...]] = {}
    for number, process_id in enumerate(state.clients):
        group = members_by_client[process_id]
        names = [one.member.member_id for one in group]
        owners = {
            task: one.member.member_id
            for one in group
            for task in _previous_tasks(one, task_by_partition)
        }
        mine = [state.tasks[i] for i in (assignment.active == number).nonzero()[0].tolist()]
        active |= assign_threads(mine, threads=names, owner_by_task=owners)
        copies = [state.tasks[task] for task, client in assignment.standbys if client == number]
        load = {name: len(active[name]) for name in names}
        standby |= assign_threads(copies, threads=names, owner_by_task={}, load_by_thread=load)
    return Placement(
        active_by_member=active,
        standby_by_member=standby,
        partitions_by_member=held_back,
        endpoint_by_member=_endpoints(read),
    ), [*state.warnings, *warnings]


def _run(strategy: Strategy, state: GroupState) -> tuple[TaskAssignment, list[str]]:
    """Run a strategy; one that fails or breaks a rule is reported and replaced by `sticky`."""
    try:
        assignment = strategy(state)
    except Exception as error:  # noqa: BLE001 a user's strategy may raise anything
        why = f"{type(error).__name__}: {error}"
    else:
        problems = validate(state, assignment)
        if not problems:
            return assignment, []
        why = "; ".join(problems[:3])
    fallback = sticky(state)
    broken = validate(state, fallback)
    if broken:
        raise TaskAssignmentError(f"no strategy gave a valid assignment: {why}; {broken[0]}")
    return fallback, [f"the strategy failed ({why}); tasks were placed by `sticky` instead"]


def _previous(read: Sequence[_Read], plan: TaskPlan, content: Mapping[str, Content]) -> Placement:
    """Probing as leaders up to 2.5 answered it: old members keep, future ones get the rest or nothing.

    Every thread of a client is given all tasks that the client ran, as those releases did.
    """
    task_by_partition = plan.task_by_partition()
    by_client: dict[str, set[TaskId]] = {}
    for one in read:
        by_client.setdefault(one.client, set()).update(_previous_tasks(one, task_by_partition))
    active: dict[str, tuple[TaskId, ...]] = {}
    for one in read:
        if content[one.member.member_id] is Content.PREVIOUS:
            mine = by_client[one.client] & plan.partitions_by_task.keys()
            active[one.member.member_id] = tuple(sorted(mine))
    kept = {task for tasks in active.values() for task in tasks}
    rest = sorted(plan.partitions_by_task.keys() - kept)
    takers = sorted(member for member, kind in content.items() if kind is Content.NORMAL)
    for place, member in enumerate(takers):
        active[member] = tuple(rest[place :: len(takers)])
    return Placement(active_by_member=active, endpoint_by_member=_endpoints(read))


def _endpoints(read: Sequence[_Read]) -> dict[str, str]:
    return {
        one.member.member_id: one.subscription.user_endpoint
        for one in read
        if isinstance(one.subscription, Subscription) and one.subscription.user_endpoint
    }
