"""Which tasks of a group with several topologies run, in which form, and on which members.

The decisions are tables in `probing.topologies`. A *unit* is a partition number of a family: all
tasks of one form of it. A unit that its member keeps in an old form is pinned to that member; all
other tasks are placed by the strategy, separately for each set of members that can run them.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from assignor.rebalance.forms.group import GroupTopologies
from assignor.topology import TaskPlan, content_fingerprint
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

_LISTED = 3


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
        waiting: sentences: which partitions wait, and for whom.
        waiting_tasks: number of partitions that wait.
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
    decision = decide_forms(carriers, topologies.topics, level=level)
    ran = _by_subtopology(running, {c.member_id for c in carriers})
    chosen: set[TaskId] = set()
    pinned: dict[TaskId, str] = {}
    waiting: list[str] = []
    count = 0
    for family in decision.families:
        units = _Units(
            family=family,
            ids={form: ids[form] for form in family.forms},
            partitions=partitions,
            ran=ran,
        )
        tasks, kept, waits = units.decide({c.member_id: c for c in carriers})
        chosen |= tasks
        pinned |= kept
        count += len(waits)
        waiting += [*_waiting(topologies, units, waits), *_contradictions(topologies, units)]
    return Selection(
        tasks=frozenset(chosen),
        pinned=pinned,
        shares=_shares(chosen - pinned.keys(), carriers, ids),
        reached=decision.reached,
        waiting=tuple(waiting),
        waiting_tasks=count,
        families=tuple(
            frozenset(ids[form] for form in family.forms)
            for family in decision.families
            if len(family.forms) > 1
        ),
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
        families=tuple(
            frozenset(ids[form] for form in family)
            for family in families(topics)
            if len(family) > 1
        ),
        keeps_copies=True,
    )


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
    tasks: AbstractSet[TaskId], carriers: Sequence[Carrier], ids: Mapping[bytes, int]
) -> tuple[Share, ...]:
    """Tasks by the members that can run them."""
    members_by_number = {
        number: frozenset(c.member_id for c in carriers if form in c.forms)
        for form, number in ids.items()
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
    """

    family: FamilyDecision
    ids: Mapping[bytes, int]
    partitions: Mapping[int, AbstractSet[int]]
    ran: Mapping[int, Sequence[tuple[str, int]]]

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
    ) -> tuple[set[TaskId], dict[TaskId, str], list[int]]:
        """Tasks that run, those that are pinned to a member, and partitions that wait."""
        numbers = self.numbers()
        if self.family.wanted == self.family.forms:
            return {t for p in numbers for t in self.tasks(self.family.forms, p)}, {}, []
        runs = self.runs()
        released = self._released(runs, members)
        tasks: set[TaskId] = set()
        pinned: dict[TaskId, str] = {}
        waits: list[int] = []
        for p in numbers:
            unit = decide_unit(
                self.family,
                runs[p],
                members,
                released=frozenset(m for m, given in released.items() if p in given),
            )
            found = self.tasks(unit.forms, p)
            tasks |= found
            if unit.member is not None:
                pinned |= dict.fromkeys(found, unit.member)
            if not found and not unit.forms:
                waits.append(p)
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


def _waiting(topologies: GroupTopologies, units: _Units, waits: Sequence[int]) -> list[str]:
    """A sentence about the partitions of a family that wait."""
    if not waits:
        return []
    why, topics = units.family.why, _topics(topologies, units)
    return [f"{len(waits)} partitions of the subtopology that reads {topics} wait: {why}"]


def _contradictions(topologies: GroupTopologies, units: _Units) -> list[str]:
    """A sentence about forms of one version that cannot run beside each other."""
    if not units.family.refused:
        return []
    members = sorted(
        carrier.member_id
        for carrier in topologies.carriers
        if carrier.forms.keys() & units.family.refused
    )
    sentence = (
        f"two topologies have version {units.family.version} and differ in the subtopology that"
        f" reads {_topics(topologies, units)}: {', '.join(members[:_LISTED])} get none of its"
        " tasks; give the changed topology a higher version, Topology(version=...)"
    )
    return [sentence]


def _topics(topologies: GroupTopologies, units: _Units) -> str:
    parts = [topologies.numbering[number] for number in sorted(units.ids.values())]
    names = sorted({topic for part in parts for topic in part.source_topics})
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def retired_sentences(topologies: GroupTopologies) -> tuple[str, ...]:
    """Sentences about subtopologies that no member can run any more; their topics stay."""
    return tuple(
        f"the subtopology that reads {', '.join(part.source_topics[:_LISTED])} is retired: no"
        " member can run it; its topics and committed offsets are left as they are"
        for part in topologies.retired
    )


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
    as an owner of the task.
    """
    chosen = restricted(plan, selection.tasks)
    if chosen is plan:
        return plan
    by_partition = dict(chosen.task_by_partition)
    forms = [sorted(family) for family in selection.families]
    family_of = {number: place for place, family in enumerate(forms) for number in family}
    done: set[tuple[int, int]] = set()
    for task in chosen.partitions_by_task:
        family = family_of.get(task.subtopology)
        # The first task of a family and partition number gets all partitions of the other forms.
        if family is None or (family, task.partition) in done:
            continue
        done.add((family, task.partition))
        for other in forms[family]:
            for partition in plan.partitions_by_task.get(TaskId(other, task.partition), ()):
                by_partition.setdefault(partition, task)
    return replace(chosen, task_by_partition=by_partition)
