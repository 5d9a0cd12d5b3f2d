"""The group leader's half of a rebalance: subscriptions in, one answer per member out.

A pure function: metadata, end offsets and settings are arguments, and `read_group` decodes them
once. `lead` runs the other four stages: versions (`decide_versions`), place (`place_tasks`),
withhold (`withhold`), write (`write_answers`). No member's
bytes harm another member: values are restricted to what the group can contain (`boundary`), a
member whose bytes cannot be decoded is quarantined and reported, claims of ownership are believed
for a few rebalances (`claims`), and any other failure is traced to the member that causes it
(`fault_isolation`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from assignor.errors import TaskAssignmentError
from assignor.rebalance.leader.answer_bytes import MemberAnswer, write_answers
from assignor.rebalance.leader.answer_checks import check_answers, tasks_of
from assignor.rebalance.leader.fault_isolation import answer_with_quarantine, search_runs
from assignor.rebalance.leader.generation import Generation, Group, decide_versions
from assignor.rebalance.leader.knowledge import LeaderMemory, unknown_topic
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.leader.placing import keep_tasks, place_tasks
from assignor.rebalance.leader.withholding import withhold
from encoding import TaskId, TopicPartition
from probing import LeaderDecision


@dataclass(frozen=True, kw_only=True)
class Replies:
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
        faults: defects: steps of the leader that failed, and how it continued.
        waiting: sentences about partitions that wait for a member with a form of their
            subtopology, and about contradicting topologies.
        waiting_tasks: number of those partitions.
        missing_topics: warning -> the source topic whose partition count is not known.
        memory: what the leader remembers.
    """

    answers: Mapping[str, MemberAnswer]
    decision: LeaderDecision
    quarantined: Mapping[str, str]
    joined: tuple[tuple[str, int, int], ...]
    warnings: tuple[str, ...]
    withheld: Mapping[str, tuple[TopicPartition, ...]]
    memory: LeaderMemory
    transient: frozenset[str] = frozenset()
    moved_tasks: int = 0
    faults: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    waiting_tasks: int = 0
    missing_topics: Mapping[str, str] = field(default_factory=dict)


def lead(group: Group) -> Replies:
    """Decide the versions, place the tasks, write the answers.

    Raises:
        TaskAssignmentError: no answers pass the checks.
    """
    replies, fault = answer_with_quarantine(
        partial(_reply_or_keep, group),
        [m.member_id for m in group.members if m.member_id != group.inputs.leader_id],
        runs=search_runs(len(group.members) + len(group.plan.partitions_by_task)),
        otherwise=lambda why: _checked(decide_versions(group, {}), partial(keep_tasks, why=why)),
    )
    return replace(replies, faults=(fault,)) if fault else replies


def _reply_or_keep(group: Group, ignored: Mapping[str, str]) -> Replies:
    """Answer the group; without a valid placement, every task stays on the member that ran it.

    Args:
        group: as read.
        ignored: member id -> why its bytes are not used.
    """
    generation = decide_versions(group, ignored)
    try:
        return _checked(generation, place_tasks)
    except TaskAssignmentError as error:
        why = str(error)
    warning = f"{why}; nothing of it was sent, and tasks stay where they ran"
    generation = replace(generation, warnings=(*generation.warnings, warning))
    return _checked(generation, partial(keep_tasks, why=why))


def _checked(generation: Generation, place: Callable[[Generation], Placement]) -> Replies:
    """Answer the group; a TaskAssignmentError if the answers contradict each other or the plan."""
    replies = reply(generation, place)
    check_answers(replies.answers, generation.plan, generation.settings.release.readable_versions)
    return replies


def reply(generation: Generation, place: Callable[[Generation], Placement]) -> Replies:
    """Place the tasks, withhold those that other members still own, write the answers."""
    plan, topologies = generation.plan, generation.topologies
    placement = topologies.place(
        lambda plan, members: place(replace(generation, plan=plan, members=members)),
        plan,
        generation.members,
        generation.able_members(),
        generation.settings.config.num_standby_replicas,
    )
    safe = placement
    if generation.group.parts.withholds:
        safe = withhold(
            generation.members,
            plan,
            placement,
            claims=generation.claims,
            memory=generation.memory.claims,
            now_ms=generation.inputs.now_ms,
        )
    answers, left_out = write_answers(generation, safe)
    given = {task: member for member in answers for task in tasks_of(answers[member], plan)}
    return Replies(
        answers=answers,
        decision=generation.decision,
        quarantined=generation.quarantined,
        joined=generation.joined,
        warnings=tuple(filter(None, (*generation.warnings, *safe.warnings, left_out))),
        withheld=safe.withheld_by_member,
        memory=replace(
            safe.memory,
            claims=generation.claims.remembered(
                generation.memory.claims, given, safe.unassigned, plan
            ),
            topologies=topologies.memory,
        ),
        transient=generation.transient | safe.transient,
        moved_tasks=_count_moved(generation, placement),
        waiting=topologies.waiting,
        waiting_tasks=topologies.waiting_tasks,
        missing_topics={unknown_topic(topic): topic for topic in plan.unknown_topics},
    )


def _count_moved(generation: Generation, placement: Placement) -> int:
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
