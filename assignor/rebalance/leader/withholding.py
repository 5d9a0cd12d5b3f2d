"""Cooperative rebalancing at the leader: no task is assigned while another member still owns it.

Under KIP-429 members keep their partitions through a rebalance. A task that moves is withheld as a
whole until its owner has revoked it; its receiver asks for the next rebalance at once, and keeps
its standby copy meanwhile. Members under the eager protocol own nothing here, so no task of theirs
is ever withheld.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assignor.rebalance.leader.claims import ClaimMemory, Claims
from assignor.rebalance.leader.members import UNKNOWN_GENERATION, ReadMember
from assignor.rebalance.leader.placements import Placement
from assignor.topology import TaskPlan
from encoding import TaskId, TopicPartition

_NOW = 0


def withhold(
    members: Sequence[ReadMember],
    plan: TaskPlan,
    placement: Placement,
    *,
    claims: Claims,
    memory: ClaimMemory,
    now_ms: int,
) -> Placement:
    """Take every task out of the placement that another member still owns a partition of.

    A stateful task stays as a standby on a member that had it as a standby before (KAFKA-10263),
    and on no other one (KAFKA-14149). The next rebalance is requested at once, and after a back-off
    for a task that was withheld in the previous rebalance, too.

    Returns:
        The placement with `withheld_by_member`, and with the withheld tasks in `unassigned`.
    """
    owners = _owners(members, plan, claims)
    if not owners:
        return placement
    standbys_before: dict[str, frozenset[TaskId]] = {}
    active = dict(placement.active_by_member)
    standby = dict(placement.standby_by_member)
    withheld_by_member: dict[str, tuple[TopicPartition, ...]] = {}
    withheld: set[TaskId] = set()
    next_ms = dict(placement.next_rebalance_ms)
    for member_id, tasks in placement.active_by_member.items():
        moving = {task for task in tasks if _is_owned_elsewhere(task, member_id, plan, owners)}
        if not moving:
            continue
        if not standbys_before:  # most rebalances move nothing
            standbys_before = {member.id: frozenset(member.standbys) for member in members}
        active[member_id] = tuple(task for task in tasks if task not in moving)
        kept = moving & plan.stateful_tasks & standbys_before.get(member_id, frozenset())
        standby[member_id] = tuple(sorted({*standby.get(member_id, ()), *kept}))
        withheld_by_member[member_id] = tuple(
            sorted(p for task in moving for p in plan.partitions_by_task[task])
        )
        wait_ms = memory.backoff_ms(moving)
        next_ms[member_id] = now_ms + wait_ms if wait_ms else _NOW
        withheld |= moving
    return replace(
        placement,
        active_by_member=active,
        standby_by_member=standby,
        next_rebalance_ms=next_ms,
        withheld_by_member=withheld_by_member,
        unassigned=placement.unassigned | withheld,
    )


def _owners(
    members: Sequence[ReadMember], plan: TaskPlan, claims: Claims
) -> dict[TopicPartition, set[str]]:
    """Partition -> the members that may own it: those that got it in the latest generation.

    A member without a generation always counts. JVM members are such: theirs (KIP-792) is a field
    of the consumer protocol, which client libraries do not hand over.
    """
    claimed: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member in members:
        generation = member.owned_generation
        for partition in member.owned:
            task = plan.task_by_partition.get(partition)
            if task is not None and claims.is_believed(member.id, task):
                # A partition of another form of the task counts as the task's first input.
                inputs = plan.partitions_by_task[task]
                keys = {partition if partition in inputs else inputs[0]}
                if task not in member.reported:  # it runs another form, and may use its changelogs
                    siblings = plan.siblings.get(task, ())
                    keys.update(plan.partitions_by_task[sibling][0] for sibling in siblings)
                for key in keys:
                    claimed.setdefault(key, []).append((generation, member.id))
    return {
        partition: {m for g, m in owners if g in {UNKNOWN_GENERATION, max(owners)[0]}}
        for partition, owners in claimed.items()
    }


def _is_owned_elsewhere(
    task: TaskId, member: str, plan: TaskPlan, owners: Mapping[TopicPartition, set[str]]
) -> bool:
    return any(member not in owners[p] for p in plan.partitions_by_task[task] if p in owners)
