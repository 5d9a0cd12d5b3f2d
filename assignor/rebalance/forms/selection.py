"""Which tasks of a group with several topologies run, in which form, and on which members.

The decisions are tables in `probing.topologies`. A *unit* is a partition number of a family: all
tasks of its forms with this number. Old forms of a unit that members keep are pinned to these
members; all other tasks are placed by the strategy, separately for each set of members that can run
them.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from assignor.rebalance.forms.group import GroupTopologies
from assignor.rebalance.forms.waiting import DecidedFamily, waiting_sentences
from assignor.topology import TaskPlan, content_fingerprint, exclusive_topics
from encoding import TaskId
from probing.topologies import (
    Carrier,
    FamilyDecision,
    Reached,
    answered_memory,
    believed_memory,
    decide_forms,
    decide_unit,
    families,
    shares_released,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Tasks, and the ids of the members that can run them."""

    tasks: frozenset[TaskId]
    members: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What runs in a generation.

    Attributes:
        tasks: that run; all others of the plan wait, are in another form, or are retired.
        pinned: task -> the member that keeps it in its form.
        shares: the tasks that are not pinned, by the members that can run them.
        reached: the memory of reached versions from now on.
        waiting: sentences: which partitions wait, and for whom; inputs of live members that no
            task reads are among them.
        waiting_tasks: number of these partitions.
        families: numbers of subtopologies that are forms of each other.
        keeps_copies: standby copies of the pinned tasks, which run in the form as before, go on.
    """

    tasks: frozenset[TaskId]
    pinned: Mapping[TaskId, str] = field(default_factory=dict)
    shares: tuple[Share, ...] = ()
    reached: Mapping[bytes, Reached] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    waiting_tasks: int = 0
    families: tuple[frozenset[int], ...] = ()
    keeps_copies: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether all members can run all tasks, and none is pinned."""
        return not self.pinned and len(self.shares) <= 1


def select_tasks(
    topologies: GroupTopologies,
    plan: TaskPlan,
    running: Mapping[str, AbstractSet[TaskId]],
    *,
    able: AbstractSet[str],
    level: int | None,
) -> Selection:
    """Return which tasks run, and which members can run them.

    Args:
        topologies: who can run what.
        plan: the tasks of all forms. A form without tasks is as if no member carried it: one of its
            topics is missing, and no other form of the family waits for it.
        running: member id -> tasks that it ran, by the group's numbers.
        able: members that can be given tasks.
        level: the finalized level of `topology.version`.
    """
    ids = {content_fingerprint(part): part.id for part in topologies.numbering}
    partitions: dict[int, set[int]] = {}
    for task in plan.partitions_by_task:
        partitions.setdefault(task.subtopology, set()).add(task.partition)
    carriers = [
        replace(c, forms={form: v for form, v in c.forms.items() if ids[form] in partitions})
        for c in topologies.carriers
        if c.member_id in able
    ]
    if topologies.waits_for_asked:
        return _unchanged(topologies, plan, running, carriers)
    by_id, topics = {carrier.member_id: carrier for carrier in carriers}, topologies.topics
    ran = _by_subtopology(running, by_id.keys())
    decision = decide_forms(carriers, topics, level=level, running=_forms_by_member(ran, ids))
    decided: list[DecidedFamily] = []
    chosen: set[TaskId] = set()
    pinned: dict[TaskId, str] = {}
    for family in decision.families:
        own = {form: ids[form] for form in family.forms}
        units = _Units(family=family, ids=own, partitions=partitions, ran=ran, topics=topics)
        tasks, kept, waits = units.decide(by_id)
        chosen |= tasks
        pinned |= kept
        everything = frozenset(t for p in units.numbers() for t in units.tasks(family.forms, p))
        decided.append(DecidedFamily(decision=family, ids=own, tasks=everything, waits=waits))
    waiting, count = waiting_sentences(topologies, plan, decided, carriers, chosen)
    return Selection(
        tasks=frozenset(chosen),
        pinned=pinned,
        shares=_shares(chosen - pinned.keys(), carriers, decided),
        reached=decision.reached,
        waiting=tuple(waiting),
        waiting_tasks=count,
        families=_family_numbers(topologies, {f for c in carriers for f in c.forms}),
    )


