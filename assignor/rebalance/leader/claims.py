"""Which member is believed when several say that they run a task, or one says so for too long.

Under the cooperative protocol (KIP-429) a task that moves is withheld until its owner has given it
up, so what members claim decides whether tasks run. A leader therefore remembers what it gave to
whom, and for whom it withheld a task: an owner that goes on claiming a task which was taken from it
several rebalances ago is not waited for any longer, and is named. Rebalances whose answer the owner
did not take do not count: it was not told, and runs the task. A new leader remembers nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from assignor.rebalance.leader.subscriptions import (
    UNKNOWN_GENERATION,
    ReadMember,
    owned_by,
    owned_generation,
    previous_tasks,
)
from assignor.topology import TaskPlan
from encoding import TaskId, shown

PATIENCE = 3
"""Answers in a row, taken by one that claims a task, in which the task is withheld for it."""

LONG_PATIENCE = 12
"""Rebalances in a row, even if no claimant took an answer: nobody blocks a task for good."""

FIRST_BACKOFF_MS = 1_000
_LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMemory:
    """What a leader remembers of the rebalances that it led, without a gap.

    Attributes:
        given: task -> id of the member that it was given to last.
        withheld: task -> rebalances in a row in which nobody was given it, as it was claimed; after
            the first one only those whose claimant had taken the answer before.
        waited: task -> the same, and all of them.
        doubted: member id -> rebalances in which it claimed a task that it was told to give up, or
            that was given to another, less those in which it did not.
    """

    given: Mapping[TaskId, str] = field(default_factory=dict)
    withheld: Mapping[TaskId, int] = field(default_factory=dict)
    waited: Mapping[TaskId, int] = field(default_factory=dict)
    doubted: Mapping[str, int] = field(default_factory=dict)

    def backoff_ms(self, tasks: Iterable[TaskId]) -> int:
        """Milliseconds until the next look at these withheld tasks: none at first, then doubled."""
        rounds = max((self.withheld.get(task, 0) for task in tasks), default=0)
        return FIRST_BACKOFF_MS << (rounds - 1) if rounds else 0


NO_CLAIMS = ClaimMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of one rebalance.

    Attributes:
        by_member: member id -> tasks of which it says that it owns a partition or ran them.
        ignored: member id -> those of them that are not believed.
        memory: of the rebalances before.
        warnings: one sentence for each member that claims on and on.
        uninformed: members that say that they did not take the answer before this rebalance.
    """

    by_member: Mapping[str, AbstractSet[TaskId]]
    ignored: Mapping[str, AbstractSet[TaskId]]
    memory: ClaimMemory
    warnings: tuple[str, ...]
    uninformed: AbstractSet[str] = frozenset()

    def is_believed(self, member_id: str, task: TaskId) -> bool:
        """Whether what a member says of a task counts."""
        return task not in self.ignored.get(member_id, ())

    def remembered(
        self, given: Mapping[TaskId, str], waiting: Iterable[TaskId], plan: TaskPlan
    ) -> ClaimMemory:
        """The memory after this rebalance.

        Args:
            given: task -> member that it is given to now.
            waiting: tasks that nobody is given, since a member claims them.
            plan: all tasks; others are forgotten.
        """
        before, waits = self.memory, frozenset(waiting)
        insists = {
            member
            for member, tasks in self.by_member.items()
            if member not in self.uninformed
            and (self.ignored.get(member) or any(before.withheld.get(t) for t in tasks & waits))
        }
        # Doubt goes as slowly as it came, so that claiming now and then does not help.
        doubted = {
            m: n - (m not in self.uninformed)
            for m, n in before.doubted.items()
            if m in self.by_member
        }
        doubted |= {m: before.doubted.get(m, 0) + 1 for m in insists}
        kept = {t: m for t, m in before.given.items() if t in plan.partitions_by_task}
        return ClaimMemory(
            given={**kept, **given},
            withheld=self._withheld(waits),
            waited={task: before.waited.get(task, 0) + 1 for task in sorted(waits)},
            doubted={m: rounds for m, rounds in sorted(doubted.items()) if rounds},
        )

    def _withheld(self, waits: AbstractSet[TaskId]) -> dict[TaskId, int]:
        """For how many answers, taken by a claimant, each task is withheld now."""
        uninformed, informed = set[TaskId](), set[TaskId]()
        for member, tasks in self.by_member.items():
            (uninformed if member in self.uninformed else informed).update(tasks & waits)
        silent = uninformed - informed
        before = self.memory.withheld
        return {
            task: before.get(task, 0) + (task not in silent or task not in before)
            for task in sorted(waits)
        }


