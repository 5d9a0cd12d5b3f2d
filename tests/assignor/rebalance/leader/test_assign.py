"""`assign_group`: versions, placement, and isolation of members with invalid bytes."""

import numpy as np
import pytest

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    TaskAssignment,
    Topology,
    assign_group,
    sticky,
)
from assignor.errors import CopartitionMismatch, LeaderRefused
from assignor.rebalance import answered_persistent_version
from assignor.topology.tasks import SubtopologyWaits
from encoding import NO_REBALANCE, AssignorError, TaskId, TopicPartition, decode_assignment
from probing import find_release
from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels
from tests.assignor.rebalance.groups import TOPOLOGY, Group, start

TASKS = [TaskId(0, p) for p in range(6)]


def group_of(*names, release="native", **options):
    group = Group(**options)
    for name in names:
        group.join(name, release)
    return group


def test_every_task_runs_on_exactly_one_member_and_loads_are_level():
    group = group_of("a", "b", "c")
    group.round("a")
    assert sorted(group.owners()) == TASKS
    assert [len(m.held.active) for m in group.members.values()] == [2, 2, 2]


def test_task_ids_pair_up_with_sorted_partitions():
    group = group_of("a")
    group.round("a")
    answer = group.last.answers["a"]
    assert answer.partitions == tuple(TopicPartition("lines", p) for p in range(6))
    assert answer.assignment.active_tasks == tuple(TASKS)


def test_a_joining_member_takes_its_share_and_the_rest_stays():
    group = group_of("a", "b")
    group.round("a")
    before = group.owners()
    group.join("c")
    group.round("a")
    after = group.owners()
    assert sum(before[task] != after[task] for task in TASKS) == 2


def test_standbys_are_on_another_member_with_the_input_partitions():
    group = group_of("a", "b", config=AssignmentConfig(num_standby_replicas=1))
    group.round("a")
    for member in group.members.values():
        assert not member.held.active.keys() & member.held.standby.keys()
        for task, partitions in member.held.standby.items():
            assert partitions == (TopicPartition("lines", task.partition),)
    assert sorted(t for m in group.members.values() for t in m.held.standby) == TASKS


def test_the_host_map_names_who_runs_what():
    group = Group()
    group.join("a", endpoint="host-a:1")
    group.join("b", endpoint="[::1]:2")
    group.join("c")
    group.round("a")
    hosts = group.members["c"].routing.active
    assert {tuple(host) for host in hosts} == {("host-a", 1), ("::1", 2)}
    for host, name in zip(sorted(hosts), ("b", "a"), strict=True):
        assert hosts[host] == tuple(
            TopicPartition("lines", t.partition) for t in sorted(group.members[name].held.active)
        )


def test_bytes_that_cannot_be_read_quarantine_one_member_and_hurt_nobody():
    group = group_of("a", "b")
    group.round("a")
    kept = (TopicPartition("lines", 0),)
    garbage = GroupMember(member_id="bad", user_data=b"\x00\x01", owned_partitions=kept)
    group.round("a", extra=[garbage])
    assert group.last.answers["bad"].partitions == kept
    assert "bad" in group.last.quarantined
    assert [w for w in group.last.warnings if "quarantined bad" in w]
    assert sorted(group.owners()) == TASKS[1:]
    assert group.last.withheld == {}, "the strategy does not place what a member keeps"


def test_an_older_leader_ends_at_bytes_that_it_cannot_read():
    group = group_of("a", release="3.9")
    with pytest.raises(LeaderRefused):
        group.round("a", extra=[GroupMember(member_id="bad", user_data=b"")])


def test_a_leader_from_before_probing_ends_at_a_version_it_does_not_know():
    group = group_of("a", release="0.10.2")
    group.join("b", "2.0")
    with pytest.raises(LeaderRefused, match=r"version=3.*upgrade\.from=0\.10\.2"):
        group.round("a")


def test_a_request_to_shut_down_reaches_all_members_with_error_4_and_no_tasks():
    group = group_of("a", "b")
    group.round("a")
    _, data = group.members["b"].subscription(error_code=AssignorError.SHUTDOWN_REQUESTED)
    settings = group.settings("native")
    blobs = [
        GroupMember(member_id="a", user_data=group.members["a"].subscription()[1]),
        GroupMember(member_id="b", user_data=data),
    ]
    answers = assign_group(settings, blobs, {"lines": 6}).answers
    for answer in answers.values():
        assert decode_assignment(answer.user_data).error_code == 4
        assert answer.partitions == ()