def _unchanged(
    topologies: GroupTopologies,
    plan: TaskPlan,
    running: Mapping[str, AbstractSet[TaskId]],
    carriers: Sequence[Carrier],
) -> Selection:
    """Every task stays on the member that ran it, while other members are asked what they can run.

    What those ran stays free for them: it must not start elsewhere, in a form from which it never
    returns, only because the leader does not know yet who can go on with it.
    """
    ids = {content_fingerprint(part): part.id for part in topologies.numbering}
    topics = topologies.topics
    units: set[tuple[str, int]] = set()
    pinned: dict[TaskId, str] = {}
    for carrier in sorted(carriers, key=lambda carrier: carrier.member_id):
        topics_by_number = {ids[form]: topics[form] for form in carrier.forms}
        for task in sorted(running.get(carrier.member_id, ())):
            used = {(name, task.partition) for name in topics_by_number.get(task.subtopology, ())}
            if used and used.isdisjoint(units) and task in plan.partitions_by_task:
                pinned[task] = carrier.member_id
                units |= used
    return Selection(
        tasks=frozenset(pinned),
        pinned=pinned,
        reached=answered_memory(believed_memory(carriers, topics), carriers),
        families=_family_numbers(topologies, topics.keys()),
        keeps_copies=True,
    )


def _family_numbers(
    topologies: GroupTopologies, live: AbstractSet[bytes]
) -> tuple[frozenset[int], ...]:
    """Numbers of the subtopologies that are forms of each other."""
    topics = {
        part.id: exclusive_topics(part)
        for part in topologies.numbering
        if content_fingerprint(part) in live
    }
    return tuple(family for family in families(topics) if len(family) > 1)


def _forms_by_member(
    ran: Mapping[int, Sequence[tuple[str, int]]], ids: Mapping[bytes, int]
) -> dict[str, frozenset[bytes]]:
    """Member id -> forms of which it ran a task."""
    found: dict[str, set[bytes]] = {}
    for form, number in ids.items():
        for member, _ in ran.get(number, ()):
            found.setdefault(member, set()).add(form)
    return {member: frozenset(forms) for member, forms in found.items()}


def _by_subtopology(
    running: Mapping[str, AbstractSet[TaskId]], members: AbstractSet[str]
) -> dict[int, list[tuple[str, int]]]:
    """Number of a subtopology -> member id and partition of each task that a member ran."""
    ran: dict[int, list[tuple[str, int]]] = {}
    for member in sorted(running.keys() & members):
        for task in running[member]:
            ran.setdefault(task.subtopology, []).append((member, task.partition))
    return ran


