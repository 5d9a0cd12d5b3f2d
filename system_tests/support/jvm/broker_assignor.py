"""A client of the process that runs the assignor of streams groups of a real broker."""

from collections.abc import Iterable

from assignor.placement.streams_groups import MemberSpec, MemberTasks
from encoding import TaskId
from system_tests.support.jvm.child import JvmChild


class BrokerAssignor(JvmChild):
    """The broker's assignor of a release, in a separate process; use it as a context manager.

    Args:
        release: exact name.
    """

    def __init__(self, release: str) -> None:
        super().__init__("streams_groups", release, what="assignor")

    def assign_members(
        self,
        members: Iterable[MemberSpec],
        *,
        stateful: Iterable[TaskId],
        stateless: Iterable[TaskId] = (),
        num_standby_replicas: int = 0,
    ) -> dict[str, MemberTasks]:
        """Assign all tasks with the real class, which is asked as `assign_members` is.

        Each subtopology must have all tasks from partition 0 on, all with state or all without.

        Raises:
            RuntimeError: the class raised an exception; with its message.
            EnvironmentFailureError: the process ended, because jars or Java are missing.
        """
        subtopologies: dict[str, tuple[int, bool]] = {}
        with_state = set(stateful)
        for task in sorted({*with_state, *stateless}):
            name = str(task.subtopology)
            count, has_state = subtopologies.get(name, (0, False))
            subtopologies[name] = (count + 1, has_state or task in with_state)
        question = {
            "members": [
                {
                    "member": member.member_id,
                    "process": member.process_id,
                    "active": [str(task) for task in sorted(member.active)],
                    "standby": [str(task) for task in sorted(member.standby)],
                    "offsets": {str(task): row for task, row in sorted(member.offsets.items())},
                }
                for member in members
            ],
            "subtopologies": subtopologies,
            "standbys": num_standby_replicas,
        }
        answer = self.ask(question)
        if "error" in answer:
            raise RuntimeError(f"the assignor of Kafka {self.release} failed: {answer['error']}")
        return {
            member: MemberTasks(
                *(set(map(TaskId.parse, given[role])) for role in ("active", "standby"))
            )
            for member, given in answer["members"].items()
        }
