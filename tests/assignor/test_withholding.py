"""Cooperative groups: a task that moves waits for its owner, and follow-ups when needed."""

import pytest

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    assign_group,
    high_availability,
)
from encoding import NO_REBALANCE, TaskId, TopicPartition
from probing import RejoinNow, find_release
from tests.assignor.groups import TOPOLOGY, start

TASKS = [TaskId(0, p) for p in range(4)]


def cooperative(member, name):
    """The subscription of a member that keeps its partitions through the rebalance."""
    owned = tuple(p for inputs in member.held.active.values() for p in inputs)
    return GroupMember(member_id=name, user_data=member.subscription()[1], owned_partitions=owned)


def lead(members, *, leader="native", config=None, knowledge=None, strategy=None):
    settings = LeaderSettings(
        release=find_release(leader),
        subtopologies=TOPOLOGY.subtopologies("app"),
        config=config or AssignmentConfig(),
        **({} if strategy is None else {"strategy": strategy}),
    )
    answer = assign_group(
        settings,
        [cooperative(member, name) for name, member in members.items()],
        {"lines": 4},
        knowledge=knowledge or LeaderKnowledge(),
    )
    received = {
        name: member.receive(
            answer.answers[name].partitions, answer.answers[name].user_data, now_ms=0
        )
        for name, member in members.items()
    }
    return answer, received


@pytest.mark.parametrize(("leader", "release"), [("native", "3.9"), ("2.4", "2.4"), ("3.9", "3.9")])
def test_a_task_that_moves_is_withheld_until_its_owner_has_given_it_up(leader, release):
    members = {"a": start(release, number=0)}
    lead(members, leader=leader)
    members["b"] = start(release, number=1)
    answer, _ = lead(members, leader=leader)
    assert len(members["a"].held.active) == 2
    assert members["b"].held.active == {}
    assert len(answer.withheld["b"]) == 2
    answer, _ = lead(members, leader=leader)
    assert sorted([*members["a"].held.active, *members["b"].held.active]) == TASKS
    assert answer.withheld == {}


def test_the_receiver_asks_for_the_next_rebalance_at_once_and_nobody_else_does():
    members = {"a": start("3.9", number=0)}
    lead(members)
    members["b"] = start("3.9", number=1)
    answer, received = lead(members)
    times = {name: one.assignment.next_rebalance_ms for name, one in answer.answers.items()}
    assert times == {"a": NO_REBALANCE, "b": 0}
    asked = [n for n, r in received.items() if any(isinstance(c, RejoinNow) for c in r.commands)]
    assert asked == ["b"]


def test_leaders_before_2_4_withhold_nothing():
    members = {"a": start("2.3.1", number=0)}
    lead(members, leader="2.3.1")
    members["b"] = start("2.3.1", number=1)
    answer, _ = lead(members, leader="2.3.1")
    assert answer.withheld == {}
    assert len(members["b"].held.active) == 2


def test_eager_members_own_nothing_so_nothing_of_theirs_is_withheld():
    members = {"a": start(number=0), "b": start(number=1)}
    blobs = [GroupMember(member_id=n, user_data=m.subscription()[1]) for n, m in members.items()]
    settings = LeaderSettings(
        release=find_release("native"),
        subtopologies=TOPOLOGY.subtopologies("app"),
        config=AssignmentConfig(),
    )
    assert assign_group(settings, blobs, {"lines": 4}).withheld == {}


def test_a_withheld_task_stays_a_standby_where_it_was_one():
    config = AssignmentConfig(num_standby_replicas=1)
    members = {"a": start("3.9", number=0), "b": start("3.9", number=1)}
    lead(members, config=config)
    lead(members, config=config)
    # The strategy wants every task on b, which holds the standbys of a's tasks.
    moved = set(members["a"].held.active)

    def all_to_b(state):
        assignment = high_availability(state)
        return type(assignment)(active=assignment.active * 0 + 1)

    answer, _ = lead(members, config=config, strategy=all_to_b)
    assert set(members["b"].held.standby) == moved
    assert {p.partition for p in answer.withheld["b"]} == {t.partition for t in moved}


def test_warm_ups_ask_for_a_probing_rebalance_on_the_leaders_own_answer():
    members = {"a": start(number=0)}
    knowledge = LeaderKnowledge(
        end_offset_sums=dict.fromkeys(TASKS, 1_000_000), leader_id="a", now_ms=5_000
    )
    lead(members, strategy=high_availability, knowledge=knowledge)
    members["b"] = start(number=1)
    answer, received = lead(members, strategy=high_availability, knowledge=knowledge)
    assert len(members["a"].held.active) == 4, "nobody runs a cold task while a warm copy exists"
    assert members["b"].held.warmup
    assert answer.answers["a"].assignment.next_rebalance_ms == 605_000
    assert answer.answers["b"].assignment.next_rebalance_ms == NO_REBALANCE
    assert "follow-up was asked for" in [c.rule for c in received["a"].commands]
    assert all(lag >= 0 for lag in answer.lags[str(members["b"]._identity.process_id)].values())


def test_partitions_of_other_topics_are_nobodys_business():
    member = start("3.9")
    blob = GroupMember(
        member_id="a",
        user_data=member.subscription()[1],
        owned_partitions=(TopicPartition("elsewhere", 0),),
    )
    settings = LeaderSettings(
        release=find_release("native"),
        subtopologies=TOPOLOGY.subtopologies("app"),
        config=AssignmentConfig(),
    )
    answer = assign_group(settings, [blob], {"lines": 4})
    assert len(answer.answers["a"].partitions) == 4