def on_the_first_and_warming_up_on_the_second(state):
    """Every task on the first client, and a warm-up of the first task on the second."""
    return TaskAssignment(
        active=np.zeros(len(state.tasks), dtype=np.int64),
        standbys=((0, 1),),
        warmups=((0, 1),),
        look_again=True,
    )


def test_an_answer_with_an_error_has_no_warm_ups_and_no_next_rebalance():
    group = group_of("a", "b", strategy=on_the_first_and_warming_up_on_the_second)
    group.round("a", knowledge=LeaderKnowledge(leader_id="a", now_ms=1))
    (warming,) = [a for a in answered(group) if a.native.warmup_tasks]
    assert any(a.next_rebalance_ms != NO_REBALANCE for a in answered(group))
    assert warming.standby_tasks

    blobs = [
        GroupMember(member_id=name, user_data=member.subscription(error_code=code)[1])
        for (name, member), code in zip(
            group.members.items(), (0, AssignorError.SHUTDOWN_REQUESTED), strict=True
        )
    ]
    knowledge = LeaderKnowledge(leader_id="a", now_ms=1)
    group.last = assign_group(group.settings("native"), blobs, {"lines": 6}, knowledge=knowledge)
    for answer in answered(group):
        assert (answer.error_code, answer.native.warmup_tasks) == (4, ())
        assert answer.next_rebalance_ms == NO_REBALANCE


def answered(group):
    return [answer.assignment for answer in group.last.answers.values()]


def test_an_unknown_partition_count_is_a_normal_state_without_an_error():
    group = group_of("a", partitions=0)
    received = group.round("a")["a"]
    assert received.assignment.error_code == 0
    assert received.failure == ""
    assert group.last.warnings == ("partition count of lines is not known yet",)


def test_topics_that_do_not_fit_are_refused_before_anything_is_sent():
    topology = (
        Topology()
        .add_source("a", topics=["a", "b"])
        .add_processor("join", parents=["a"])
        .copartition("a", "b")
    )
    settings = LeaderSettings(
        release=find_release("native"),
        subtopologies=topology.subtopologies("app"),
        config=AssignmentConfig(),
    )
    blob = GroupMember(member_id="a", user_data=start().subscription()[1])
    with pytest.raises(CopartitionMismatch):
        assign_group(settings, [blob], {"a": 1, "b": 2})


def raises(state):
    raise RuntimeError("out of ideas")


def forgets(state):
    assignment = sticky(state)
    assignment.active[0] = -1
    return assignment


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [(raises, "RuntimeError: out of ideas"), (forgets, "task 0_0 has no active client")],
)
def test_a_strategy_that_fails_is_reported_and_replaced(strategy, sentence):
    group = group_of("a", strategy=strategy)
    group.round("a")
    assert sorted(group.owners()) == TASKS
    assert [w for w in group.last.warnings if sentence in w]


def test_a_group_record_over_the_brokers_limit_is_warned_about_with_its_size():
    group = Group(partitions=300, group_record_limit=20_000)
    for number in range(12):
        group.join(f"m{number:02}", "3.9", endpoint=f"host-{number}:1")
    group.round("m00")
    (warning,) = group.last.warnings
    assert "the broker accepts 20,000" in warning
    assert "raise max.message.bytes of __consumer_offsets" in warning


def test_two_threads_of_one_process_share_its_tasks():
    group = group_of("a", "b")
    group.members["b"] = start(number=0)
    group.members["b"].release_name = "native"
    group.join("c")
    group.round("a")
    assert [len(m.held.active) for m in group.members.values()] == [2, 2, 2]


@pytest.mark.parametrize("leader", ["2.0.1", "2.3.1"])
def test_old_leaders_answer_a_future_member_with_nothing_and_the_others_with_what_they_had(leader):
    group = group_of("a", "b", release=leader)
    group.settle("a")
    before = group.owners()
    group.join("new", "2.5")
    received = group.round("a")
    assert received["new"].assignment.active_tasks == ()
    assert group.owners() == before
    group.settle("a")
    assert len(group.members["new"].held.active) == 2
    assert sorted(group.owners()) == TASKS


