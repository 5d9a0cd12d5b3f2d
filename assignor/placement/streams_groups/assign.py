"""The sticky assignor of streams groups, member by member, as brokers of Kafka 4.2.0 to 4.4.0.

Its source is `org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor`; the class
file is the same in 4.2.0 and 4.3.1. It knows the target assignment of each member before, and
from 4.4.0 on the offsets that members report of state on their disks (KAFKA-20719); no racks and
no tags. Without offsets all these releases decide alike.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from assignor.errors import TaskAssignmentError
from assignor.placement.jvm.java_collections import (
    JavaQueue,
    computed_map_order,
    string_map_order,
)
from assignor.placement.streams_groups.processes import Process, Quota, by_load
from encoding import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """A member of a streams group, which is one stream thread, as the broker knows it.

    Attributes:
        member_id: member id; a member draws it at each start.
        process_id: of its process, the same for all members of the process.
        active, standby: its tasks in the target assignment before.
        offsets: changelog offsets of tasks whose state it has, summed over changelogs; brokers
            before 4.4.0 know none.
    """

    member_id: str
    process_id: str
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    offsets: Mapping[TaskId, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(slots=True)
class MemberTasks:
    """The tasks of a member in the new target assignment."""

    active: set[TaskId]
    standby: set[TaskId]


def assign_members(
    members: Iterable[MemberSpec],
    *,
    stateful: Iterable[TaskId],
    stateless: Iterable[TaskId] = (),
    num_standby_replicas: int = 0,
    since_4_4: bool = True,
) -> dict[str, MemberTasks]:
    """Assign all tasks as the broker does; by member id, sorted.

    Equal loads are frequent, and then the order of Java's hash maps decides, by the hashes of
    member ids and process ids. Where two hashes meet in one bucket, the member given first is
    first; on a broker that depends on the history of the group.

    Args:
        members: the members, in the order in which the broker's map was filled.
        stateful: tasks of subtopologies with changelogs.
        stateless: the other tasks.
        num_standby_replicas: `streams.num.standby.replicas` of the group.
        since_4_4: as brokers of 4.4.0 do; False: as those of 4.2.0 to 4.3.1, which ask only the
            first former standby of a task whether its process has the task already.

    Raises:
        TaskAssignmentError: there are no members, or two have the same id.
    """
    with_state = sorted(set(stateful))
    draft = _Draft(list(members), num_standby_replicas, since_4_4=since_4_4)
    draft.set_quotas(len(with_state), len(set(stateless).difference(with_state)))
    draft.assign_active(sorted({*with_state, *stateless}))
    if num_standby_replicas > 0:
        draft.assign_standby(with_state)
    return draft.result


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, str(task.subtopology)


def _by_subtopology(task: TaskId) -> tuple[str, int]:
    # Kafka compares subtopology ids as text: 10 is before 2.
    return str(task.subtopology), task.partition


class _Draft:
    """An assignment in progress.

    Attributes:
        result: member id -> its tasks so far.
    """

    def __init__(
        self, members: Sequence[MemberSpec], num_standby_replicas: int, *, since_4_4: bool
    ) -> None:
        specs = {member.member_id: member for member in members}
        if not specs or len(specs) < len(members):
            what = "two members have the same id" if specs else "a streams group has no members"
            raise TaskAssignmentError(f"{what}; give each member once")
        self.result = {name: MemberTasks(set(), set()) for name in sorted(specs)}
        self._standbys = num_standby_replicas
        self._since_4_4 = since_4_4
        self._process_of: dict[str, Process] = {}
        self._ran: dict[TaskId, str] = {}
        stood_by: dict[TaskId, list[tuple[bool, int, str]]] = {}
        found: dict[str, Process] = {}
        names = string_map_order(list(specs))
        for name in names:
            spec = specs[name]
            process = found.setdefault(spec.process_id, Process(spec.process_id))
            process.counts[name] = 0
            self._process_of[name] = process
            self._ran |= dict.fromkeys(spec.active, name)
            for task in {**dict.fromkeys(spec.standby), **spec.offsets}:
                is_on_disk_only = task not in spec.standby
                rank = (is_on_disk_only, -spec.offsets.get(task, 0), name)
                stood_by.setdefault(task, []).append(rank)
        # Former standbys are before members that have state on disk only, the most caught-up first.
        self._stood_by = {
            task: [name for *_, name in sorted(rows, key=lambda row: row[:2])]
            for task, rows in stood_by.items()
        }
        if since_4_4:
            calls = (specs[name].process_id for name in names)
            order = computed_map_order(calls, capacity=len(specs))
        else:
            order = string_map_order(list(found), capacity=len(specs))
        self._processes = [found[process_id] for process_id in order]

    def set_quotas(self, stateful: int, stateless: int) -> None:
        """Start counting: each member may have its share of active tasks, and of all tasks."""
        members, active = len(self.result), stateful + stateless
        self._active_quota = Quota(active, members)
        self._quota = Quota(active + stateful * self._standbys, members)

    def assign_active(self, tasks: Iterable[TaskId]) -> None:
        """Active tasks stay, then go to a former standby, then where the load is least."""
        for holders in (self._former_owner, self._former_standby):
            left = []
            for task in sorted(tasks, key=_by_partition):
                member = holders(task)
                if member is not None and self._has_room(member, self._active_quota):
                    self._note_active(self._give(member, task, is_active=True))
                else:
                    left.append(task)
            tasks = left
        queue = by_load(self._processes)
        for task in sorted(tasks, key=_by_subtopology):
            process = queue.poll()
            member, count = process.add_to_least_loaded(task)
            self.result[member].active.add(task)
            self._note_active(count)
            queue.offer(process.load(), process)

    def assign_standby(self, tasks: Iterable[TaskId]) -> None:
        """Standbys go to the former owner, to former standbys, then where the load is least."""
        missing: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for placed in range(self._standbys):
                member = self._former_holder(task)
                if member is None:
                    missing.append((task, self._standbys - placed))
                    break
                self._quota.note(self._give(member, task, is_active=False))
        queue = by_load(self._processes)
        missing.sort(key=lambda row: _by_subtopology(row[0]), reverse=True)
        for task, count in missing:
            for _ in range(count):
                if not self._give_to_least_loaded(queue, task):
                    break

    def _former_owner(self, task: TaskId) -> str | None:
        return self._ran.get(task)

    def _former_standby(self, task: TaskId) -> str | None:
        return self._least_loaded(self._stood_by.get(task, ()))

    def _former_holder(self, task: TaskId) -> str | None:
        """The member that held the task before and may get a standby of it."""
        owner = self._ran.get(task)
        is_free = owner is not None and task not in self._process_of[owner].tasks
        if owner is not None and is_free and self._has_room(owner, self._quota):
            return owner
        members: Sequence[str] = self._stood_by.get(task, ())
        if self._since_4_4:
            members = [name for name in members if task not in self._process_of[name].tasks]
        # Kafka asks this of the first only, whichever is chosen; then no other one is taken.
        elif members and task in self._process_of[members[0]].tasks:
            return None
        member = self._least_loaded(members, task)
        return member if member is not None and self._has_room(member, self._quota) else None

    def _least_loaded(self, members: Sequence[str], task: TaskId | None = None) -> str | None:
        """The first member, or one below it both in the load of its process and in its tasks.

        Args:
            members: member ids.
            task: processes with this task are left out, except that of the first member.
        """
        chosen: str | None = None
        least = (0.0, 0)
        for member in members:
            process = self._process_of[member]
            loads = (process.load(), process.counts[member])
            is_below = loads[0] < least[0] and loads[1] < least[1] and task not in process.tasks
            if chosen is None or is_below:
                chosen, least = member, loads
        return chosen

    def _has_room(self, member: str, quota: Quota) -> bool:
        return self._process_of[member].counts[member] < quota.of_a_member()

    def _give(self, member: str, task: TaskId, *, is_active: bool) -> int:
        """Assign a task to a member; return the number of its tasks."""
        tasks = self.result[member]
        (tasks.active if is_active else tasks.standby).add(task)
        return self._process_of[member].add(member, task)

    def _give_to_least_loaded(self, queue: JavaQueue[Process], task: TaskId) -> bool:
        """Assign a standby to the first process without the task; whether there is one."""
        polled: list[Process] = []
        is_given = False
        while len(queue) and not is_given:
            process = queue.poll()
            polled.append(process)
            if task not in process.tasks:
                member, count = process.add_to_least_loaded(task)
                self.result[member].standby.add(task)
                self._quota.note(count)
                is_given = True
        for process in reversed(polled):
            queue.offer(process.load(), process)
        return is_given

    def _note_active(self, count: int) -> None:
        self._active_quota.note(count)
        self._quota.note(count)
