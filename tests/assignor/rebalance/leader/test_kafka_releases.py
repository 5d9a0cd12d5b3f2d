"""Emulated leaders of old releases: which tasks they return while a newer member joins."""

from uuid import UUID

import pytest

from assignor import AssignmentConfig, GroupMember, LeaderSettings, Topology, assign_group
from encoding import Subscription, TaskId, TaskOffsetSums, encode_subscription
from probing import find_release

TASKS = [TaskId(0, partition) for partition in range(4)]


def member(process, name, tasks, version):
    subscription = Subscription(
        version=min(version, 4),
        latest_supported_version=version,
        process_id=UUID(int=process),
        user_endpoint="",
        task_offset_sums=TaskOffsetSums.from_mapping(dict.fromkeys(tasks, -2)),
    )
    data = encode_subscription(subscription)
    if version > 4:  # a future subscription: this leader knows its two numbers only
        data = version.to_bytes(4, "big") + version.to_bytes(4, "big") + data[8:]
    return GroupMember(member_id=name, user_data=data)


@pytest.mark.parametrize(
    ("release", "first", "second"),
    [("2.2.1", 4, 4), ("2.3.0", 4, 4), ("2.2.2", 2, 2), ("2.3.1", 2, 2)],
)
def test_a_thread_gets_the_tasks_of_its_process_or_its_own(release, first, second):
    """`prevActiveTasks` of the client up to 2.2.1 and 2.3.0, then those of the consumer."""
    topology = Topology().add_source("t", topics=["t"]).add_processor("p", parents=["t"])
    settings = LeaderSettings(
        release=find_release(release),
        subtopologies=topology.subtopologies("app"),
        config=AssignmentConfig(),
    )
    members = [
        member(1, "a-1", TASKS[:2], 4),
        member(1, "a-2", TASKS[2:], 4),
        member(2, "b-1", (), 9),
    ]
    answers = assign_group(settings, members, {"t": 4}).answers
    given = {name: len(set(answers[name].assignment.active_tasks)) for name in ("a-1", "a-2")}
    assert given == {"a-1": first, "a-2": second}
