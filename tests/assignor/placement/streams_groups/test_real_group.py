"""A streams group of real members on a real broker: the model computes its target assignments."""

from itertools import permutations

import pytest

from assignor import TaskId
from assignor.placement.streams_groups import MemberSpec, MemberTasks, assign_members
from system_tests.real.broker import running_real_broker
from system_tests.support.jvm.child import JvmChild
from tests.assignor.placement.streams_groups.groups import RELEASES

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

RELEASE = RELEASES[-1]
PARTITIONS = {"counted": 7, "copied": 4}
# The first assignment waits until the members of all processes are there, on a busy machine, too.
SETTINGS = {"streams.num.standby.replicas": "1", "streams.initial.rebalance.delay.ms": "10000"}


def check_next(group, before):
    """The target assignment is the model's, from the one before and the group's own ids.

    Where two ids meet in one bucket, the history of the broker's map decides: some order of the
    members gives the broker's assignment.
    """
    [stateful] = map(int, group["stateful"])
    tasks = {number: PARTITIONS["counted" if number == stateful else "copied"] for number in (0, 1)}
    members = [
        MemberSpec(
            member_id=row["member"],
            process_id=row["process"],
            active=frozenset(before.get(row["member"], MemberTasks(set(), set())).active),
            standby=frozenset(before.get(row["member"], MemberTasks(set(), set())).standby),
        )
        for row in group["members"]
    ]
    arguments = {
        "stateful": [TaskId(stateful, part) for part in range(tasks[stateful])],
        "stateless": [TaskId(1 - stateful, part) for part in range(tasks[1 - stateful])],
        "num_standby_replicas": 1,
    }
    target = {
        row["member"]: MemberTasks(
            *(set(map(TaskId.parse, row[role])) for role in ("active", "standby"))
        )
        for row in group["members"]
    }
    assert any(assign_members(order, **arguments) == target for order in permutations(members))
    return target


def test_the_targets_of_a_real_group_are_those_of_the_model():
    with (
        running_real_broker(RELEASE) as broker,
        JvmChild("group", RELEASE, what="streams group") as group,
    ):
        servers = broker.bootstrap_servers
        assert not group.ask({"bootstrap_servers": servers, "settings": SETTINGS, **PARTITIONS})
        target = check_next(group.ask({"start": [3, 1]}), {})
        assert sum(len(tasks.standby) for tasks in target.values()) == 7
        joined = check_next(group.ask({"start": [1]}), target)
        assert len(joined) == 5
        left = check_next(group.ask({"close": 1}), joined)
        assert len(left) == 4
