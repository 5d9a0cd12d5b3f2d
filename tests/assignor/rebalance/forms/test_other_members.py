"""Mixed topologies beside members and leaders that know nothing of them: older releases, JVMs."""

from dataclasses import replace
from uuid import UUID

import pytest

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    StreamsMember,
    assign_group,
    sticky,
)
from assignor.rebalance.leader.claims import PATIENCE, ClaimMemory
from assignor.topology.changes import carried_topologies
from encoding import TaskId, TopicPartition, decode_assignment, encode_assignment
from probing import find_release
from tests.assignor.rebalance.forms.attacked import Attacked, hostile
from tests.assignor.rebalance.forms.mixed_group import COUNTS, NATIVE, MixedGroup, counting

BOTH = ("counts", "totals")


def without_knowledge(member):
    """A member of the release before: it never describes its topology."""
    reported = member.topology.reported
    member.topology.reported = lambda: {**reported(), "carried": (), "reached_versions": ()}


def test_a_member_that_does_not_describe_another_topology_is_refused_by_name():
    group = MixedGroup()
    group.start("new", counting(2, stores=BOTH, sources=("lines", "other")))
    group.start("old", counting())
    without_knowledge(group.members["old"])
    group.rebalance("new")
    assert any("old gets no tasks: it is asked" in w for w in group.last.warnings)
    assert not group.members["old"].held.active
    group.rebalance("new")
    [refused] = [w for w in group.last.warnings if "old gets no tasks" in w]
    assert "version 1: its topology is not the leader's" in refused
    assert "first bounce all members to this release" in refused
    # It costs one rebalance, and then all of its topics run elsewhere.
    assert group.forms("lines") == [BOTH] * 4


def test_a_member_without_a_version_beside_one_topology_gets_no_task_of_the_others():
    group = Attacked(counting(), counting())
    given = group.lead(hostile(version=0))
    assert any("x gets no tasks" in warning for warning in group.last.warnings)
    assert given == [TopicPartition("lines", partition) for partition in range(4)]


def answered_without_numbers(group, name):
    """The answer of a leader of the release before."""
    answer = group.last.answers[name]
    value = decode_assignment(answer.user_data)
    native = replace(value.native, numbered_by=(), reached_versions=(), describe_topology=False)
    return answer.partitions, encode_assignment(replace(value, native=native))


@pytest.mark.parametrize("version", [1, 2])
def test_only_version_1_runs_an_answer_that_names_no_topology(version):
    group = MixedGroup()
    group.start("a", counting(version))
    group.rebalance("a")
    partitions, data = answered_without_numbers(group, "a")
    received = group.members["a"].receive(partitions, data, now_ms=1)
    if version == 1:
        assert (received.failure, len(group.members["a"].held.active)) == ("", 4)
    else:
        assert "this member carries topology version 2: first bounce" in received.failure
        assert not group.members["a"].held.active


def test_version_1_runs_nothing_of_an_answer_whose_partitions_are_not_its_own():
    group = MixedGroup()
    group.start("leader", counting(sources=("lines", "other"), names={"other": "a-first"}))
    group.rebalance("leader")
    partitions, data = answered_without_numbers(group, "leader")
    other = StreamsMember(
        NATIVE,
        MemberIdentity(process_id=UUID(int=9)),
        carried=carried_topologies([counting()], "app"),
    )
    received = other.receive(partitions, data, now_ms=1)
    assert received.failure
    assert not other.held.active


def jvm_blob(number):
    """A JVM member of 3.9 that runs version 1."""
    member = StreamsMember(
        find_release("3.9.1"),
        MemberIdentity(process_id=UUID(int=100 + number)),
        subtopologies=counting().subtopologies("app"),
    )
    return GroupMember(member_id=f"jvm-{number}", user_data=member.subscription()[1])


@pytest.mark.parametrize("leader", ["old", "new"])
def test_beside_jvm_members_only_their_topology_gets_tasks(leader):
    # The new topology numbers `lines` 1, the JVM's numbers it 0.
    programs = {
        "old": carried_topologies([counting()], "app"),
        "new": carried_topologies(
            [counting(2, sources=("lines", "other"), names={"other": "a-first"})], "app"
        ),
    }
    members = {
        name: StreamsMember(NATIVE, MemberIdentity(process_id=UUID(int=n)), carried=carried)
        for n, (name, carried) in enumerate(programs.items(), 1)
    }
    members["old"].topology.describes = True
    group = [
        jvm_blob(0),
        *(GroupMember(member_id=n, user_data=m.subscription()[1]) for n, m in members.items()),
    ]
    program = programs[leader]
    settings = LeaderSettings(
        release=NATIVE,
        subtopologies=program.subtopologies,
        config=AssignmentConfig(),
        strategy=sticky,
        versions=program.versions,
    )
    answer = assign_group(settings, group, COUNTS)
    assert answer.faults == ()
    jvm = decode_assignment(answer.answers["jvm-0"].user_data)
    assert {task.subtopology for task in jvm.active_tasks} == {0}
    assert {p.topic for p in answer.answers["jvm-0"].partitions} == {"lines"}
    assert answer.answers["new"].partitions == ()
    assert any("new gets no tasks" in w and "JVM members" in w for w in answer.warnings)
    received = members["old"].receive(
        answer.answers["old"].partitions, answer.answers["old"].user_data, now_ms=1
    )
    assert received.failure == ""
    all_partitions = {p for a in answer.answers.values() for p in a.partitions}
    assert all_partitions == {TopicPartition("lines", n) for n in range(4)}


def test_hostile_descriptions_are_ignored():
    group = MixedGroup()
    group.start("a", counting())
    group.settle("a")
    group.start("b", counting(2, sources=("lines", "other")))
    reported = group.members["b"].topology.reported
    [first, *rest] = reported()["carried"]
    for row in (
        first._replace(source_topics=("not a topic!",)),
        first._replace(versions=(2**40,)),
        first._replace(repartition_topics=(("elsewhere", 1),)),
        first._replace(source_topics=("z", "a")),
    ):
        group.members["b"].topology.reported = lambda row=row: {
            **reported(),
            "carried": (row, *rest),
        }
        group.rebalance("a")
        assert not group.members["b"].held.active
        assert None not in group.forms("lines")


def test_beside_jvm_members_a_leader_does_not_apply_claims_that_it_remembers_by_its_own_numbers():
    # Task 0_n reads `other` in the leader's own topology, and `lines` in that of the group.
    group = MixedGroup()
    group.start("old", counting())
    group.start("new", counting(2, sources=("lines", "other"), names={"other": "a-first"}))
    group.members["old"].topology.describes = True
    program = group.programs["new"]
    settings = LeaderSettings(
        release=NATIVE,
        subtopologies=program.subtopologies,
        config=AssignmentConfig(),
        strategy=sticky,
        versions=program.versions,
    )
    lines = tuple(TopicPartition("lines", n) for n in range(4))
    blobs = [
        replace(jvm_blob(0), owned_partitions=lines),
        *(
            GroupMember(member_id=name, user_data=member.subscription()[1])
            for name, member in group.members.items()
        ),
    ]
    claims = ClaimMemory(withheld=dict.fromkeys((TaskId(0, n) for n in range(4)), PATIENCE))
    answer = assign_group(settings, blobs, COUNTS, knowledge=LeaderKnowledge(claims=claims))
    # The owner is believed: what moves waits until it has revoked it.
    assert {name: len(waiting) for name, waiting in answer.withheld.items()} == {"old": 2}
    assert set(answer.claims.withheld.values()) == {1}