@pytest.mark.kip("268-5", "core")
@pytest.mark.parametrize(
    ("leader", "empty"),
    [
        ("2.0.1", "0000000300000003" + "00000000" * 3),
        ("2.3.0", "0000000400000004" + "00000000" * 4),
        ("2.3.1", "0000000400000004" + "00000000" * 4),
    ],
)
def test_an_old_leaders_empty_answer_has_two_numbers_and_no_hosts(leader, empty):
    """Bytes that `AssignmentInfo` of each release writes for `new AssignmentInfo(...)`."""
    group = Group()
    group.join("a", leader, endpoint="host-a:1")
    group.join("new", "2.5", endpoint="host-b:2")
    group.round("a")
    assert group.last.answers["new"].user_data.hex() == empty


def test_leaders_of_2_4_hand_a_future_member_what_nobody_has():
    group = group_of("a", "b", release="2.4")
    group.settle("a")
    del group.members["b"]
    group.join("new", "3.0")
    group.round("a")
    assert sorted(group.owners()) == TASKS
    assert len(group.members["new"].held.active) == 3


def test_the_topology_is_read_from_the_settings():
    assert TOPOLOGY.source_topics("app") == ("lines",)


@pytest.mark.kip("384-6", "core")
@pytest.mark.parametrize(
    ("writes", "epoch", "level"),
    [(0, -1, 0), (1, -1, 0), (2, -1, 2), (2, 0, 0)],
)
def test_the_leader_tells_native_members_which_format_it_writes(writes, epoch, level):
    """Only if no level is finalized; all members write the lowest level anyway."""
    group = group_of("a", "b")
    levels = FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: 101}, epoch=epoch) if epoch >= 0 else None
    knowledge = LeaderKnowledge(levels=levels or UNKNOWN_LEVELS, persistent_version=writes)
    received = group.round("a", knowledge=knowledge)
    assert answered_persistent_version(received["b"].assignment) == level
    # A member of an earlier release reads it as levels without an epoch, which it ignores.
    assert group.members["b"].state.known_levels == knowledge.levels


def waiting(*, refused):
    return LeaderKnowledge(waits={0: SubtopologyWaits(why="no changelog", refused=refused)})


@pytest.mark.parametrize("refused", [False, True])
def test_a_subtopology_that_waits_gets_no_tasks_and_the_reason_is_reported(refused):
    group = group_of("a", "b")
    group.round("a", knowledge=waiting(refused=refused))
    assert group.owners() == {}
    assert "subtopology 0 waits: no changelog" in group.last.warnings


def test_tasks_that_ran_go_on_when_a_new_leader_has_not_looked_yet():
    group = group_of("a", "b")
    group.round("a")
    group.round("b", knowledge=waiting(refused=False))
    assert sorted(group.owners()) == TASKS


def test_tasks_that_ran_stop_when_their_subtopology_cannot_work():
    group = group_of("a", "b")
    group.round("a")
    group.round("b", knowledge=waiting(refused=True))
    assert group.owners() == {}


@pytest.mark.parametrize("release", ["native", "2.6", "3.9"])
def test_without_a_source_topic_its_subtopology_waits_and_nobody_gets_an_error(release):
    topology = Topology().add_source("a", topics=["there"]).add_source("b", topics=["missing"])
    settings = LeaderSettings(
        release=find_release("native"),
        subtopologies=topology.subtopologies("app"),
        config=AssignmentConfig(),
    )
    group = [
        GroupMember(member_id="a", user_data=start(topology=topology).subscription()[1]),
        GroupMember(
            member_id="b", user_data=start(release, number=1, topology=topology).subscription()[1]
        ),
    ]
    answer = assign_group(settings, group, {"there": 2})
    assert answer.warnings == ("partition count of missing is not known yet",)
    read = [decode_assignment(member_answer.user_data) for member_answer in answer.answers.values()]
    assert [assignment.error_code for assignment in read] == [AssignorError.NONE] * 2
    assert [len(member_answer.partitions) for member_answer in answer.answers.values()] == [1, 1]
