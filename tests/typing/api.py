"""A user's program for the public API; checked by mypy, never run."""

from collections.abc import Mapping
from uuid import UUID

from assignor import AssignmentConfig, GroupState, TaskAssignment, TasksListener, Topology, sticky
from assignor.rebalance import PartitionsByTask
from encoding import (
    Assignment,
    FutureSubscription,
    Subscription,
    TaskId,
    TaskOffsetSums,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from probing import LeaderDecision, MemberVersions, Release, decide_answers, find_release


class Application(TasksListener):
    """Overrides some callbacks."""

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Read the tasks."""
        for task, partitions in active.items():
            subtopology: int = task.subtopology
            topics: list[str] = [partition.topic for partition in partitions]
            print(subtopology, topics, len(standby))

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Report state."""
        return {TaskId(0, 1): 42}


def everything_here(state: GroupState) -> TaskAssignment:
    """A custom strategy that calls `sticky`."""
    assignment = sticky(state)
    first: int = int(assignment.active[0])
    print(state.clients[first])
    return assignment


def read(data: bytes) -> str:
    """Narrow the two kinds of subscription."""
    subscription: Subscription | FutureSubscription = decode_subscription(data)
    if isinstance(subscription, FutureSubscription):
        return f"future {subscription.version}"
    return subscription.user_endpoint or str(subscription.process_id)


def write() -> bytes:
    """Build values by keyword."""
    sums = TaskOffsetSums.from_mapping({TaskId(0, 0): 7})
    member = Subscription(version=11, process_id=UUID(int=1), task_offset_sums=sums)
    answer = Assignment(version=11, commonly_supported_version=11, active_tasks=(TaskId(0, 0),))
    return encode_subscription(member) + encode_assignment(answer)


def decide() -> int:
    """Ask a leader."""
    release: Release = find_release("3.9")
    member = MemberVersions(member_id="a", used_version=11, latest_supported_version=11)
    decision: LeaderDecision = decide_answers(release, [member])
    return decision.version


config = AssignmentConfig(num_standby_replicas=1)
topology: Topology = Topology().add_source("s", topics=["t"])
