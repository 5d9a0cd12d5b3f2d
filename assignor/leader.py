"""The group leader's half of a rebalance: subscriptions in, one answer per member out.

A pure function: metadata, end offsets and settings are handed in. The *version* of the answers is
decided by `probing`, the *tasks* by a strategy; this module joins the two, and it never lets one
member's bytes hurt another: what cannot be decoded is quarantined, keeps what the consumer protocol
says it owns, and is reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.answers import GroupRequest, MemberAnswer, NativeMember, Placement, build_answers
from assignor.budget import GROUP_RECORD_LIMIT
from assignor.config import AssignmentConfig
from assignor.errors import LeaderRefused, TaskAssignmentError
from assignor.partitions import TaskPlan, plan_tasks
from assignor.state import GroupState, Strategy, TaskAssignment, group_state, validate
from assignor.sticky import sticky
from assignor.subscriptions import (
    GroupMember,
    ReadMember,
    clients_of,
    endpoints_of,
    previous_tasks,
    read_member,
    versions_of,
    wants_shutdown,
)
from assignor.threads import assign_threads
from assignor.topology import Subtopology
from encoding import AssignorError, TaskId, View, ViewReference
from probing import EARLIEST_NATIVE_VERSION, Content, LeaderDecision, Release, decide_answers


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """What a leader knows besides the subscriptions.

    Attributes:
        release: whose versions it reads and whose rules it follows.
        subtopologies: of its own topology.
        config: settings for the strategy.
        strategy: places tasks on clients.
        group_record_limit: bytes that the broker takes for all blobs of a group together.
    """

    release: Release
    subtopologies: tuple[Subtopology, ...]
    config: AssignmentConfig
    strategy: Strategy = sticky
    group_record_limit: int = GROUP_RECORD_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """What the leader sends.

    Attributes:
        answers: member id -> partitions and user data; one entry for every member.
        decision: the versions, and the rule that fired.
        quarantined: member id -> why its bytes could not be read.
        joined: (member id, used version, latest supported version) of every readable member.
        warnings: what the operator should hear of.
    """

    answers: Mapping[str, MemberAnswer]
    decision: LeaderDecision
    quarantined: Mapping[str, str]
    joined: tuple[tuple[str, int, int], ...]
    warnings: tuple[str, ...]


def assign_group(
    settings: LeaderSettings,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    end_offset_sums: Mapping[TaskId, int] | None = None,
    held_view: View | None = None,
) -> GroupAnswer:
    """Decide the versions, place the tasks, write the answers.

    Args:
        settings: release, topology, configuration and strategy.
        members: every member of the generation, this leader included.
        partition_counts: source topic -> partitions; a topic that is missing is not known yet, and
            its subtopologies wait without an error.
        end_offset_sums: stateful task -> sum of the end offsets of its changelogs, where known.
        held_view: the routing view that this leader got as a member, for deltas against it.

    Raises:
        LeaderRefused: a leader of this release dies of the group's versions, as Kafka's did.
        TaskAssignmentError: the topology does not fit the partition counts.
    """
    read = [read_member(member, settings.release) for member in sorted(members, key=_by_id)]
    decision = decide_answers(settings.release, [versions_of(one) for one in read])
    if decision.refusal is not None:
        raise LeaderRefused(decision.refusal.why)
    if any(wants_shutdown(one) for one in read):
        decision = _shut_down(decision)
    plan = plan_tasks(settings.subtopologies, partition_counts)
    warnings = [f"partition count of {topic} is not known yet" for topic in plan.unknown_topics]
    quarantined = {one.member.member_id: one.unreadable for one in read if one.unreadable}
    warnings += [f"quarantined {member}: {why}" for member, why in sorted(quarantined.items())]
    content = {a.member_id: a.content for a in decision.answers}
    readable = content.keys() - set(decision.quarantined_members)
    if any(content[member] is Content.PREVIOUS for member in readable):
        placement = _previous(read, plan, content)
    else:
        out = frozenset(decision.quarantined_members)
        placement, said = _place(settings, read, plan, out, end_offset_sums or {})
        warnings += said
    answers, budget = build_answers(
        GroupRequest(
            decision=decision,
            placement=placement,
            plan=plan,
            natives=_natives(settings.release, read),
            subscription_bytes={m.member_id: len(m.user_data) for m in members},
            known_versions=settings.release.readable_versions,
            held_view=held_view,
            limit=settings.group_record_limit,
        )
    )
    warnings += [budget.warning] if budget.warning else []
    return GroupAnswer(
        answers=answers,
        decision=decision,
        quarantined=quarantined,
        joined=tuple(
            (one.member.member_id, one.subscription.version, one.supported)
            for one in read
            if one.subscription is not None
        ),
        warnings=tuple(warnings),
    )


def _natives(release: Release, read: Sequence[ReadMember]) -> dict[str, NativeMember]:
    """Members that read native bodies, as a leader of ours sees them; a JVM leader sees none."""
    natives = {}
    for one in read:
        versions = versions_of(one)
        theirs = versions.native_version
        if release.is_native and theirs is not None:
            version = max(
                (v for v in release.native_versions if v <= theirs), default=EARLIEST_NATIVE_VERSION
            )
            held = None
            if one.native is not None and one.native.view_epoch >= 0:
                held = ViewReference(one.native.view_epoch, one.native.view_checksum)
            natives[one.member.member_id] = NativeMember(version=version, held=held)
    return natives


def _by_id(member: GroupMember) -> str:
    return member.member_id


def _shut_down(decision: LeaderDecision) -> LeaderDecision:
    """Everybody stops: error 4 and no tasks, in the version that all can read (KIP-671)."""
    return replace(
        decision,
        error_code=int(AssignorError.SHUTDOWN_REQUESTED),
        answers=tuple(replace(one, content=Content.ERROR) for one in decision.answers),
    )


def _place(
    settings: LeaderSettings,
    read: Sequence[ReadMember],
    plan: TaskPlan,
    quarantined: frozenset[str],
    end_offset_sums: Mapping[TaskId, int],
) -> tuple[Placement, list[str]]:
    """Tasks to clients by the strategy, then to threads; what a quarantined member owns stays."""
    task_by_partition = plan.task_by_partition()
    held_back = {
        one.member.member_id: one.member.owned_partitions
        for one in read
        if one.member.member_id in quarantined
    }
    frozen = {
        task_by_partition[p] for ps in held_back.values() for p in ps if p in task_by_partition
    }
    read = [one for one in read if one.member.member_id not in quarantined]
    clients = clients_of(read, task_by_partition, end_offset_sums)
    if not clients:
        return Placement(partitions_by_member=held_back), []
    state = group_state(
        tasks=plan.partitions_by_task.keys() - frozen,
        stateful_tasks=plan.stateful_tasks,
        clients=clients,
        config=settings.config,
    )
    assignment, warnings = _run(settings.strategy, state)
    members_by_client: dict[str, list[ReadMember]] = {}
    for one in read:
        members_by_client.setdefault(one.client, []).append(one)
    active: dict[str, tuple[TaskId, ...]] = {}
    standby: dict[str, tuple[TaskId, ...]] = {}
    for number, process_id in enumerate(state.clients):
        group = members_by_client[process_id]
        names = [one.member.member_id for one in group]
        owners = {
            task: one.member.member_id
            for one in group
            for task in previous_tasks(one, task_by_partition)
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
        endpoint_by_member=endpoints_of(read),
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


def _previous(
    read: Sequence[ReadMember], plan: TaskPlan, content: Mapping[str, Content]
) -> Placement:
    """Probing as leaders up to 2.5 answered it: old members keep, future ones get the rest or none.

    Every thread of a client is given all tasks that the client ran, as those releases did.
    """
    task_by_partition = plan.task_by_partition()
    by_client: dict[str, set[TaskId]] = {}
    for one in read:
        by_client.setdefault(one.client, set()).update(previous_tasks(one, task_by_partition))
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
    return Placement(active_by_member=active, endpoint_by_member=endpoints_of(read))
