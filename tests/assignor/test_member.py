"""The member's half: changing bytes, versions followed, answers that cannot be followed."""

from itertools import pairwise

import pytest

from assignor import MemberRefused
from encoding import Assignment, TaskId, TopicPartition, decode_subscription, encode_assignment
from probing import Refuse, ReleaseError
from tests.assignor.groups import Group, start

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


def test_what_a_member_holds_is_reported_as_running_and_standbys_as_unknown():
    member = start()
    standby = {TaskId(0, 9): (TopicPartition("lines", 9),)}
    member.receive(LINES, answer(standby_tasks=standby), now_ms=0)
    said = decode_subscription(member.subscription({TASKS[0]: 5, TaskId(0, 8): 70})[1])
    assert said.prev_tasks == TASKS
    assert dict(said.task_offset_sums) == {
        **dict.fromkeys(TASKS, -2),
        TaskId(0, 8): 70,
        TaskId(0, 9): -3,
    }


def test_a_task_with_several_partitions_holds_them_all():
    member = start()
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


def test_the_historic_crash_is_a_refusal_to_write():
    member = start("2.0.1")
    member.receive(LINES, answer(version=3, common=4), now_ms=0)
    with pytest.raises(MemberRefused, match="KAFKA-8649"):
        member.subscription()


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
    assert group.settle("b") == 1, "nobody rejoins for a version under a leader of ours"
    assert group.used_versions() == {"a": 101, "b": 101}
