"""A native member leads JVM members: they get tasks, process, route, move and take over."""

import pytest

from probing import NEWEST_KAFKA
from system_tests.live.events import AssignmentTaken, RejoinRequested
from system_tests.support.word_count import repartition_topic, words_topic

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def rejoins_for_the_version(group):
    return [
        (member.name, event.used_version_before, event.used_version_after)
        for member in group.started
        for event in member.all(RejoinRequested)
        if event.for_version
    ]


def served(group):
    """All partitions that queries are routed by."""
    topics = (words_topic(group.application_id), repartition_topic(group.application_id))
    return sorted(f"{topic}-{partition}" for topic in topics for partition in range(4))


@pytest.mark.nightly("20 s; every run has the oldest and the newest release", but=("11", "3"))
@pytest.mark.parametrize(
    ("releases", "version"),
    [(("3.9.1", NEWEST_KAFKA), 11), (("2.3.1", "3.9.1"), 4), (("2.0.1", "2.8.2"), 3)],
    ids=["11", "4", "3"],
)
def test_jvm_members_get_tasks_and_host_maps_from_a_native_leader(
    word_count_on, kafka_3_9, releases, version
):
    group = word_count_on(kafka_3_9)
    group.start("native", "native")
    group.settle()
    for number, release in enumerate(releases):
        group.start(f"jvm{number}", release)
        described = group.settle()
    assert {v for name, v in described.answered_versions.items() if name != "native"} == {version}
    assert rejoins_for_the_version(group) == []
    assert {len(member.active) for member in group.members.values()} == {2, 3}
    maps = [member.hosts() for member in group.members.values()]
    for found in maps:
        assert sorted(p for host in found.values() for p in host["active"]) == served(group)
        assert [host["active"] for host in found.values()] == [
            maps[0][name]["active"] for name in found
        ]
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}


def test_a_jvm_standby_takes_over_when_the_active_is_killed(word_count_on, kafka_4):
    group = word_count_on(kafka_4, session_timeout_ms=10_000)
    group.start("native", "native", num_standby_replicas=1)
    for name in ("jvm0", "jvm1"):
        group.start(name, NEWEST_KAFKA, num_standby_replicas=1)
    group.settle()
    stateful = sorted(f"1_{partition}" for partition in range(4))
    assert sorted(task for m in group.members.values() for task in m.standby) == stateful
    jvm0, jvm1 = (group.members[name] for name in ("jvm0", "jvm1"))
    pairs = [(jvm0, jvm1), (jvm1, jvm0)]
    pairs = [(member, other) for member, other in pairs if set(member.active) & set(other.standby)]
    assert pairs, "no task of one has its warm copy on the other"
    victim, successor = min(pairs, key=lambda pair: len(set(pair[1].active) & set(stateful)))
    warm = set(victim.active) & set(successor.standby)
    # Two members will share four tasks: the successor takes two, with those that it runs already.
    free = len(stateful) // 2 - len(set(successor.active) & set(stateful))
    del group.members[victim.name]
    victim.kill()
    group.settle()
    assert len(warm & set(successor.active)) >= min(len(warm), free)
    written, counted = group.finish()
    assert all(counted[word] >= count for word, count in written.items())
    assert group.failures() == {}


def test_the_group_goes_native_after_the_last_jvm_member_and_back_without_a_rebalance_for_it(
    word_count_on, kafka_3_9
):
    group = word_count_on(kafka_3_9)
    for name in ("native0", "native1"):
        group.start(name, "native")
    group.settle()
    group.start("jvm", "3.9.1")
    mixed = group.settle()
    assert mixed.used_versions["jvm"] == 11
    group.stop("jvm")
    group.settle()
    # What a member is told to write, it writes when something else makes the group rebalance.
    group.start("native2", "native")
    native = group.settle()
    assert native.used_versions["native0"] == native.used_versions["native1"] == 101
    group.start("jvm", "3.9.1")
    group.settle()
    group.stop("native2")
    again = group.settle()
    assert dict(again.used_versions) == {"jvm": 11, "native0": 11, "native1": 11}
    assert rejoins_for_the_version(group) == []
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}


def test_a_jvm_member_can_shut_the_application_down(word_count_on, kafka_3_9):
    """KIP-671: error 4 in one subscription, and in the answers to all.

    Members stay in the group when they close, as is the default of Kafka Streams. If the first one
    left, the next rebalance, whose answers have no error, could begin before the second one has
    fetched its answer.
    """
    group = word_count_on(kafka_3_9)
    native = group.start("native", "native")
    group.settle()
    shutting_down = {"when_failed": "SHUTDOWN_APPLICATION", "leaves_group": False}
    first = group.start("first", "3.9.1", **shutting_down)
    second = group.start("second", "3.9.1", **shutting_down)
    group.settle()
    group.poison(next(int(task[2:]) for task in first.active if task.startswith("0_")))
    for member in (first, second):
        member.wait_for("the end", lambda member=member: member.state == "ERROR")
    assert any(event.error_code == 4 for event in native.all(AssignmentTaken))
    assert "Exception caught in process" in first.failures[0]
    assert second.failures == []


@pytest.mark.parametrize(
    "first",
    [
        "native",
        pytest.param(
            "jvm", marks=pytest.mark.nightly("20 s; every run has the native member first")
        ),
    ],
)
def test_tasks_move_between_cooperative_members_and_every_word_is_counted_once(
    word_count_on, kafka_3_9, first
):
    """Cooperative native members beside JVM members (KIP-429): no task runs twice at a time."""
    group = word_count_on(kafka_3_9)
    start = {
        "native": lambda name: group.start(name, "native", cooperative=True),
        "jvm": lambda name: group.start(name, "3.9.1"),
    }
    second = {"native": "jvm", "jvm": "native"}[first]
    start[first]("a")
    group.settle()
    for name, kind in (("b", second), ("c", first), ("d", second)):
        start[kind](name)
        group.settle()
    assert {len(member.active) for member in group.members.values()} == {2}
    group.stop("b")
    group.settle()
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}
