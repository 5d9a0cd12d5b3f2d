"""The leader's part for groups whose members have several topologies: one call in each stage.

`read_topologies` decides who can run what, `select_tasks` which tasks run (`assignor.rebalance.
forms`, by the tables of `probing.topologies`). Tasks are placed once for each set of members that
can run the same tasks; old forms of a partition stay pinned to their members.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, TypeVar

from assignor.errors import TaskAssignmentError
from assignor.rebalance.forms.group import GroupTopologies, read_topologies
from assignor.rebalance.forms.reports import reached_rows
from assignor.rebalance.forms.selection import Selection, select_tasks, selected_plan
from assignor.rebalance.forms.translation import renumbered
from assignor.rebalance.forms.waiting import retired_sentences
from assignor.rebalance.leader.claims import NO_CLAIMS
from assignor.rebalance.leader.knowledge import LeaderInputs, LeaderMemory
from assignor.rebalance.leader.members import ReadMember, endpoints_of, of_plan
from assignor.rebalance.leader.parts.absent import OneTopology
from assignor.rebalance.leader.parts.knowledge import LeaderKnowledge
from assignor.rebalance.leader.placements import Placement
from assignor.topology import CarriedTopologies, TaskPlan, only_tasks, plan_tasks
from encoding import RUNNING, Subscription, TaskId, TaskOffsetSums, TopicPartition

Item = TypeVar("Item", TaskId, TopicPartition)
T = TypeVar("T")


class RollingTopologies(OneTopology):
    """The topologies of a group that may change them.

    Args:
        own: what the leader carries.
        topologies: who can run what.
        selection: which tasks run in which form; None: the group has one topology.
    """

    def __init__(
        self,
        own: CarriedTopologies,
        topologies: GroupTopologies,
        selection: Selection | None = None,
    ) -> None:
        super().__init__(own.subtopologies)
        self._own, self._topologies, self._selection = own, topologies, selection
        self.excluded, self.memory = topologies.excluded, topologies.memory
        if selection is not None:
            self.waiting, self.waiting_tasks = selection.waiting, selection.waiting_tasks

    def plan(self, partition_counts: Mapping[str, int]) -> tuple[TaskPlan, tuple[str, ...]]:
        """Return the tasks of all members' subtopologies; of its own if others do not fit."""
        planned, warnings = self._topologies.planned, self._topologies.warnings
        retired = retired_sentences(self._topologies)
        try:
            return plan_tasks(planned, partition_counts), (*warnings, *retired)
        except TaskAssignmentError as error:
            if planned == self.subtopologies:
                raise
            why = f"subtopologies that only other members can run get no tasks: {error}"
        return plan_tasks(self.subtopologies, partition_counts), (*warnings, why, *retired)

    def usable(
        self, memory: LeaderMemory, inputs: LeaderInputs
    ) -> tuple[LeaderMemory, LeaderInputs]:
        """Return what of them is about this group's tasks.

        Beside JVM members, tasks are numbered by their topology: what the leader remembers by the
        numbers of its own topology would be about other tasks.
        """
        topologies, own = self._topologies, self.subtopologies
        if topologies.numbering[: len(own)] != own:
            stalled = replace(memory.stalled, copies=frozenset())
            return (
                replace(memory, claims=NO_CLAIMS, lags_before={}, lags_at_ms=0, stalled=stalled),
                replace(inputs, waits={}, end_offset_sums=None),
            )
        if not topologies.table.reused:
            return memory, inputs
        return without_numbers(memory, inputs, topologies.table.reused)

    def numbered(self, member_id: str, value: Subscription) -> Subscription:
        """Return a subscription with the group's numbers; without tasks if its own are unknown."""
        ran = self._topologies.ran.get(member_id, ())
        if ran and not value.prev_tasks:
            sums = {**dict(value.task_offset_sums), **dict.fromkeys(ran, RUNNING)}
            value = replace(value, task_offset_sums=TaskOffsetSums.from_mapping(sums))
        to_group = self._topologies.table.to_group.get(member_id, ())
        if to_group and to_group == tuple(range(len(to_group))):
            return value
        return replace(value, task_offset_sums=renumbered(value.task_offset_sums, to_group))

    def select(
        self,
        plan: TaskPlan,
        members: Sequence[ReadMember],
        running: Callable[[], Mapping[str, AbstractSet[TaskId]]],
        level: int | None,
    ) -> tuple[OneTopology, TaskPlan]:
        """Return which tasks run in which form; all where the group has one, never changed."""
        topologies = self._topologies
        if not topologies.is_mixed and not any(c.reached for c in topologies.carriers):
            return self, plan
        able = {member.id for member in members if not member.why_quarantined}
        selection = select_tasks(topologies, plan, running(), able=able, level=level)
        selected = RollingTopologies(self._own, topologies, selection)
        return selected, selected_plan(plan, selection)

    def place(
        self,
        place: Callable[[TaskPlan, tuple[ReadMember, ...]], Placement],
        plan: TaskPlan,
        members: tuple[ReadMember, ...],
        able: Sequence[ReadMember],
        standbys: int,
    ) -> Placement:
        """Return the placement of shares and pinned tasks; asked members join again."""
        asked, selection = self._topologies.asked, self._selection
        pinned = {} if selection is None else selection.pinned
        placements = [place(*share) for share in self._shares(plan, members, able)]
        if len(placements) == 1 and not asked and not pinned:
            return placements[0]
        joined = merged_placements(placements)
        active = dict(joined.active_by_member)
        for task, member in sorted(pinned.items()):
            active[member] = tuple(sorted({*active.get(member, ()), task}))
        copies = kept_copies(able, selection, plan.stateful_tasks, standbys)
        return replace(
            joined,
            active_by_member=active,
            standby_by_member={**joined.standby_by_member, **copies},
            endpoint_by_member=endpoints_of(able),
            next_rebalance_ms={**joined.next_rebalance_ms, **dict.fromkeys(sorted(asked), 0)},
        )

    def _shares(
        self, plan: TaskPlan, members: tuple[ReadMember, ...], able: Sequence[ReadMember]
    ) -> Iterator[tuple[TaskPlan, tuple[ReadMember, ...]]]:
        """Plan and members once for each set of members that can run the same tasks."""
        names = {member.id for member in able}
        shares = () if self._selection is None else self._selection.shares
        is_whole = len(shares) <= 1 and all(names <= share.members for share in shares)
        if self._selection is None or (is_whole and not self._selection.pinned):
            yield plan, members
            return
        for share in shares:
            part = only_tasks(plan, share.tasks)
            can = (m for m in members if m.id in share.members or m.id not in names)
            yield part, tuple(of_plan(member, part) for member in can)

    def answer_fields(self, plan: TaskPlan) -> Mapping[str, Any]:
        """Return numbers, reached versions, and whether members describe their topologies."""
        topologies = self._topologies
        numbered_by: tuple[bytes, ...] = ()
        if topologies.is_mixed or not self._own.is_plain:
            # A member need not know the numbers of subtopologies that have no tasks.
            needed = (task.subtopology + 1 for task in plan.partitions_by_task)
            numbered_by = topologies.forms[: max(topologies.base_size, *needed, 0)]
        return {
            "numbered_by": numbered_by,
            "reached_versions": reached_rows(self._selection.reached) if self._selection else (),
            "describe_topology": topologies.is_mixed,
        }


