"""Cooperative groups: a task that moves waits for its owner, and follow-ups when needed."""

from dataclasses import replace

import pytest

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    assign_group,
    high_availability,
    sticky,
)
from assignor.rebalance.leader.claims import NO_CLAIMS, Claims
from assignor.rebalance.leader.members import ReadMember
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.leader.withholding import withhold
from assignor.topology import TaskPlan
from encoding import (
    NO_REBALANCE,
    PartitionRange,
    TaskId,
    TopicPartition,
    encode_subscription,
)
from probing import RejoinNow, find_release
from tests.assignor.rebalance.groups import TOPOLOGY, start

TASKS = [TaskId(0, p) for p in range(4)]


def cooperative(member, name):
    """The subscription of a member that keeps its partitions through the rebalance."""
    owned = tuple(p for inputs in member.held.active.values() for p in inputs)
    return GroupMember(member_id=name, user_data=member.subscription()[1], owned_partitions=owned)


def lead(members, *, leader="native", config=None, knowledge=None, strategy=sticky):
    settings = LeaderSettings(
        release=find_release(leader),
        subtopologies=TOPOLOGY.subtopologies("app"),
        config=config or AssignmentConfig(),
        strategy=strategy,
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
    times = {
        name: member_answer.assignment.next_rebalance_ms
        for name, member_answer in answer.answers.items()
    }
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
        strategy=sticky,
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


def test_a_withheld_task_does_not_become_a_standby_where_it_was_none():
    members = {"a": start("3.9", number=0)}
    lead(members)
    members["b"] = start("3.9", number=1)
    answer, _ = lead(members)
    assert len(answer.withheld["b"]) == 2
    assert members["b"].held.standby == {}


def test_a_task_is_withheld_from_others_while_a_partition_of_another_form_of_it_is_owned():
    task, read, elsewhere = TASKS[0], TopicPartition("lines", 0), TopicPartition("other", 0)
    plan = TaskPlan(
        partition_counts={"lines": 1, "other": 1},
        partitions_by_task={task: (read,)},
        stateful_tasks=frozenset(),
        unknown_topics=(),
        task_by_partition={read: task, elsewhere: task},
    )
    owner = GroupMember(member_id="a", user_data=b"", owned_partitions=(elsewhere,))
    withheld = withhold(
        [ReadMember(member=owner, subscription=None, plan=plan)],
        plan,
        Placement(active_by_member={"b": (task,)}),
        claims=Claims(by_member={}, ignored={}, warnings=()),
        memory=NO_CLAIMS,
        now_ms=0,
    )
    assert withheld.withheld_by_member == {"b": (read,)}
    assert withheld.unassigned == {task}


def test_warm_ups_ask_for_a_probing_rebalance_on_the_leaders_own_answer():
    members = {"a": start(number=0)}
    knowledge = LeaderKnowledge(
        end_offset_sums=dict.fromkeys(TASKS, 1_000_000), leader_id="a", now_ms=5_000
    )
    lead(members, strategy=high_availability, knowledge=knowledge)
    members["b"] = start(number=1)
    answer, received = lead(members, strategy=high_availability, knowledge=knowledge)
    assert len(members["a"].held.active) == 4, "no member runs a cold task while a warm copy exists"
    assert members["b"].held.warmup
    assert answer.answers["a"].assignment.next_rebalance_ms == 605_000
    assert answer.answers["b"].assignment.next_rebalance_ms == NO_REBALANCE
    assert "follow-up was asked for" in [c.rule for c in received["a"].commands]
    lags = answer.memory.lags_before[str(members["b"].identity.process_id)]
    assert all(lag >= 0 for lag in lags.values())


def test_partitions_of_other_topics_are_ignored():
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
        strategy=sticky,
    )
    answer = assign_group(settings, [blob], {"lines": 4})
    assert len(answer.answers["a"].partitions) == 4