def judge_claims(
    read: Sequence[ReadMember],
    plan: TaskPlan,
    memory: ClaimMemory,
    *,
    generation: int = UNKNOWN_GENERATION,
) -> Claims:
    """Find the claims that are not believed.

    Of several members that claim one task, the one that this leader gave it to is believed alone;
    an owner whose bytes can be read before one whose bytes cannot; then the one that got it in a
    later generation, where both say in which. Nobody is believed about a task that was withheld
    `PATIENCE` times, and a member that insists for so long is believed only in what it was given.

    Args:
        read: every member.
        plan: all tasks.
        memory: of the rebalances before.
        generation: of this rebalance; -1: unknown, and everybody is taken to have heard.
    """
    owned = {one.member.member_id: _owned(one, plan) for one in read}
    by_member = {
        one.member.member_id: previous_tasks(one, plan.task_by_partition)
        | owned[one.member.member_id]
        for one in read
    }
    ignored: dict[str, set[TaskId]] = {}
    for task, members in _disputed(read, by_member, memory).items():
        losers = _losers(task, members, owned, memory) if len(members) > 1 else []
        if memory.withheld.get(task, 0) >= PATIENCE or memory.waited.get(task, 0) >= LONG_PATIENCE:
            losers = [one.member.member_id for one in members]
        for member in losers:
            ignored.setdefault(member, set()).add(task)
    for member, rounds in memory.doubted.items():
        not_given = {task for task in by_member.get(member, ()) if memory.given.get(task) != member}
        if rounds >= PATIENCE and not_given:
            ignored.setdefault(member, set()).update(not_given)
    warnings = tuple(
        _sentence(member, tasks, memory.doubted[member])
        for member, tasks in sorted(ignored.items())
        if memory.doubted.get(member, 0) >= PATIENCE - 1
    )
    uninformed = frozenset(
        one.member.member_id
        for one in read
        if UNKNOWN_GENERATION < owned_generation(one) < generation - 1
    )
    return Claims(
        by_member=by_member,
        ignored=ignored,
        memory=memory,
        warnings=warnings,
        uninformed=uninformed,
    )


def _disputed(
    read: Sequence[ReadMember], by_member: Mapping[str, AbstractSet[TaskId]], memory: ClaimMemory
) -> dict[TaskId, list[ReadMember]]:
    """The claimants of each task, unless every task has one at most and nobody waits for any."""
    claimed = set().union(*by_member.values())
    if len(claimed) == sum(map(len, by_member.values())) and not memory.withheld:
        return {}
    claimants: dict[TaskId, list[ReadMember]] = {}
    for one in read:
        for task in by_member[one.member.member_id]:
            claimants.setdefault(task, []).append(one)
    return claimants


def _owned(one: ReadMember, plan: TaskPlan) -> AbstractSet[TaskId]:
    return {plan.task_by_partition[p] for p in owned_by(one, plan) if p in plan.task_by_partition}


def _losers(
    task: TaskId,
    members: Sequence[ReadMember],
    owned: Mapping[str, AbstractSet[TaskId]],
    memory: ClaimMemory,
) -> list[str]:
    """Those of a task's claimants that are not believed."""
    given = memory.given.get(task)
    if any(one.member.member_id == given for one in members):
        return [one.member.member_id for one in members if one.member.member_id != given]
    has_owner = any(not one.unreadable and task in owned[one.member.member_id] for one in members)
    latest = max(map(owned_generation, members))
    return [
        one.member.member_id
        for one in members
        if (one.unreadable and has_owner) or UNKNOWN_GENERATION < owned_generation(one) < latest
    ]


def _sentence(member: str, tasks: AbstractSet[TaskId], rounds: int) -> str:
    listed = ", ".join(map(str, sorted(tasks)[:_LISTED]))
    more = f" and {len(tasks) - _LISTED} more" if len(tasks) > _LISTED else ""
    return (
        f"member {shown(member)} claims {listed}{more} that it was told to give up or that another"
        f" member runs, and did so {rounds} times before: the claim is ignored; look at the log of"
        " that member, and restart it"
    )