def _shares(
    tasks: AbstractSet[TaskId], carriers: Sequence[Carrier], families: Sequence[DecidedFamily]
) -> tuple[Share, ...]:
    """Tasks by the members that can run them."""
    members_by_number = {
        number: frozenset(c.member_id for c in carriers if form in c.forms)
        if family.decision.able is None
        else family.decision.able
        for family in families
        for form, number in family.ids.items()
    }
    shares: dict[frozenset[str], set[TaskId]] = {}
    for task in tasks:
        shares.setdefault(members_by_number[task.subtopology], set()).add(task)
    return tuple(
        Share(tasks=frozenset(found), members=members)
        for members, found in sorted(shares.items(), key=lambda share: sorted(share[0]))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """The partitions of a family: which member runs which form of them.

    Attributes:
        family: its forms, and those that are wanted.
        ids: form -> number of the subtopology.
        partitions: number of a subtopology -> its partitions.
        ran: number of a subtopology -> member id and partition of each task that a member ran.
        topics: form -> topics of which one task at a time may use a partition.
    """

    family: FamilyDecision
    ids: Mapping[bytes, int]
    partitions: Mapping[int, AbstractSet[int]]
    ran: Mapping[int, Sequence[tuple[str, int]]]
    topics: Mapping[bytes, frozenset[str]]

    def numbers(self) -> list[int]:
        """Partition numbers of all forms."""
        return sorted({p for part in self.ids.values() for p in self.partitions.get(part, ())})

    def tasks(self, forms: AbstractSet[bytes], partition: int) -> frozenset[TaskId]:
        """Tasks of these forms, of those that the plan has."""
        return frozenset(
            TaskId(self.ids[form], partition)
            for form in forms
            if partition in self.partitions.get(self.ids[form], ())
        )

    def runs(self) -> dict[int, dict[str, frozenset[bytes]]]:
        """Partition -> member id -> forms that it runs of the partition."""
        found: dict[int, dict[str, frozenset[bytes]]] = {p: {} for p in self.numbers()}
        for form, number in self.ids.items():
            for member, partition in self.ran.get(number, ()):
                by_member = found.get(partition)
                if by_member is not None:
                    by_member[member] = by_member.get(member, frozenset()) | {form}
        return found

    def decide(
        self, members: Mapping[str, Carrier]
    ) -> tuple[set[TaskId], dict[TaskId, str], set[int]]:
        """Tasks that run, those that are pinned to a member, and partitions that wait."""
        numbers = self.numbers()
        if self.family.able is not None or self.family.wanted == self.family.forms:
            return {t for p in numbers for t in self.tasks(self.family.wanted, p)}, {}, set()
        runs = self.runs()
        released = self._released(runs, members)
        tasks: set[TaskId] = set()
        pinned: dict[TaskId, str] = {}
        waits: set[int] = set()
        for p in numbers:
            unit = decide_unit(
                self.family,
                runs[p],
                members,
                self.topics,
                released=frozenset(m for m, given in released.items() if p in given),
            )
            tasks |= self.tasks(unit.forms, p)
            for form, member in unit.owners.items():
                pinned |= dict.fromkeys(self.tasks({form}, p), member)
            if not unit.forms:
                waits.add(p)
        return tasks, pinned, waits

    def _released(
        self, runs: Mapping[int, Mapping[str, frozenset[bytes]]], members: Mapping[str, Carrier]
    ) -> dict[str, frozenset[int]]:
        held: dict[str, list[int]] = {}
        wanted = self.family.wanted
        for p, by_member in runs.items():
            if any(forms & wanted for forms in by_member.values()):
                continue
            for member, forms in sorted(by_member.items())[:1]:
                if forms:
                    held.setdefault(member, []).append(p)
        able = sum(wanted <= m.forms.keys() and n not in held for n, m in members.items())
        others = len(runs) - sum(map(len, held.values()))
        return shares_released(held, able if wanted else 0, others=others)


def restricted(plan: TaskPlan, tasks: AbstractSet[TaskId]) -> TaskPlan:
    """Return the plan with these tasks only; partition counts are kept."""
    if tasks == plan.partitions_by_task.keys():
        return plan
    kept = {task: inputs for task, inputs in plan.partitions_by_task.items() if task in tasks}
    return replace(
        plan,
        partitions_by_task=kept,
        stateful_tasks=plan.stateful_tasks & kept.keys(),
        task_by_partition={p: task for task, inputs in kept.items() for p in inputs},
    )


def selected_plan(plan: TaskPlan, selection: Selection) -> TaskPlan:
    """Return the plan of the selected tasks.

    A partition of another form of a task belongs to the task, so that a member that owns it counts
    as an owner of the task; `TaskPlan.siblings` has the tasks that replace it together.
    """
    chosen = restricted(plan, selection.tasks)
    if chosen is plan:
        return plan
    by_partition = dict(chosen.task_by_partition)
    forms = [sorted(family) for family in selection.families]
    family_of = {number: place for place, family in enumerate(forms) for number in family}
    units: dict[tuple[int, int], list[TaskId]] = {}
    for task in chosen.partitions_by_task:
        family = family_of.get(task.subtopology)
        if family is not None:
            units.setdefault((family, task.partition), []).append(task)
    for (family, number), tasks in units.items():
        for other in forms[family]:
            for partition in plan.partitions_by_task.get(TaskId(other, number), ()):
                by_partition.setdefault(partition, tasks[0])
    return replace(
        chosen,
        task_by_partition=by_partition,
        siblings={task: tuple(tasks) for tasks in units.values() if tasks[1:] for task in tasks},
    )
