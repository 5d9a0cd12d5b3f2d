"""Decide which member is believed when several claim a task, or one claims it for too long.

Under the cooperative protocol (KIP-429) a task that moves is withheld until its owner has revoked
it, so members' claims decide whether tasks run. A leader therefore remembers which member got which
task, and for which member it withheld a task. It stops waiting for an owner that still claims a
task several rebalances after it had to revoke it, and names that owner. Rebalances whose answer the
owner did not take do not count: it is not informed, and runs the task. A new leader has no memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from assignor.rebalance.leader.members import UNKNOWN_GENERATION, ReadMember
from assignor.topology import TaskPlan
from encoding import TaskId, shown

PATIENCE = 3
"""Consecutive answers, taken by a claimant of a task, in which the task is withheld for it."""

LONG_PATIENCE = 12
"""Consecutive rebalances, even if no claimant took an answer: no member blocks a task for ever."""

FIRST_CLAIM_BACKOFF_MS = 1_000
"""Wait before the first rebalance for tasks that are withheld for their claimants; doubles."""

_LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMemory:
    """What a leader remembers of the consecutive rebalances that it led.

    Attributes:
        given: task -> id of the member that got it last.
        withheld: task -> consecutive rebalances in which no member got it, as it was claimed; after
            the first one only those whose claimant had taken the previous answer.
        waited: task -> the same, counting all of them.
        doubted: member id -> consecutive rebalances in which it claimed a task that it had to
            revoke or that another member got. It is for the operator: no claim depends on it.
    """

    given: Mapping[TaskId, str] = field(default_factory=dict)
    withheld: Mapping[TaskId, int] = field(default_factory=dict)
    waited: Mapping[TaskId, int] = field(default_factory=dict)
    doubted: Mapping[str, int] = field(default_factory=dict)

    def backoff_ms(self, tasks: Iterable[TaskId]) -> int:
        """Milliseconds until the next rebalance for these tasks: 0 at first, then doubling."""
        rounds = max((self.withheld.get(task, 0) for task in tasks), default=0)
        return FIRST_CLAIM_BACKOFF_MS << (rounds - 1) if rounds else 0


NO_CLAIMS = ClaimMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of one rebalance.

    Attributes:
        by_member: member id -> tasks of which it reports to own a partition or to have run them.
        ignored: member id -> those of them that are not believed.
        warnings: a sentence for each member that keeps claiming.
        uninformed: members that report that they did not take the previous answer.
    """

    by_member: Mapping[str, AbstractSet[TaskId]]
    ignored: Mapping[str, AbstractSet[TaskId]]
    warnings: tuple[str, ...]
    uninformed: AbstractSet[str] = frozenset()

    def is_believed(self, member_id: str, task: TaskId) -> bool:
        """Whether a member's claim on a task is believed."""
        return task not in self.ignored.get(member_id, ())

    def remembered(
        self,
        before: ClaimMemory,
        given: Mapping[TaskId, str],
        waiting: Iterable[TaskId],
        plan: TaskPlan,
    ) -> ClaimMemory:
        """The memory after this rebalance.

        Args:
            before: the memory that the claims were checked with.
            given: task -> member that gets it now.
            waiting: tasks that no member gets, since another one claims them.
            plan: all tasks; others are forgotten.
        """
        waits = frozenset(waiting)
        insists = {
            member
            for member, tasks in self.by_member.items()
            if member not in self.uninformed
            and (self.ignored.get(member) or any(before.withheld.get(t) for t in tasks & waits))
        }
        kept = {t: m for t, m in before.given.items() if t in plan.partitions_by_task}
        return ClaimMemory(
            given={**kept, **given},
            withheld=self._withheld(before.withheld, waits),
            waited={task: before.waited.get(task, 0) + 1 for task in sorted(waits)},
            doubted={m: before.doubted.get(m, 0) + 1 for m in sorted(insists)},
        )

    def _withheld(
        self, before: Mapping[TaskId, int], waits: AbstractSet[TaskId]
    ) -> dict[TaskId, int]:
        """Number of answers, taken by a claimant, in which each task has been withheld."""
        uninformed, informed = set[TaskId](), set[TaskId]()
        for member, tasks in self.by_member.items():
            (uninformed if member in self.uninformed else informed).update(tasks & waits)
        silent = uninformed - informed
        return {
            task: before.get(task, 0) + (task not in silent or task not in before)
            for task in sorted(waits)
        }