def without_numbers(
    memory: LeaderMemory, inputs: LeaderInputs, numbers: AbstractSet[int]
) -> tuple[LeaderMemory, LeaderInputs]:
    """Return what of them is not about tasks of subtopologies that had these numbers."""

    def others(by_task: Mapping[TaskId, T]) -> dict[TaskId, T]:
        return {task: value for task, value in by_task.items() if task.subtopology not in numbers}

    claims, stalled, sums = memory.claims, memory.stalled, inputs.end_offset_sums
    copies = frozenset(copy for copy in stalled.copies if copy[1].subtopology not in numbers)
    memory = replace(
        memory,
        lags_before={process: others(lags) for process, lags in memory.lags_before.items()},
        stalled=replace(stalled, copies=copies),
        claims=replace(
            claims,
            given=others(claims.given),
            withheld=others(claims.withheld),
            waited=others(claims.waited),
        ),
    )
    return memory, replace(
        inputs,
        waits={number: why for number, why in inputs.waits.items() if number not in numbers},
        end_offset_sums=None if sums is None else others(sums),
    )


def read_rolling_topologies(
    own: CarriedTopologies,
    knowledge: LeaderKnowledge,
    subscriptions: Mapping[str, Subscription],
    partition_counts: Mapping[str, int],
) -> RollingTopologies:
    """Return the topologies of a group.

    Args:
        own: what the leader carries.
        knowledge: what it remembers of topologies and reached versions.
        subscriptions: member id -> its subscription, of all that can be read.
        partition_counts: external topic -> number of partitions.
    """
    topologies = read_topologies(
        own,
        subscriptions,
        knowledge.topologies,
        leader_id=knowledge.leader_id,
        partition_counts=partition_counts,
        generation=knowledge.generation,
        known=knowledge.reached,
    )
    return RollingTopologies(own, topologies)


