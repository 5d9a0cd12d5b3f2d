"""The group leader's half of a rebalance: subscriptions in, one answer per member out.

A pure function: metadata, end offsets and settings are arguments. `assign_group` decodes, admits
topologies and plans tasks; `read_generation` decides versions and claims; `_answer` places,
withholds and writes. No member's bytes harm another member: values are restricted to what the group
can contain (`boundary`), a member whose bytes cannot be decoded is quarantined and reported, claims
of ownership are believed for a few rebalances (`claims`), and any other failure is traced to the
member that causes it (`fault_isolation`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

from assignor.errors import TaskAssignmentError
from assignor.rebalance.forms import (
    NO_TOPOLOGIES,
    GroupTopologies,
    TopologyMemory,
    read_topologies,
    report_of,
)
from assignor.rebalance.leader.answer_bytes import MemberAnswer, write_answers
from assignor.rebalance.leader.answer_checks import check_answers, tasks_of
from assignor.rebalance.leader.boundary import Decoded, decode_members
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory
from assignor.rebalance.leader.fault_isolation import answer_with_quarantine
from assignor.rebalance.leader.generation import Generation, GroupRequest, read_generation
from assignor.rebalance.leader.knowledge import LeaderKnowledge, LeaderSettings, unknown_topic
from assignor.rebalance.leader.members import GroupMember
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.leader.placing import keep_tasks, place_tasks
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.strategy_attempts import NO_FAILURES, StrategyFailures
from assignor.rebalance.leader.withholding import withhold
from assignor.topology import Subtopology, TaskPlan, plan_tasks
from encoding import Subscription, TaskId, TopicPartition, View
from probing import LeaderDecision, RebalanceProtocol

NOTHING_KNOWN = LeaderKnowledge()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """What the leader sends, and what it remembers for the next rebalance.

    Attributes:
        answers: member id -> partitions and user data; one entry for every member.
        decision: the versions, and the rule that fired.
        quarantined: member id -> why its bytes are not used.
        joined: (member id, used version, latest supported version) of every readable member.
        warnings: for the operator.
        transient: those of the warnings that are normal while a group starts: topics that are not
            known yet, and copies for which clients are missing.
        withheld: member id -> partitions that it waits for until their owners revoke them.
        moved_tasks: active tasks that leave the process they ran on, withheld ones included.
        faults: defects: steps of the leader that failed, and how it went on.
        waiting: sentences about partitions that wait for a member with a form of their
            subtopology, and about contradicting topologies.
        waiting_tasks: number of those partitions.
        missing_topics: warning -> the source topic whose partition count is not known.
        topologies: the next `LeaderKnowledge.topologies`.
        lags, lags_at_ms: process id -> `least_lags`, and their time; the next
            `LeaderKnowledge.lags_before` and `lags_at_ms`.
        failures, stalled: of the strategy, and copies whose lag did not shrink; the next fields of
            the same name in `LeaderKnowledge`.
        claims: the next `LeaderKnowledge.claims`, once this answer has arrived at the leader
            itself, if it leads the next generation, too.
    """

    answers: Mapping[str, MemberAnswer]
    decision: LeaderDecision
    quarantined: Mapping[str, str]
    joined: tuple[tuple[str, int, int], ...]
    warnings: tuple[str, ...]
    lags: Mapping[str, Mapping[TaskId, int]]
    withheld: Mapping[str, tuple[TopicPartition, ...]]
    failures: StrategyFailures = NO_FAILURES
    stalled: StalledCopies = NONE_STALLED
    transient: frozenset[str] = frozenset()
    lags_at_ms: int = 0
    moved_tasks: int = 0
    claims: ClaimMemory = NO_CLAIMS
    faults: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    waiting_tasks: int = 0
    missing_topics: Mapping[str, str] = field(default_factory=dict)
    topologies: TopologyMemory = NO_TOPOLOGIES

    def remembered(self) -> LeaderKnowledge:
        """What this leader keeps for the next rebalance; claims count once the answer arrived."""
        return LeaderKnowledge(
            lags_before=self.lags,
            lags_at_ms=self.lags_at_ms,
            failures=self.failures,
            stalled=self.stalled,
            claims=self.claims,
            topologies=self.topologies,
        )


def assign_group(
    settings: LeaderSettings,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    knowledge: LeaderKnowledge = NOTHING_KNOWN,
    held_view: View | None = None,
) -> GroupAnswer:
    """Decide the versions, place the tasks, write the answers.

    Args:
        settings: release, topology, configuration and strategy.
        members: every member of the generation, this leader included.
        partition_counts: source topic -> partitions; subtopologies of a missing topic wait.
        knowledge: end offsets, lags of the previous rebalance, the time: what the leader knows.
        held_view: the routing view that this leader got as a member, for deltas against it.

    Raises:
        LeaderRefused: a leader of this release fails on the group's versions, as Kafka's did.
        TaskAssignmentError: the topology does not fit the partition counts, or no answers pass
            the checks.
    """
    decoded = decode_members(members, settings.release)
    topologies = None  # a leader of Kafka's knows its own topology only
    if settings.release.is_native:
        topologies = _topologies(settings, decoded, knowledge, partition_counts)
    plan, plan_warnings = _plan(settings.subtopologies, topologies, partition_counts)
    request = GroupRequest(
        settings=settings,
        members=tuple(sorted(members, key=attrgetter("member_id"))),
        plan=plan,
        knowledge=_usable(knowledge, settings.subtopologies, topologies),
        held_view=held_view,
        decoded=decoded,
        topologies=topologies,
        plan_warnings=plan_warnings,
    )
    if topologies is None:  # an emulated Kafka leader checks nothing: up to 2.3 it assigned twice
        return _answer(read_generation(request, {}), place_tasks)
    answer, fault = answer_with_quarantine(
        partial(_answer_or_keep, request),
        [m.member_id for m in request.members if m.member_id != knowledge.leader_id],
        otherwise=partial(_keep, request),
    )
    return replace(answer, faults=(fault,)) if fault else answer


def _topologies(
    settings: LeaderSettings,
    decoded: Mapping[str, Decoded],
    knowledge: LeaderKnowledge,
    partition_counts: Mapping[str, int],
) -> GroupTopologies:
    """Which subtopologies each member can run, and how this leader numbers them."""
    subscriptions = {m: value for m, value in decoded.items() if isinstance(value, Subscription)}
    topologies = read_topologies(
        settings.carried,
        [report_of(member, value) for member, value in subscriptions.items()],
        knowledge.topologies,
        leader_id=knowledge.leader_id,
        partition_counts=partition_counts,
        generation=knowledge.generation,
        known=knowledge.reached,
    )
    if not topologies.asked:
        return topologies
    ran = {member: subscriptions[member].prev_tasks for member in sorted(topologies.asked)}
    return topologies.asked_after(ran, knowledge.generation)


def _plan(
    own: tuple[Subtopology, ...],
    topologies: GroupTopologies | None,
    partition_counts: Mapping[str, int],
) -> tuple[TaskPlan, tuple[str, ...]]:
    """The tasks of all subtopologies; of the leader's own if those of other members do not fit."""
    if topologies is None:
        return plan_tasks(own, partition_counts), ()
    try:
        return plan_tasks(topologies.planned, partition_counts), topologies.warnings
    except TaskAssignmentError as error:
        if topologies.planned == own:
            raise
        why = f"subtopologies that only other members can run get no tasks: {error}"
    return plan_tasks(own, partition_counts), (*topologies.warnings, why)