def check_claims(
    members: Sequence[ReadMember],
    memory: ClaimMemory,
    *,
    generation: int = UNKNOWN_GENERATION,
) -> Claims:
    """Find the claims that are not believed.

    A task that this leader gave to a member of the group is that member's: no other one is believed
    that took the previous answer, or that claims it together with that member. Of several claimants
    of another task an owner whose bytes can be read goes before one whose bytes cannot; then the
    one that got it in a later generation, if both report one. No member is believed about a task
    that was withheld `PATIENCE` times.

    Args:
        members: every member.
        memory: of the rebalances before.
        generation: of this rebalance; -1: unknown, and every member counts as informed.
    """
    by_member = {member.id: member.ran | member.owned_tasks for member in members}
    uninformed = frozenset(
        member.id
        for member in members
        if UNKNOWN_GENERATION < member.owned_generation < generation - 1
    )
    # A static member that was restarted has another id, and the tasks of its former id.
    owners = {task: owner for task, owner in memory.given.items() if owner in by_member}
    ignored: dict[str, set[TaskId]] = {}
    for member_id, tasks in by_member.items():
        others = {task for task in tasks if owners.get(task, member_id) != member_id}
        if member_id in uninformed:
            others = {task for task in others if task in by_member[owners[task]]}
        if others:
            ignored[member_id] = others
    for task, claimants in _disputed(members, by_member, memory).items():
        losers = _losers(task, [m for m in claimants if task not in ignored.get(m.id, ())])
        if memory.withheld.get(task, 0) >= PATIENCE or memory.waited.get(task, 0) >= LONG_PATIENCE:
            losers = [member.id for member in claimants]
        for loser in losers:
            ignored.setdefault(loser, set()).add(task)
    warnings = tuple(
        _sentence(member_id, tasks, memory.doubted[member_id])
        for member_id, tasks in sorted(ignored.items())
        if memory.doubted.get(member_id, 0) >= PATIENCE - 1
    )
    return Claims(by_member=by_member, ignored=ignored, warnings=warnings, uninformed=uninformed)


def believed_tasks(
    members: Sequence[ReadMember], memory: ClaimMemory, *, generation: int
) -> dict[str, AbstractSet[TaskId]]:
    """Member id -> tasks that it reports as running, as far as `check_claims` believes it.

    The leader selects forms of subtopologies by this, and checks the claims of the selected tasks
    afterwards: a claim to a partition is then one to the task that is to run it, whatever form the
    claimant runs. Without the second check, a member that gives nothing up would keep the partition
    from its next form for ever.
    """
    ignored = check_claims(members, memory, generation=generation).ignored
    return {member.id: member.reported - ignored.get(member.id, frozenset()) for member in members}


def _disputed(
    members: Sequence[ReadMember],
    by_member: Mapping[str, AbstractSet[TaskId]],
    memory: ClaimMemory,
) -> dict[TaskId, list[ReadMember]]:
    """The claimants of each task; empty if each task has at most one and none was withheld."""
    claimed = set().union(*by_member.values())
    if len(claimed) == sum(map(len, by_member.values())) and not memory.withheld:
        return {}
    claimants: dict[TaskId, list[ReadMember]] = {}
    for member in members:
        for task in by_member[member.id]:
            claimants.setdefault(task, []).append(member)
    return claimants


def _losers(task: TaskId, claimants: Sequence[ReadMember]) -> list[str]:
    """Those of a task's claimants that are not believed, of several."""
    has_owner = any(
        not member.why_quarantined and task in member.owned_tasks for member in claimants
    )
    latest = max((member.owned_generation for member in claimants), default=UNKNOWN_GENERATION)
    return [
        member.id
        for member in claimants
        if (member.why_quarantined and has_owner)
        or UNKNOWN_GENERATION < member.owned_generation < latest
    ]


def _sentence(member: str, tasks: AbstractSet[TaskId], rounds: int) -> str:
    listed = ", ".join(map(str, sorted(tasks)[:_LISTED]))
    more = f" and {len(tasks) - _LISTED} more" if len(tasks) > _LISTED else ""
    return (
        f"member {shown(member)} claims {listed}{more} that it had to revoke or that another member"
        f" runs, in {rounds + 1} rebalances: the claim is ignored; read the log of that member"
        " and restart it"
    )
