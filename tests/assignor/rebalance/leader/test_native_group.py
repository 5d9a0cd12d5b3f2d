"""Groups of native members: upgrades without rejoins, placement by state, the routing view."""

import pytest

from assignor import AssignmentConfig, GroupMember, LeaderKnowledge, assign_group
from encoding import (
    FutureSubscription,
    TaskId,
    TopicPartition,
    decode_assignment,
    decode_subscription,
)
from probing import RejoinNow, find_release
from tests.assignor.rebalance.groups import Group, start
from tests.versions import LATER, NEWEST

TASKS = [TaskId(0, p) for p in range(6)]


def rejoins(received):
    return [
        name
        for name, reaction in received.items()
        for c in reaction.commands
        if isinstance(c, RejoinNow)
    ]


def group_of(*names, release="native", **options):
    group = Group(**options)
    for number, name in enumerate(names):
        group.join(name, release, endpoint=f"host-{number}:{number + 1}")
    return group


def test_natives_start_at_11_and_write_101_from_the_second_subscription_without_a_rejoin():
    group = group_of("a", "b")
    assert [decode_subscription(m.subscription()[1]).version for m in group.members.values()] == [
        11,
        11,
    ]
    assert rejoins(group.round("a")) == []
    assert group.used_versions() == {"a": 101, "b": 101}
    assert rejoins(group.round("a")) == []
    assert {member_answer.assignment.version for member_answer in group.last.answers.values()} == {
        101
    }


def test_a_leader_at_101_places_a_member_at_102_by_its_real_offsets():
    group = group_of("a", "b", config=AssignmentConfig(num_standby_replicas=1))
    group.join("new", "next", start_version="latest", endpoint="host-n:9")
    new = group.members["new"]
    # It returns with the state of two tasks on its disk; a and b have none.
    blobs = [
        GroupMember(member_id="a", user_data=group.members["a"].subscription()[1]),
        GroupMember(member_id="b", user_data=group.members["b"].subscription()[1]),
        GroupMember(member_id="new", user_data=new.subscription({TASKS[0]: 900, TASKS[3]: 950})[1]),
    ]
    assert decode_subscription(blobs[2].user_data).version == 102
    answer = assign_group(
        group.settings("native"),
        blobs,
        {"lines": 6},
        knowledge=LeaderKnowledge(end_offset_sums=dict.fromkeys(TASKS, 1000)),
    )
    received = new.receive(
        answer.answers["new"].partitions, answer.answers["new"].user_data, now_ms=0
    )
    assert set(new.held.active) >= {TASKS[0], TASKS[3]}
    assert answer.answers["new"].assignment.version == 101
    assert not [c for c in received.commands if isinstance(c, RejoinNow)]


def test_a_leader_at_101_places_a_member_at_103_by_its_two_numbers_and_owned_partitions_only():
    group = group_of("a", "b")
    group.join("new", "incompatible", start_version="latest")
    new = group.members["new"]
    data = new.subscription({TASKS[0]: 900})[1]
    assert decode_subscription(data) == FutureSubscription(103, 103)
    owned = tuple(TopicPartition("lines", p) for p in (4, 5))
    blobs = [
        GroupMember(member_id=name, user_data=group.members[name].subscription()[1])
        for name in ("a", "b")
    ]
    blobs.append(GroupMember(member_id="new", user_data=data, owned_partitions=owned))
    answer = assign_group(group.settings("native"), blobs, {"lines": 6})
    assert set(answer.answers["new"].partitions) == set(owned)
    received = new.receive(
        answer.answers["new"].partitions, answer.answers["new"].user_data, now_ms=0
    )
    assert [c for c in received.commands if isinstance(c, RejoinNow)], "it rejoins once"
    assert set(new.held.active) == {TASKS[4], TASKS[5]}
    group.round("a")
    assert rejoins(group.round("a")) == []


@pytest.mark.parametrize("leader", ["2.3.1", "2.8", "3.9.1", "4.3"])
def test_a_jvm_leader_sees_an_ordinary_member_and_no_native_version(leader):
    group = Group()
    group.join("jvm", leader)
    group.join("new", "native")
    group.settle("jvm")
    latest = find_release(leader).latest_version
    assert group.used_versions() == {"jvm": latest, "new": latest}
    assert sorted(group.owners()) == TASKS


def test_jvm_followers_are_answered_by_kafkas_rule_and_natives_by_the_native_rule():
    group = group_of("n")
    group.join("old", "2.8")
    group.join("new", "3.9.1")
    group.settle("n")
    versions = {
        name: member_answer.assignment.version for name, member_answer in group.last.answers.items()
    }
    assert versions == {"n": 9, "old": 9, "new": 9}
    del group.members["old"]
    group.settle("n")
    assert group.used_versions() == {"n": 11, "new": 11}
    del group.members["new"]
    assert rejoins(group.round("n")) == []
    assert group.used_versions() == {"n": 101}


def test_a_pinned_native_member_keeps_its_pin_and_holds_nobody_back():
    group = group_of("a", "b")
    group.join("pinned", "native", upgrade_from="1.1")
    group.round("a")
    group.round("a")
    assert group.used_versions() == {"a": 101, "b": 101, "pinned": 2}
    assert sorted(group.owners()) == TASKS


