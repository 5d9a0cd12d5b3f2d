"""A group with a member that writes arbitrary values."""

from dataclasses import replace

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    assign_group,
    sticky,
)
from encoding import TaskId, TaskOffsetSums, TopicPartition, encode_subscription
from probing import find_release
from tests.assignor.rebalance.groups import TOPOLOGY, start

TASKS = [TaskId(0, p) for p in range(6)]
ALL = tuple(TopicPartition("lines", p) for p in range(6))
ENDS = dict.fromkeys(TASKS, 1_000)


def settings(strategy=sticky, **options):
    return LeaderSettings(
        release=find_release("native"),
        subtopologies=TOPOLOGY.subtopologies("app"),
        config=AssignmentConfig(),
        strategy=strategy,
        **options,
    )


def written(member, name, *, native=None, owned=(), sums=None, **changed):
    """The blob of a hostile member: other values in some fields."""
    value, _ = member.subscription(owned_partitions=owned or ())
    if sums is not None:
        changed["task_offset_sums"] = TaskOffsetSums.from_mapping(sums)
    if native is not None and value.native is not None:
        changed["native"] = replace(value.native, **native)
    data = encode_subscription(replace(value, **changed))
    return GroupMember(member_id=name, user_data=data, owned_partitions=owned)


def group(release="native", **hostile):
    """Two honest members and a hostile one."""
    honest = [start(release, number=n, endpoint=f"host-{n}:80") for n in range(2)]
    blobs = [
        GroupMember(member_id=f"m{n}", user_data=m.subscription()[1]) for n, m in enumerate(honest)
    ]
    return [*blobs, written(start(release, number=2), "x", **hostile)]


def placed(answer):
    return sorted(
        {
            t
            for member_answer in answer.answers.values()
            for t in member_answer.assignment.active_tasks
        }
    )


def lead(blobs, knowledge=None, **options):
    answer = assign_group(
        settings(**options), blobs, {"lines": 6}, knowledge=knowledge or LeaderKnowledge()
    )
    assert placed(answer) == TASKS
    return answer