def _usable(
    knowledge: LeaderKnowledge, own: tuple[Subtopology, ...], topologies: GroupTopologies | None
) -> LeaderKnowledge:
    """What a leader's memory says about this group's tasks; one of Kafka's remembers no claims.

    Beside JVM members, tasks are numbered by their topology: what the leader remembers by the
    numbers of its own topology would be about other tasks.
    """
    if topologies is None:
        return replace(knowledge, claims=NO_CLAIMS)
    if topologies.numbering[: len(own)] == own:
        return knowledge.without_subtopologies(topologies.reused)
    return replace(
        knowledge,
        waits={},
        end_offset_sums=None,
        claims=NO_CLAIMS,
        lags_before={},
        lags_at_ms=0,
        stalled=replace(knowledge.stalled, copies=frozenset()),
    )


def _answer_or_keep(request: GroupRequest, ignored: Mapping[str, str]) -> GroupAnswer:
    """Answer the group; without a valid placement, every task stays on the member that ran it.

    Args:
        request: the group.
        ignored: member id -> why its bytes are not used.
    """
    generation = read_generation(request, ignored)
    try:
        return _checked_answer(generation, place_tasks)
    except TaskAssignmentError as error:
        why = str(error)
    warning = f"{why}; nothing of it was sent, and tasks stay where they ran"
    generation = replace(generation, warnings=(*generation.warnings, warning))
    return _checked_answer(generation, partial(keep_tasks, why=why))