def forms(group):
    found = {}
    for name, member_answer in group.last.answers.items():
        native = member_answer.assignment.native
        found[name] = [
            form for form in ("full", "delta", "reference") if getattr(native, f"view_{form}")
        ]
    return found


def test_the_view_travels_in_full_then_as_a_reference_then_as_a_delta():
    group = group_of("a", "b", "c", partitions=60)
    group.round("a")
    assert forms(group) == {"a": ["full"], "b": ["full"], "c": ["full"]}
    view = group.members["b"].view
    group.round("a")
    assert forms(group) == {"a": ["reference"], "b": ["reference"], "c": ["reference"]}
    assert group.members["b"].view == view
    group.join("d", endpoint="host-d:4")
    group.round("b")
    assert forms(group) == {"a": ["delta"], "b": ["delta"], "c": ["delta"], "d": ["full"]}
    assert len({m.view for m in group.members.values()}) == 1
    assert group.members["a"].view.epoch == view.epoch + 1


def test_a_member_with_another_view_gets_it_in_full_and_is_never_wrong_silently():
    group = group_of("a", "b", "c")
    group.round("a")
    group.members["c"].view = None
    group.join("d", endpoint="host-d:4")
    group.round("a")
    assert forms(group)["c"] == ["full"]
    hosts = {m.routing.active[host] for m in group.members.values() for host in [("host-0", 1)]}
    assert len(hosts) == 1


def test_the_view_names_the_same_hosts_as_kafkas_map_does():
    group = group_of("a", "b", config=AssignmentConfig(num_standby_replicas=1))
    group.join("jvm", "3.9.1", endpoint="host-j:7")
    group.settle("a")
    native, jvm = group.members["a"].routing, group.members["jvm"].routing
    assert dict(native.active) == dict(jvm.active)
    assert dict(native.standby) == dict(jvm.standby)


def test_over_the_brokers_limit_the_view_is_stepped_down_and_own_tasks_are_kept():
    group = group_of(*[f"m{n}" for n in range(8)], partitions=400)
    settings = group.settings("native")
    small = type(settings)(
        release=settings.release,
        subtopologies=settings.subtopologies,
        config=settings.config,
        group_record_limit=6_000,
    )
    blobs = [
        GroupMember(member_id=name, user_data=member.subscription()[1])
        for name, member in group.members.items()
    ]
    answer = assign_group(small, blobs, {"lines": 400})
    assert [w for w in answer.warnings if "the broker accepts 6,000" in w]
    tasks = [
        task
        for member_answer in answer.answers.values()
        for task in decode_assignment(member_answer.user_data).active_tasks
    ]
    assert len(tasks) == 400
    assert all(
        member_answer.assignment.native.view_full is None
        for member_answer in answer.answers.values()
    )


def test_standbys_of_a_native_answer_know_their_input_partitions():
    group = group_of("a", "b", config=AssignmentConfig(num_standby_replicas=1))
    group.round("a")
    group.round("a")
    assert group.last.answers["a"].assignment.version == 101
    for task, inputs in group.members["a"].held.standby.items():
        assert inputs == (TopicPartition("lines", task.partition),)


def test_an_answer_in_a_later_kafka_version_sends_a_native_down_by_its_two_numbers():
    member = start(start_version="latest")
    answer = 2 * LATER.to_bytes(4) + b"whatever it looks like"
    received = member.receive((), answer, now_ms=0)
    assert received.assignment is None
    assert received.failure == ""
    assert [type(command) for command in received.commands] == [RejoinNow]
    assert member.state.used_version == NEWEST


def test_an_answer_above_what_was_sent_is_a_failure_not_a_rejoin():
    member = start()
    answer = 2 * LATER.to_bytes(4)
    received = member.receive((), answer, now_ms=0)
    assert f"version {LATER}" in received.failure
    assert not [c for c in received.commands if isinstance(c, RejoinNow)]


class TestLayoutsWithoutAField:
    """Version 102, for tests only, has no reference and no instance id."""

    @staticmethod
    def settled(**options):
        group = Group()
        for number, name in enumerate("ab"):
            group.join(name, "next", endpoint=f"{name}:{8080 + number}", **options)
        for _ in range(3):
            group.round("a")
        assert group.used_versions() == {"a": 102, "b": 102}
        return group

    @pytest.mark.parametrize("rounds", [1, 2, 3])
    def test_a_member_has_its_routing_where_the_layout_has_no_reference(self, rounds):
        group = self.settled()
        for _ in range(rounds):
            group.round("a")
        assert {name: len(member.routing.active) for name, member in group.members.items()} == {
            "a": 2,
            "b": 2,
        }

    def test_a_member_that_does_not_report_whether_it_is_static_can_get_its_answer_again(self):
        group = self.settled(instance_id="i")
        group.partitions = 7
        group.round("a")
        again = start("next", number=1, endpoint="b:8081", instance_id="i")
        answer = group.last.answers["b"]
        again.receive(answer.partitions, answer.user_data, now_ms=0)
        assert len(again.routing.active) == 2
