"""Answers compared with the member's topology: those that no correct leader sends."""

from uuid import UUID

import pytest

from assignor import MemberIdentity, StreamsMember
from assignor.topology import Subtopology
from encoding import Assignment, NativeAssignment, TaskId, TopicPartition, encode_assignment
from probing import find_release
from tests.costs import cost_of

PLAIN = Subtopology(id=0, nodes=("read",), source_topics=("lines",))
JOINED = Subtopology(
    id=1,
    nodes=("join",),
    source_topics=("left", "right"),
    changelog_topics=("joined-changelog",),
)
COUNTS = {"lines": 4, "left": 4, "right": 4}
SIZES = (4, 4)


def member_of(*subtopologies):
    identity = MemberIdentity(process_id=UUID(int=1))
    return StreamsMember(find_release("native"), identity, subtopologies=subtopologies)


def lines(*numbers):
    return tuple(TopicPartition("lines", number) for number in numbers)


def kafka_answer(tasks, standby=None, *, version=11, native=None):
    return encode_assignment(
        Assignment(
            version=version,
            commonly_supported_version=11,
            active_tasks=tasks,
            standby_tasks=standby or {},
            native=native,
        )
    )


def native_answer(tasks, standby=(), *, counts=COUNTS, **fields):
    native = NativeAssignment(sizes=SIZES, partition_counts=counts, **fields)
    value = Assignment(
        version=101,
        commonly_supported_version=101,
        active_tasks=tasks,
        standby_tasks=dict.fromkeys(standby, ()),
        native=native,
    )
    return encode_assignment(value)


BOTH = (TopicPartition("left", 0), TopicPartition("right", 0))
BROKEN = {
    "a task that the partition is not of": (lines(0), kafka_answer((TaskId(0, 516),))),
    "a task of another subtopology": (lines(0), kafka_answer((TaskId(1, 0),))),
    "an unknown subtopology": (lines(0), kafka_answer((TaskId(7, 0),))),
    "an unknown topic": ((TopicPartition("other", 0),), kafka_answer((TaskId(0, 0),))),
    "a named topology": (lines(0, 1), kafka_answer((TaskId(0, 0), TaskId(0, 1, "named")))),
    "one partition for two tasks": (lines(0, 0), kafka_answer((TaskId(0, 0), TaskId(1, 0)))),
    "a partition twice": (lines(0, 0), kafka_answer((TaskId(0, 0), TaskId(0, 0)))),
    "a negative partition": (lines(-1), kafka_answer((TaskId(0, -1),))),
    "an unknown standby": ((), kafka_answer((), {TaskId(7, 0): lines(0)})),
    "a standby with a strange partition": ((), kafka_answer((), {TaskId(0, 3): lines(2)})),
    "a standby of nothing": ((), kafka_answer((), {TaskId(0, 3): ()})),
    "active and standby": (lines(0), kafka_answer((TaskId(0, 0),), {TaskId(0, 0): lines(0)})),
    "beyond the leader's own counts": (
        lines(5),
        kafka_answer(
            (TaskId(0, 5),), native=NativeAssignment(sizes=SIZES, partition_counts=COUNTS)
        ),
    ),
    "native: beyond the leader's own counts": (lines(5), native_answer((TaskId(0, 5),))),
    "native: half of the inputs": (BOTH[:1], native_answer((TaskId(1, 0),))),
    "native: a partition twice": (lines(0, 0), native_answer((TaskId(0, 0),))),
    "native: a standby that does not exist": ((), native_answer((), (TaskId(0, 4),))),
    "native: a standby of another topology": ((), native_answer((), (TaskId(3, 0),))),
    "native: active and standby": (lines(0), native_answer((TaskId(0, 0),), (TaskId(0, 0),))),
    "native: a named topology": ((), native_answer((), (TaskId(0, 0, "named"),))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_answer_that_is_not_of_this_topology_is_unfollowable(name):
    member = member_of(PLAIN, JOINED)
    partitions, data = BROKEN[name]
    received = member.receive(partitions, data, now_ms=0)
    assert received.failure
    assert len(received.failure) < 400
    assert (member.held.active, member.held.standby) == ({}, {})


@pytest.mark.parametrize("version", range(1, 12))
def test_what_fits_is_taken_in_every_version_of_kafka(version):
    member = member_of(PLAIN, JOINED)
    tasks = (TaskId(1, 0), TaskId(0, 3), TaskId(1, 0))
    partitions = (BOTH[0], lines(3)[0], BOTH[1])
    standby = {TaskId(1, 2): (TopicPartition("left", 2), TopicPartition("right", 2))}
    data = kafka_answer(tasks, standby, version=version)
    assert member.receive(partitions, data, now_ms=0).failure == ""
    assert member.held.active == {TaskId(1, 0): BOTH, TaskId(0, 3): lines(3)}
    assert member.held.standby == standby


def test_what_a_member_cannot_know_is_permitted():
    # A JVM leader sends no counts: it can know partitions that this client has not seen yet, and
    # of a join whose topics differ in their counts.
    member = member_of(PLAIN, JOINED)
    partitions = (TopicPartition("left", 900), *lines(900))
    data = kafka_answer((TaskId(1, 900), TaskId(0, 900)))
    assert member.receive(partitions, data, now_ms=0).failure == ""
    assert len(member.held.active) == 2


def test_a_member_without_a_topology_checks_nothing():
    member = member_of()
    tasks = (TaskId(0, 0), TaskId(0, 516, "named"))
    assert member.receive(lines(0, 1), kafka_answer(tasks), now_ms=0).failure == ""
    assert tuple(member.held.active) == tasks


def test_warm_ups_are_standby_tasks():
    member = member_of(PLAIN, JOINED)
    tasks = (TaskId(1, 2), TaskId(0, 1))
    data = native_answer((), tasks[:1], warmup_tasks=tasks)
    assert member.receive((), data, now_ms=0).failure == ""
    assert member.held.warmup == {tasks[0]}


@pytest.mark.parametrize("version", [11, 101])
def test_one_partition_over_and_over_takes_no_longer_than_others(version):
    many = 50_000
    data = (
        native_answer((TaskId(0, 0),)) if version == 101 else kafka_answer((TaskId(0, 0),) * many)
    )

    def receive():
        member = member_of(PLAIN, JOINED)
        assert "twice" in member.receive(lines(0) * many, data, now_ms=0).failure

    assert cost_of(receive, limit=50) <= 50
