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
    UNKNOWN_GENERATION,
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
) -> dict[TopicPartition, set[str]]:
    """Partition -> the members that may own it: those that got it in the latest generation.

    JVM members do not say in which generation they got theirs: no number is later than that.
    """
    found: dict[TopicPartition, list[tuple[int, str]]] = {}
    for one in read:
        member, generation = one.member.member_id, owned_generation(one)
        for partition in owned_by(one, plan):
            task = plan.task_by_partition.get(partition)
            if task is not None and claims.is_believed(member, task):
                found.setdefault(partition, []).append((generation, member))
    return {
        partition: {m for g, m in owners if g in {UNKNOWN_GENERATION, max(owners)[0]}}
        for partition, owners in found.items()
    }


def _is_owned_elsewhere(
    task: TaskId, member: str, plan: TaskPlan, owners: Mapping[TopicPartition, set[str]]
) -> bool:
    return any(member not in owners[p] for p in plan.partitions_by_task[task] if p in owners)
