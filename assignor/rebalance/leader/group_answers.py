"""From a placement to answers that break no rule, or else the plan of before.

One wrong answer kills every JVM member that gets it. So the answers of a generation are looked at
together before any is sent; where they break a rule, or where there is no placement, tasks stay
where they ran, the operator is told, and the leader looks again after a back-off.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.errors import LeaderRefused, TaskAssignmentError
from assignor.rebalance.leader.answer_bytes import (
    GroupRequest,
    MemberAnswer,
    Placement,
    build_answers,
)
from assignor.rebalance.leader.claims import ClaimMemory, Claims
from assignor.rebalance.leader.placing import LeaderKnowledge, Placed, held_by_quarantined
from assignor.rebalance.leader.record_budget import GroupBudget
from assignor.rebalance.leader.strategy_attempts import failed_again
from assignor.rebalance.leader.subscriptions import ReadMember, endpoints_of, previous_tasks
from assignor.rebalance.leader.threads import assign_threads
from assignor.rebalance.leader.withholding import Withheld, withhold
from assignor.topology import TaskPlan
from encoding import TaskId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answers of a generation.

    Attributes:
        answers: by member id.
        budget: what became of the routing view.
        placed: where the tasks are.
        withheld: member id -> partitions that it waits for.
        claims: to be remembered.
    """

    answers: Mapping[str, MemberAnswer]
    budget: GroupBudget
    placed: Placed
    withheld: Mapping[str, tuple[TopicPartition, ...]]
    claims: ClaimMemory

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the operator should hear of it."""
        return tuple(filter(None, (*self.placed.warnings, self.budget.warning)))


def answer_group(
    request: GroupRequest,
    read: Sequence[ReadMember],
    place: Callable[[], Placed],
    *,
    withholds: bool,
    checks: bool,
    knowledge: LeaderKnowledge,
    claims: Claims,
) -> Answered:
    """Place and answer; where that fails, keep tasks where they ran.

    Args:
        request: everything but the placement.
        read: the members that can have tasks.
        place: makes the placement.
        withholds: tasks that cooperative members own are held back until they give them up.
        checks: of a leader of ours; the rules of old leaders gave tasks twice.
        knowledge: when to look again, and who is the leader.
        claims: which of the members' claims are believed.

    Raises:
        LeaderRefused: an emulated leader dies of the group.
        TaskAssignmentError: the plan of before cannot be answered with either.
    """

    def answered(placed: Placed) -> Answered:
        safe = Withheld(placement=placed.placement, partitions_by_member={}, tasks=frozenset())
        if withholds:
            safe = withhold(
                read, request.plan, placed.placement, claims=claims, now_ms=knowledge.now_ms
            )
        return _answered(request, placed, safe, claims, checks=checks)

    try:
        return answered(place())
    except LeaderRefused:
        raise
    except TaskAssignmentError as error:
        if not checks:
            raise
        why = str(error)
    return answered(kept_where_it_ran(read, request, knowledge, claims, why=why))


def _answered(
    request: GroupRequest, placed: Placed, safe: Withheld, claims: Claims, *, checks: bool
) -> Answered:
    answers, budget = build_answers(replace(request, placement=safe.placement))
    if checks:
        check_answers(answers, request.plan)
    given = {
        task: member
        for member, answer in answers.items()
        for task in _tasks_of(answer, request.plan)
    }
    return Answered(
        answers=answers,
        budget=budget,
        placed=placed,
        withheld=safe.partitions_by_member,
        claims=claims.remembered(given, safe.tasks | placed.frozen, request.plan),
    )


def _tasks_of(answer: MemberAnswer, plan: TaskPlan) -> Iterable[TaskId]:
    """The tasks that a member is given; by partitions where its answer names no tasks."""
    if answer.assignment.active_tasks:
        return answer.assignment.active_tasks
    return {plan.task_by_partition[p] for p in answer.partitions if p in plan.task_by_partition}


def check_answers(answers: Mapping[str, MemberAnswer], plan: TaskPlan) -> None:
    """Look at all answers of a generation together.

    Raises:
        TaskAssignmentError: a partition goes to two members, or a member gets other partitions than
            its tasks read; the message names them. This is a defect of a strategy or of ours.
    """
    owner: dict[TopicPartition, str] = {}
    for member, answer in answers.items():
        for partition in answer.partitions:
            other = owner.setdefault(partition, member)
            if other != member:
                raise TaskAssignmentError(f"{_named(partition)} goes to both {other} and {member}")
        tasks = answer.assignment.active_tasks
        if tasks and _inputs(tasks, plan, member) != list(answer.partitions):
            raise TaskAssignmentError(
                f"{member} gets {len(answer.partitions)} partitions, which are not those that its "
                f"{len(set(tasks))} tasks read"
            )
        both = sorted(set(tasks) & answer.assignment.standby_tasks.keys())
        if both:
            raise TaskAssignmentError(f"{member} gets {both[0]} as active and as standby task")


def _inputs(tasks: Sequence[TaskId], plan: TaskPlan, member: str) -> list[TopicPartition]:
    unknown = sorted(set(tasks) - plan.partitions_by_task.keys())
    if unknown:
        raise TaskAssignmentError(f"{member} gets task {unknown[0]}, which does not exist")
    return sorted(p for task in set(tasks) for p in plan.partitions_by_task[task])


def _named(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def kept_where_it_ran(
    read: Sequence[ReadMember],
    request: GroupRequest,
    knowledge: LeaderKnowledge,
    claims: Claims,
    *,
    why: str,
) -> Placed:
    """Every task on the member that ran it; what nobody ran is dealt evenly, without standbys."""
    plan, quarantined = request.plan, frozenset(request.decision.quarantined_members)
    held = held_by_quarantined(read, plan, quarantined, claims)
    frozen = held.tasks
    able = [one for one in read if one.member.member_id not in quarantined]
    ran = {
        task: one.member.member_id
        for one in reversed(able)
        for task in previous_tasks(one, plan.task_by_partition)
        if task in plan.partitions_by_task
        and task not in frozen
        and claims.is_believed(one.member.member_id, task)
    }
    active: dict[str, list[TaskId]] = {}
    for task, member in ran.items():
        active.setdefault(member, []).append(task)
    rest = sorted(plan.partitions_by_task.keys() - ran.keys() - frozen)
    names = [one.member.member_id for one in able]
    load = {name: len(active.get(name, ())) for name in names}
    dealt = (
        assign_threads(rest, threads=names, owner_by_task={}, load_by_thread=load) if names else {}
    )
    failures = failed_again(knowledge.failures, now_ms=knowledge.now_ms, why=why)
    look = {} if knowledge.leader_id is None else {knowledge.leader_id: failures.retry_at_ms}
    return Placed(
        placement=Placement(
            active_by_member={
                name: tuple(sorted((*active.get(name, ()), *dealt.get(name, ())))) for name in names
            },
            partitions_by_member=held.partitions_by_member,
            endpoint_by_member=endpoints_of(able),
            next_rebalance_ms=look,
        ),
        warnings=(
            f"{why}; nothing of it was sent, and tasks stay where they ran",
            *held.warnings,
        ),
        frozen=frozen,
        failures=failures,
        stalled=knowledge.stalled,
    )