def kept_copies(
    members: Sequence[ReadMember],
    selection: Selection | None,
    stateful: AbstractSet[TaskId],
    most: int,
) -> dict[str, tuple[TaskId, ...]]:
    """Return the standby tasks that continue while every task stays with its member.

    Args:
        members: those that can be given tasks.
        selection: which member keeps which task; it may keep no copies.
        stateful: tasks that have state.
        most: standby copies of a task; of more, those with most of the changelog are kept.

    Returns:
        Member id -> tasks. A process has one copy of a task, the active one among them.
    """
    if selection is None or not selection.keeps_copies:
        return {}
    owners = selection.pinned
    clients = {member.id: member.client for member in members}
    copies: dict[TaskId, list[tuple[int, str]]] = {}
    for member in members:
        if not isinstance(member.subscription, Subscription):
            continue
        sums = dict(member.subscription.task_offset_sums)
        for task in member.standbys:
            if task in owners and task in stateful:
                copies.setdefault(task, []).append((-sums[task], member.id))
    kept: dict[str, list[TaskId]] = {}
    for task in sorted(copies):
        taken = {clients.get(owners[task])}
        for _, member_id in sorted(copies[task]):
            if clients[member_id] not in taken and len(taken) <= most:
                taken.add(clients[member_id])
                kept.setdefault(member_id, []).append(task)
    return {member_id: tuple(tasks) for member_id, tasks in sorted(kept.items())}


def merged_placements(placements: Sequence[Placement]) -> Placement:
    """Return the placements of disjoint tasks as one."""
    if not placements:
        return Placement()
    next_ms: dict[str, int] = {}
    lags: dict[str, dict[TaskId, int]] = {}
    for each in placements:
        for member, at_ms in each.next_rebalance_ms.items():
            next_ms[member] = min(at_ms, next_ms.get(member, at_ms))
        for process, by_task in each.memory.lags_before.items():
            lags.setdefault(process, {}).update(by_task)
    memories = [each.memory for each in placements]
    return Placement(
        active_by_member=_joined(each.active_by_member for each in placements),
        standby_by_member=_joined(each.standby_by_member for each in placements),
        warmup_by_member=_joined(each.warmup_by_member for each in placements),
        partitions_by_member=_joined(each.partitions_by_member for each in placements),
        next_rebalance_ms=next_ms,
        unassigned=frozenset().union(*(each.unassigned for each in placements)),
        warnings=tuple(dict.fromkeys(w for each in placements for w in each.warnings)),
        transient=frozenset().union(*(each.transient for each in placements)),
        memory=LeaderMemory(
            lags_before=lags,
            lags_at_ms=max(memory.lags_at_ms for memory in memories),
            failures=max((memory.failures for memory in memories), key=lambda f: f.count),
            stalled=max((memory.stalled for memory in memories), key=lambda s: s.looks),
        ),
    )


def _joined(parts: Iterable[Mapping[str, tuple[Item, ...]]]) -> dict[str, tuple[Item, ...]]:
    """Tasks or partitions by member, sorted."""
    found: dict[str, set[Item]] = {}
    for part in parts:
        for member, items in part.items():
            found.setdefault(member, set()).update(items)
    return {member: tuple(sorted(items)) for member, items in found.items()}
