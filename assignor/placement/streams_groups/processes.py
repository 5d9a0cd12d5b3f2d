"""Members, their processes and the tasks assigned so far, in the orders of Java's collections."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from assignor.placement.jvm.java_collections import JavaQueue, string_map_order
from encoding import TaskId


@dataclass(slots=True)
class Process:
    """A process: its members and their tasks.

    Attributes:
        process_id: process id.
        counts: member id -> number of its tasks, in the order in which members were added.
        tasks: the tasks of all members.
    """

    process_id: str
    counts: dict[str, int] = field(default_factory=dict)
    tasks: set[TaskId] = field(default_factory=set)
    _by_count: JavaQueue[str] | None = None

    def load(self) -> float:
        """Number of tasks per member."""
        return len(self.tasks) / len(self.counts)

    def add(self, member: str, task: TaskId) -> int:
        """Assign a task to a member; return the number of its tasks."""
        self._by_count = None
        return self._add(member, task)

    def add_to_least_loaded(self, task: TaskId) -> tuple[str, int]:
        """Assign a task to the member with the fewest tasks; return it and their number.

        Among equals, the order of Java's heap decides. The heap stays until `add` is called.
        """
        if self._by_count is None:
            order = string_map_order(list(self.counts))
            self._by_count = JavaQueue((self.counts[member], member) for member in order)
        member = self._by_count.poll()
        count = self._add(member, task)
        self._by_count.offer(count, member)
        return member, count

    def _add(self, member: str, task: TaskId) -> int:
        self.tasks.add(task)
        self.counts[member] += 1
        return self.counts[member]


@dataclass(slots=True)
class Quota:
    """How many tasks a member may have so that all have an equal share, rounded up.

    A member that has as many is full: the others share the tasks that are left.

    Attributes:
        tasks: tasks of the members that are not full.
        members: their number.
    """

    tasks: int
    members: int

    def of_a_member(self) -> int:
        """Tasks of one member; 0 if all are full."""
        return -(-self.tasks // self.members) if self.members else 0

    def note(self, count: int) -> None:
        """Take note that a member has as many tasks now."""
        full = self.of_a_member()
        if count == full:
            self.members -= 1
            self.tasks -= full


def by_load(processes: Iterable[Process]) -> JavaQueue[Process]:
    """Processes in a heap by their loads."""
    return JavaQueue((process.load(), process) for process in processes)
