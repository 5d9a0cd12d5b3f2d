"""Cooperative rebalancing at the leader: nothing is handed out while another member still owns it.

Under KIP-429 members keep their partitions through a rebalance. A task that moves is withheld as a
whole until its owner has given it up; its receiver asks for the next rebalance at once, and keeps
its standby copy meanwhile. Members under the eager protocol own nothing here, so nothing of theirs
is ever withheld.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.rebalance.leader.answer_bytes import Placement
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
    """A placement that is safe to hand out, and what each member has to wait for, sorted."""

    placement: Placement
    partitions_by_member: Mapping[str, tuple[TopicPartition, ...]]


def withhold(read: Sequence[ReadMember], plan: TaskPlan, placement: Placement) -> Withheld:
    """Take every task out of the placement that another member still owns a partition of.

    A stateful task stays as a standby where the member had it as one before; without state there
    is nothing to keep (KAFKA-10263, and not where there never was a standby: KAFKA-14149's fix).
    """
    owner = {
        p: one.member.member_id
        for one in sorted(read, key=owned_generation)  # of two claims the later one counts
        for p in owned_by(one, plan)
    }
    if not owner:
        return Withheld(placement=placement, partitions_by_member={})
    had: dict[str, frozenset[TaskId]] = {}
    active = dict(placement.active_by_member)
    standby = dict(placement.standby_by_member)
    waiting: dict[str, tuple[TopicPartition, ...]] = {}
    next_ms = dict(placement.next_rebalance_ms)
    for member, tasks in placement.active_by_member.items():
        moving = [task for task in tasks if _is_owned_elsewhere(task, member, plan, owner)]
        if not moving:
            continue
        if not had:  # most rebalances move nothing
            had = {one.member.member_id: frozenset(previous_standbys(one)) for one in read}
        active[member] = tuple(task for task in tasks if task not in set(moving))
        kept = [t for t in moving if t in plan.stateful_tasks and t in had.get(member, ())]
        standby[member] = tuple(sorted({*standby.get(member, ()), *kept}))
        waiting[member] = tuple(sorted(p for t in moving for p in plan.partitions_by_task[t]))
        next_ms[member] = _NOW
    safe = replace(
        placement, active_by_member=active, standby_by_member=standby, next_rebalance_ms=next_ms
    )
    return Withheld(placement=safe, partitions_by_member=waiting)


def _is_owned_elsewhere(
    task: TaskId, member: str, plan: TaskPlan, owner: Mapping[TopicPartition, str]
) -> bool:
    return any(owner.get(p, member) != member for p in plan.partitions_by_task[task])
