"""The check of all answers of a generation, before any is sent.

A wrong answer ends every JVM member that gets it. So the leader decodes each answer again, and
checks all together; if one breaks a rule, tasks stay where they ran, and the operator is informed.
"""

from collections.abc import Iterable, Mapping

from assignor.errors import TaskAssignmentError
from assignor.rebalance.blobs import read_answer
from assignor.rebalance.leader.answer_bytes import MemberAnswer, views_in
from assignor.topology import TaskPlan
from encoding import TaskId, TopicPartition


def tasks_of(answer: MemberAnswer, plan: TaskPlan) -> Iterable[TaskId]:
    """The active tasks of an answer; by partitions if its layout names no tasks."""
    if answer.assignment.active_tasks:
        return answer.assignment.active_tasks
    return {plan.task_by_partition[p] for p in answer.partitions if p in plan.task_by_partition}


def check_answers(
    answers: Mapping[str, MemberAnswer], plan: TaskPlan, known_versions: tuple[int, ...]
) -> None:
    """Check that bytes decode to what was decided, and no answer contradicts another or the plan.

    Args:
        answers: member id -> answer.
        plan: the tasks that run.
        known_versions: of the leader, which reads its answers.

    Raises:
        TaskAssignmentError: bytes do not decode to what was decided, a partition goes to two
            members, or a member gets other partitions than its tasks read; the message names them.
            This is a defect of a strategy or of this package.
    """
    owner: dict[TopicPartition, str] = {}
    for member, answer in answers.items():
        for partition in answer.partitions:
            other = owner.setdefault(partition, member)
            if other != member:
                name = f"{partition.topic}-{partition.partition}"
                raise TaskAssignmentError(f"{name} goes to both {other} and {member}")
        _check_tasks(member, answer, plan)
        _check_bytes(member, answer, known_versions)


def _check_tasks(member: str, answer: MemberAnswer, plan: TaskPlan) -> None:
    tasks = frozenset(answer.assignment.active_tasks)
    unknown = sorted(task for task in tasks if task not in plan.partitions_by_task)
    if unknown:
        raise TaskAssignmentError(f"{member} gets task {unknown[0]}, which does not exist")
    inputs = sorted(p for task in tasks for p in plan.partitions_by_task[task])
    if tasks and inputs != list(answer.partitions):
        raise TaskAssignmentError(
            f"{member} gets {len(answer.partitions)} partitions, which are not those that its "
            f"{len(tasks)} tasks read"
        )
    both = sorted(tasks & answer.assignment.standby_tasks.keys())
    if both:
        raise TaskAssignmentError(f"{member} gets {both[0]} as active and as standby task")


def _check_bytes(member: str, answer: MemberAnswer, known_versions: tuple[int, ...]) -> None:
    decided = answer.assignment
    written = read_answer(answer.user_data, known_versions)
    agrees = (
        written.version == decided.version
        and written.active_tasks == decided.active_tasks
        and written.standby_tasks == decided.standby_tasks
        and views_in(written) == views_in(decided)
    )
    if not agrees:
        raise TaskAssignmentError(
            f"the answer for {member} does not decode to what was decided (version "
            f"{decided.version}, {len(answer.user_data)} bytes); this is a defect, please report it"
        )
