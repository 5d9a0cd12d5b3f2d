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
from assignor.topology import TaskPlan, content_fingerprint, exclusive_topics, only_tasks
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
    parts = {content_fingerprint(part): part for part in topologies.numbering}
    form_by_number = {part.id: form for form, part in parts.items()}
    tasks: dict[bytes, dict[int, TaskId]] = {}
    for task in plan.partitions_by_task:
        tasks.setdefault(form_by_number[task.subtopology], {})[task.partition] = task
    carriers = [
        replace(c, forms={form: v for form, v in c.forms.items() if form in tasks})
        for c in topologies.carriers
        if c.member_id in able
    ]
    if topologies.waits_for_asked:
        return _unchanged(topologies, plan, running, carriers)
    by_id, topics = {carrier.member_id: carrier for carrier in carriers}, topologies.topics
    ran = _by_form(running, by_id.keys(), form_by_number)
    decision = decide_forms(carriers, topics, level=level, running=_forms_by_member(ran))
    decided: list[DecidedFamily] = []
    chosen: set[TaskId] = set()
    pinned: dict[TaskId, str] = {}
    for family in decision.families:
        units = _units(family, tasks)
        run, kept, waits = _decide_units(family, units, ran, by_id, topics)
        chosen |= run
        pinned |= kept
        decided.append(
            DecidedFamily(
                decision=family,
                parts=tuple(parts[form] for form in family.forms),
                tasks=frozenset(task for unit in units.values() for task in unit.values()),
                waits=waits,
            )
        )
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
    forms, topics = topologies.forms, topologies.topics
    units: set[tuple[str, int]] = set()
    pinned: dict[TaskId, str] = {}
    for carrier in sorted(carriers, key=lambda carrier: carrier.member_id):
        for task in sorted(running.get(carrier.member_id, ())):
            form = forms[task.subtopology]
            used = {(name, task.partition) for name in topics[form] if form in carrier.forms}
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


def _by_form(
    running: Mapping[str, AbstractSet[TaskId]],
    members: AbstractSet[str],
    form_by_number: Mapping[int, bytes],
) -> dict[bytes, list[tuple[str, int]]]:
    """Form -> member id and partition of each task that a member ran."""
    ran: dict[bytes, list[tuple[str, int]]] = {}
    for member in sorted(running.keys() & members):
        for task in running[member]:
            ran.setdefault(form_by_number[task.subtopology], []).append((member, task.partition))
    return ran


def _forms_by_member(
    ran: Mapping[bytes, Sequence[tuple[str, int]]],
) -> dict[str, frozenset[bytes]]:
    """Member id -> forms of which it ran a task."""
    found: dict[str, set[bytes]] = {}
    for form, runs in ran.items():
        for member, _ in runs:
            found.setdefault(member, set()).add(form)
    return {member: frozenset(forms) for member, forms in found.items()}


def _shares(
    tasks: AbstractSet[TaskId], carriers: Sequence[Carrier], families: Sequence[DecidedFamily]
) -> tuple[Share, ...]:
    """Tasks by the members that can run them."""
    members_by_number = {
        part.id: frozenset(c.member_id for c in carriers if content_fingerprint(part) in c.forms)
        if family.decision.able is None
        else family.decision.able
        for family in families
        for part in family.parts
    }
    shares: dict[frozenset[str], set[TaskId]] = {}
    for task in tasks:
        shares.setdefault(members_by_number[task.subtopology], set()).add(task)
    return tuple(
        Share(tasks=frozenset(found), members=members)
        for members, found in sorted(shares.items(), key=lambda share: sorted(share[0]))
    )


_Units = Mapping[int, Mapping[bytes, TaskId]]
"""Partition number -> form -> its task, of those that the plan has."""


def _units(family: FamilyDecision, tasks: Mapping[bytes, Mapping[int, TaskId]]) -> _Units:
    """The partitions of a family, in order."""
    found: dict[int, dict[bytes, TaskId]] = {}
    for form in family.forms:
        for partition, task in tasks.get(form, {}).items():
            found.setdefault(partition, {})[form] = task
    return dict(sorted(found.items()))


def _decide_units(
    family: FamilyDecision,
    units: _Units,
    ran: Mapping[bytes, Sequence[tuple[str, int]]],
    members: Mapping[str, Carrier],
    topics: Mapping[bytes, frozenset[str]],
) -> tuple[set[TaskId], dict[TaskId, str], set[int]]:
    """Tasks that run, those that are pinned to a member, and partitions that wait."""
    tasks: set[TaskId] = set()
    pinned: dict[TaskId, str] = {}
    waits: set[int] = set()
    if family.able is not None or family.wanted == family.forms:
        for unit in units.values():
            tasks.update(task for form, task in unit.items() if form in family.wanted)
        return tasks, pinned, waits
    runs: dict[int, dict[str, frozenset[bytes]]] = {partition: {} for partition in units}
    for form in family.forms:
        for member, partition in ran.get(form, ()):
            if (by_member := runs.get(partition)) is not None:
                by_member[member] = by_member.get(member, frozenset()) | {form}
    released = _released(family, runs, members)
    for partition, unit in units.items():
        decided = decide_unit(
            family,
            runs[partition],
            members,
            topics,
            released=frozenset(m for m, given in released.items() if partition in given),
        )
        tasks.update(unit[form] for form in decided.forms & unit.keys())
        pinned |= {unit[form]: m for form, m in decided.owners.items() if form in unit}
        if not decided.forms:
            waits.add(partition)
    return tasks, pinned, waits


def _released(
    family: FamilyDecision,
    runs: Mapping[int, Mapping[str, frozenset[bytes]]],
    members: Mapping[str, Carrier],
) -> dict[str, frozenset[int]]:
    """Member id -> partitions that it gives up, so that members of the wanted form get a share."""
    held: dict[str, list[int]] = {}
    wanted = family.wanted
    for partition, by_member in runs.items():
        if by_member and not any(forms & wanted for forms in by_member.values()):
            held.setdefault(min(by_member), []).append(partition)
    able = sum(wanted <= m.forms.keys() and n not in held for n, m in members.items())
    others = len(runs) - sum(map(len, held.values()))
    return shares_released(held, able if wanted else 0, others=others)


def selected_plan(plan: TaskPlan, selection: Selection) -> TaskPlan:
    """Return the plan of the selected tasks.

    A partition of another form of a task belongs to the task, so that a member that owns it counts
    as an owner of the task; `TaskPlan.siblings` has the tasks that replace it together.
    """
    chosen = only_tasks(plan, selection.tasks)
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
