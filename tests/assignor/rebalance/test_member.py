"""`StreamsMember`: subscription bytes, version changes, invalid answers."""

from itertools import pairwise
from uuid import UUID

import pytest

from assignor import MemberIdentity, MemberRefused, StreamsMember
from assignor.topology import Subtopology
from encoding import (
    Assignment,
    NativeAssignment,
    TaskId,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from probing import Refuse, RejoinNow, ReleaseError, find_release
from tests.assignor.rebalance.groups import Group, start

LINES = tuple(TopicPartition("lines", p) for p in range(4))
TASKS = tuple(TaskId(0, p) for p in range(4))


def answer(version=11, common=11, tasks=TASKS, **fields):
    value = Assignment(
        version=version, commonly_supported_version=common, active_tasks=tasks, **fields
    )
    return encode_assignment(value)


def test_two_subscriptions_in_a_row_never_have_equal_bytes_in_any_version():
    for release in ("native", "2.0.1", "2.3.1", "2.5", "3.9.1"):
        member = start(release)
        blobs = [member.subscription()[1] for _ in range(300)]
        assert all(left != right for left, right in pairwise(blobs)), release


def test_release_2_6_0_repeats_itself_as_history_has_it():
    member = start("2.6.0")
    assert member.subscription()[1] == member.subscription()[1]


def test_a_jvm_leader_gets_stateful_tasks_only_and_a_native_leader_all_tasks():
    # A real leader of 2.8.2 fails on a stateless task among the offset sums.
    plain = Subtopology(id=0, nodes=("read",), source_topics=("lines",))
    counted = Subtopology(
        id=1, nodes=("count",), source_topics=("words",), changelog_topics=("counts-changelog",)
    )
    identity = MemberIdentity(process_id=UUID(int=1))
    member = StreamsMember(find_release("native"), identity, subtopologies=(plain, counted))
    both = (TaskId(0, 0), TaskId(1, 0))
    held = (TopicPartition("lines", 0), TopicPartition("words", 0))
    member.receive(held, answer(tasks=both), now_ms=0)
    _, blob = member.subscription()
    as_jvm = decode_subscription(blob, known_versions=range(1, 12))
    assert as_jvm.version == 11
    assert as_jvm.prev_tasks == both[1:]
    assert decode_subscription(blob).prev_tasks == both


def test_what_a_member_holds_is_reported_as_running_and_standbys_as_unknown():
    member = start()
    standby = {TaskId(0, 9): (TopicPartition("lines", 9),)}
    member.receive(LINES, answer(standby_tasks=standby), now_ms=0)
    subscription = decode_subscription(member.subscription({TASKS[0]: 5, TaskId(0, 8): 70})[1])
    assert subscription.prev_tasks == TASKS
    assert dict(subscription.task_offset_sums) == {
        **dict.fromkeys(TASKS, -2),
        TaskId(0, 8): 70,
        TaskId(0, 9): -3,
    }


def test_tasks_that_were_given_up_count_by_the_state_that_they_left():
    member = start()
    member.receive(LINES, answer(), now_ms=0)
    written = member.subscription({TASKS[0]: 5}, gave_up_tasks=True)[1]
    subscription = decode_subscription(written)
    assert subscription.prev_tasks == ()
    assert dict(subscription.task_offset_sums) == {TASKS[0]: 5}


def test_a_task_with_several_partitions_holds_them_all():
    joined = Subtopology(id=0, nodes=("join",), source_topics=("a", "b"))
    identity = MemberIdentity(process_id=UUID(int=1))
    member = StreamsMember(find_release("native"), identity, subtopologies=(joined,))
    both = (TopicPartition("a", 0), TopicPartition("b", 0))
    member.receive(both, answer(tasks=(TASKS[0], TASKS[0])), now_ms=0)
    assert member.held.active == {TASKS[0]: both}


def test_partitions_in_any_order_pair_with_their_tasks():
    member = start()
    member.receive(tuple(reversed(LINES)), answer(), now_ms=0)
    assert member.held.active == {t: (p,) for t, p in zip(TASKS, LINES, strict=True)}


@pytest.mark.parametrize(
    ("partitions", "data", "sentence"),
    [
        (LINES[:3], answer(), "3 partitions were assigned but 4 active task ids"),
        (LINES, b"", "unreadable"),
        (LINES, b"\x00\x00\x00\x0c\x00\x00\x00\x0c", "unreadable"),
    ],
)
def test_an_answer_that_cannot_be_followed_is_a_sentence_and_leaves_no_tasks(
    partitions, data, sentence
):
    member = start()
    received = member.receive(partitions, data, now_ms=0)
    assert sentence in received.failure
    assert not member.held.active


def test_a_missing_endpoint_in_the_host_map_asks_for_a_follow_up():
    member = start(endpoint="here:1")
    hosts = {("there", 1): LINES[:1]}
    received = member.receive(LINES, answer(partitions_by_host=hosts), now_ms=0)
    assert [c.rule for c in received.commands][-1] == "host is missing"
    assert not received.for_version


def test_a_version_change_is_no_follow_up():
    member = start()
    received = member.receive(LINES, answer(version=10, common=10), now_ms=0)
    assert received.for_version
    assert member.state.used_version == 10
    assert member.held.active, "version change and tasks are independent (KAFKA-8972)"


def test_a_member_of_2_3_leaves_the_tasks_of_a_probing_answer_alone():
    member = start("2.3.1")
    member.receive(LINES, answer(version=3, common=3), now_ms=0)
    assert not member.held.active


def test_kafka_8649_is_a_refusal_to_write():
    member = start("2.0.1")
    member.receive(LINES, answer(version=3, common=4), now_ms=0)
    with pytest.raises(MemberRefused, match="KAFKA-8649"):
        member.subscription()


@pytest.mark.parametrize(
    "data",
    [b"\0\0\0\x0c" * 9, b"\xff" * 8, answer(11), answer(101, 101)[:6] + bytes(20)],
    ids=["a later version", "no version", "above the pin", "no body"],
)
def test_an_answer_that_cannot_be_adopted_ends_no_native_member(data):
    member = start(upgrade_from="1.1")
    for _ in range(3):
        member.subscription()
        assert member.receive(LINES, data, now_ms=0).failure
        assert member.state.refusal is None
    member.subscription()
    assert member.receive(LINES, answer(2, -1), now_ms=0).failure == ""
    assert tuple(member.held.active) == TASKS


def test_an_answer_above_what_was_sent_is_refused():
    member = start("3.9", upgrade_from="1.1")
    received = member.receive(LINES, answer(version=11), now_ms=0)
    assert [c for c in received.commands if isinstance(c, Refuse)]
    assert received.failure
    assert not member.held.active


def test_an_unknown_upgrade_from_is_refused_at_start():
    with pytest.raises(ReleaseError, match=r"accepted"):
        start("3.9", upgrade_from="9.9")


def test_forgetting_tasks_stops_claiming_them():
    member = start()
    member.receive(LINES, answer(), now_ms=0)
    member.forget_tasks()
    assert not decode_subscription(member.subscription()[1]).prev_tasks


def test_a_group_of_two_versions_settles_at_the_lower_and_climbs_when_the_last_is_bounced():
    group = Group()
    for name in ("a", "b"):
        group.join(name, "3.1")
    group.settle("a")
    group.join("b", "native")
    assert group.settle("a") == 2
    assert group.used_versions() == {"a": 10, "b": 10}
    group.join("a", "native")
    assert group.settle("b") == 1, "no member rejoins for a version under a native leader"
    assert group.used_versions() == {"a": 101, "b": 101}


def restarted(**options):
    """A static member that restarts within its session and gets its former answer."""
    return start(instance_id="i", **options)


def kept(version=11, sizes=(4,), tasks=TASKS, **fields):
    """The assignment of a native leader that a coordinator keeps for a static member."""
    native = NativeAssignment(sizes=sizes, partition_counts={"lines": 4}, next_version=101)
    return answer(version, tasks=tasks, native=native, **fields)


def rejoins(received):
    return [command.rule for command in received.commands if isinstance(command, RejoinNow)]


@pytest.mark.parametrize("version", [11, 101])
def test_a_static_member_goes_on_with_the_answer_from_before_its_restart(version):
    common = max(version, 11)
    for pin in (None, "0.10.2", "1.1", "2.3"):
        member = restarted(upgrade_from=pin)
        member.subscription()
        received = member.receive(LINES, kept(version, common=common), now_ms=0)
        assert rejoins(received) == [], pin
        assert received.failure == ""
        assert tuple(member.held.active) == TASKS


@pytest.mark.parametrize(
    ("name", "blob"),
    [
        ("of a later program", b"\x00\x00\x00\x0c\x00\x00\x00\x0c" + bytes(30)),
        ("cut", answer()[:20]),
        ("above the pin, by a JVM leader", answer(11)),
        ("of another topology", kept(tasks=TASKS[:3])),
    ],
)
def test_an_answer_from_before_the_restart_that_no_longer_fits_is_asked_for_again_once(name, blob):
    member = restarted(upgrade_from="0.10.2")
    before = member.subscription()[1]
    assert rejoins(member.receive(LINES, blob, now_ms=0)) == ["answer from before the restart"]
    assert member.held.active == {}
    again = member.subscription()[1]
    assert again != before
    assert decode_subscription(again).version == decode_subscription(before).version
    received = member.receive(LINES, kept(2, common=-1), now_ms=0)
    assert rejoins(received) == []
    assert tuple(member.held.active) == TASKS


def test_a_static_member_with_a_grown_topology_keeps_its_tasks_and_asks_for_the_new_ones():
    member = restarted()
    received = member.receive(LINES, kept(sizes=(4, 2)), now_ms=0)
    assert rejoins(received) == ["answer from before the restart"]
    assert "2 subtopologies" in received.commands[-1].why
    assert tuple(member.held.active) == TASKS
    assert rejoins(member.receive(LINES, kept(sizes=(4, 2)), now_ms=0)) == []


def test_a_static_member_that_went_back_to_an_older_program_asks_for_an_answer_that_it_can_read():
    member = restarted()
    native = NativeAssignment(
        version=103, commonly_supported_version=103, sizes=(4,), next_version=103
    )
    received = member.receive(LINES, answer(11, native=native), now_ms=0)
    assert rejoins(received) == ["answer from before the restart"]
    assert "native body of version 103" in received.commands[-1].why
    assert tuple(member.held.active) == TASKS  # which are in Kafka's own layout
    assert rejoins(member.receive(LINES, answer(11, native=native), now_ms=0)) == []


def test_dynamic_members_and_emulated_releases_do_not_ask_for_a_readable_answer():
    assert start().receive(LINES, answer()[:20], now_ms=0).failure
    assert start("2.3.1", instance_id="i").receive(LINES, answer()[:20], now_ms=0).failure


def test_static_members_get_the_routing_view_whole_so_that_a_restart_finds_it_again():
    group = Group()
    group.join("a", endpoint="a:1", instance_id="i-a")
    group.join("b", endpoint="b:1")
    group.settle("a")
    group.round("a")
    views = {name: answer.assignment.native for name, answer in group.last.answers.items()}
    assert views["a"].view_full is not None
    assert views["b"].view_full is None
    back = start(number=0, endpoint="a:1", instance_id="i-a")
    answer = group.last.answers["a"]
    received = back.receive(answer.partitions, answer.user_data, now_ms=0)
    assert rejoins(received) == []
    assert back.routing == group.members["a"].routing
    assert back.routing.active
