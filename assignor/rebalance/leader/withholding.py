"""Cooperative rebalancing at the leader: nothing is handed out while another member still owns it.

Under KIP-429 members keep their partitions through a rebalance. A task that moves is withheld as a
whole until its owner has given it up; its receiver asks for the next rebalance at once, and keeps
its standby copy meanwhile. Members under the eager protocol own nothing here, so nothing of theirs
is ever withheld.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.rebalance.leader.answer_bytes import Placement
from assignor.rebalance.leader.claims import Claims
from assignor.rebalance.leader.subscriptions import (
    ReadMember,
    owned_by,
    owned_generation,
    previous_standbys,
)
from assignor.topology import TaskPlan
from encoding import TaskId, TopicPartition

_NOW = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A placement that is safe to hand out.

    Attributes:
        placement: without the tasks that another member owns.
        partitions_by_member: what each member has to wait for, sorted.
        tasks: all tasks that are waited for.
    """

    placement: Placement
    partitions_by_member: Mapping[str, tuple[TopicPartition, ...]]
    tasks: frozenset[TaskId]


def withhold(
    read: Sequence[ReadMember],
    plan: TaskPlan,
    placement: Placement,
    *,
    claims: Claims,
    now_ms: int,
) -> Withheld:
    """Take every task out of the placement that another member still owns a partition of.

    A stateful task stays as a standby where the member had it as one before; without state there
    is nothing to keep (KAFKA-10263, and not where there never was a standby: KAFKA-14149's fix).
    The next rebalance is asked for at once, and after a back-off for a task that was withheld in
    the rebalance before already.
    """
    owners = _owners(read, plan, claims)
    if not owners:
        return Withheld(placement=placement, partitions_by_member={}, tasks=frozenset())
    had: dict[str, frozenset[TaskId]] = {}
    active = dict(placement.active_by_member)
    standby = dict(placement.standby_by_member)
    waiting: dict[str, tuple[TopicPartition, ...]] = {}
    withheld: set[TaskId] = set()
    next_ms = dict(placement.next_rebalance_ms)
    for member, tasks in placement.active_by_member.items():
        moving = {task for task in tasks if _is_owned_elsewhere(task, member, plan, owners)}
        if not moving:
            continue
        if not had:  # most rebalances move nothing
            had = {one.member.member_id: frozenset(previous_standbys(one)) for one in read}
        active[member] = tuple(task for task in tasks if task not in moving)
        kept = moving & plan.stateful_tasks & had.get(member, frozenset())
        standby[member] = tuple(sorted({*standby.get(member, ()), *kept}))
        waiting[member] = tuple(sorted(p for t in moving for p in plan.partitions_by_task[t]))
        wait_ms = claims.memory.backoff_ms(moving)
        next_ms[member] = now_ms + wait_ms if wait_ms else _NOW
        withheld |= moving
    safe = replace(
        placement, active_by_member=active, standby_by_member=standby, next_rebalance_ms=next_ms
    )
    return Withheld(placement=safe, partitions_by_member=waiting, tasks=frozenset(withheld))


def _owners(
    read: Sequence[ReadMember], plan: TaskPlan, claims: Claims
) -> dict[TopicPartition, tuple[int, set[str]]]:
    """Partition -> the latest generation in which somebody got it, and who says so."""
    owners: dict[TopicPartition, tuple[int, set[str]]] = {}
    for one in read:
        member, generation = one.member.member_id, owned_generation(one)
        for partition in owned_by(one, plan):
            task = plan.task_by_partition.get(partition)
            if task is None or not claims.is_believed(member, task):
                continue
            latest, names = owners.get(partition, (generation, set()))
            if generation > latest:
                names = set()
            if generation >= latest:
                owners[partition] = generation, names | {member}
    return owners


def _is_owned_elsewhere(
    task: TaskId,
    member: str,
    plan: TaskPlan,
    owners: Mapping[TopicPartition, tuple[int, set[str]]],
) -> bool:
    found = [owners[p][1] for p in plan.partitions_by_task[task] if p in owners]
    return any(member not in names for names in found)