def _keep(request: GroupRequest, why: str) -> GroupAnswer:
    """Answer without a strategy: every task stays on the member that ran it."""
    return _checked_answer(read_generation(request, {}), partial(keep_tasks, why=why))


def _checked_answer(
    generation: Generation, place: Callable[[Generation], Placement]
) -> GroupAnswer:
    """Answer the group; a TaskAssignmentError if the answers contradict each other or the plan."""
    answer = _answer(generation, place)
    check_answers(answer.answers, generation.plan)
    return answer


def _answer(generation: Generation, place: Callable[[Generation], Placement]) -> GroupAnswer:
    """Place the tasks, withhold those that other members still own, write the answers."""
    plan, selection = generation.plan, generation.selection
    placement = generation.joined_placement([place(share) for share in generation.shares()])
    safe = _without_owned(generation, placement)
    answers, budget = write_answers(generation, safe)
    given = {task: member for member in answers for task in tasks_of(answers[member], plan)}
    topologies = generation.request.topologies
    return GroupAnswer(
        answers=answers,
        decision=generation.decision,
        quarantined=generation.quarantined,
        joined=generation.joined,
        warnings=tuple(filter(None, (*generation.warnings, *safe.warnings, budget.warning))),
        lags=safe.lags,
        lags_at_ms=safe.lags_at_ms,
        withheld=safe.withheld_by_member,
        failures=safe.failures,
        stalled=safe.stalled,
        transient=generation.transient | safe.transient,
        moved_tasks=_moved(generation, placement),
        claims=generation.claims.remembered(given, safe.unassigned, plan),
        waiting=() if selection is None else selection.waiting,
        waiting_tasks=0 if selection is None else selection.waiting_tasks,
        missing_topics={unknown_topic(topic): topic for topic in plan.unknown_topics},
        topologies=NO_TOPOLOGIES if topologies is None else topologies.memory,
    )


def _without_owned(generation: Generation, placement: Placement) -> Placement:
    """The placement without tasks that a cooperative member still owns; leaders do it since 2.4."""
    release = generation.settings.release
    if not release.is_native and release.rebalance_protocol is RebalanceProtocol.EAGER:
        return placement
    return withhold(
        generation.members,
        generation.plan,
        placement,
        claims=generation.claims,
        now_ms=generation.knowledge.now_ms,
    )


def _moved(generation: Generation, placement: Placement) -> int:
    """Number of active tasks that leave the process they ran on; withheld ones count."""
    clients_by_task: dict[TaskId, set[str]] = {}
    for member in generation.members:
        for task in member.ran:
            clients_by_task.setdefault(task, set()).add(member.client)
    return sum(
        member.client not in clients_by_task.get(task, {member.client})
        for member in generation.members
        for task in placement.active_by_member.get(member.id, ())
    )