def hidden(member, name, *, generation=1, owns=True):
    """A cooperative member whose owned partitions are in native bytes only, as with aiokafka."""
    owned = [p for inputs in member.held.active.values() for p in inputs] if owns else ()
    data = member.subscription(owned_partitions=owned, owned_generation=generation)[1]
    return GroupMember(member_id=name, user_data=data, owned_partitions=None)


def lead_hidden(members, blobs):
    settings = LeaderSettings(
        release=find_release("native"),
        subtopologies=TOPOLOGY.subtopologies("app"),
        config=AssignmentConfig(),
        strategy=sticky,
    )
    answer = assign_group(settings, blobs, {"lines": 4})
    for name, member in members.items():
        member_answer = answer.answers[name]
        member.receive(member_answer.partitions, member_answer.user_data, now_ms=0)
    return answer


def test_a_leader_without_owned_partitions_from_the_client_reads_them_in_native_bytes():
    a, b = start(number=0), start(number=1)
    lead_hidden({"a": a}, [hidden(a, "a")])
    answer = lead_hidden({"a": a, "b": b}, [hidden(a, "a"), hidden(b, "b")])
    assert len(answer.withheld["b"]) == 2
    assert b.held.active == {}
    answer = lead_hidden({"a": a, "b": b}, [hidden(a, "a"), hidden(b, "b")])
    assert answer.withheld == {}
    assert sorted([*a.held.active, *b.held.active]) == TASKS


def test_a_claim_on_more_partitions_than_there_are_costs_nothing():
    a, b = start(number=0), start(number=1)
    lead_hidden({"a": a}, [hidden(a, "a")])
    huge = PartitionRange("lines", 0, 2**31 - 1)
    claims = replace(
        a.subscription()[0].native, owned_partitions=(huge, PartitionRange("no such", 0, 2**31 - 1))
    )
    data = encode_subscription(replace(a.subscription()[0], native=claims))
    blobs = [GroupMember(member_id="a", user_data=data, owned_partitions=None), hidden(b, "b")]
    assert len(lead_hidden({"a": a, "b": b}, blobs).withheld["b"]) == 2


def test_an_eager_native_member_is_not_waited_for_if_its_partitions_are_hidden():
    a, b = start(number=0), start(number=1)
    lead_hidden({"a": a}, [hidden(a, "a", owns=False)])
    blobs = [hidden(a, "a", owns=False), hidden(b, "b", owns=False)]
    answer = lead_hidden({"a": a, "b": b}, blobs)
    assert answer.withheld == {}
    assert len(b.held.active) == 2
    assert answer.moved_tasks == 2


@pytest.mark.parametrize(("release", "rounds"), [("3.9", 2), ("2.4", 2), ("2.3.1", 1)])
def test_a_jvm_member_that_may_be_cooperative_is_waited_for_once_if_they_are_hidden(
    release, rounds
):
    a, b = start(release, number=0), start(number=1)
    lead_hidden({"a": a}, [hidden(a, "a")])
    for done in range(1, rounds + 1):
        answer = lead_hidden({"a": a, "b": b}, [hidden(a, "a"), hidden(b, "b")])
        assert bool(answer.withheld) == (done < rounds)
    assert sorted([*a.held.active, *b.held.active]) == TASKS


def test_of_two_members_that_name_one_task_the_later_generation_counts():
    a, b, c = (start(number=number) for number in range(3))
    lead_hidden({"a": a}, [hidden(a, "a", owns=False)])
    lead_hidden({"b": b}, [hidden(b, "b", owns=False)])
    assert a.held.active.keys() == b.held.active.keys()
    blobs = [
        hidden(a, "a", generation=3, owns=False),
        hidden(b, "b", generation=7, owns=False),
        hidden(c, "c", generation=-1, owns=False),
    ]
    before = set(b.held.active)
    answer = lead_hidden({"a": a, "b": b, "c": c}, blobs)
    assert set(b.held.active) < before, "what b keeps, it had"
    assert not [w for w in answer.warnings if "runs on" in w]
