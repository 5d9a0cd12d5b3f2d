"""Small answers are encoded and decoded once, with the same results."""

from dataclasses import replace
from uuid import UUID

import pytest

from assignor.rebalance.blobs import read_answer, write_answer, write_subscription
from assignor.rebalance.leader.boundary import decode_members
from assignor.rebalance.leader.members import GroupMember
from encoding import (
    KNOWN_VERSIONS,
    Assignment,
    DecodeError,
    HostInfo,
    PartitionsByHost,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from probing import find_release


def answer(tasks=2, **fields):
    active = tuple(TaskId(0, number) for number in range(tasks))
    return Assignment(version=9, commonly_supported_version=9, active_tasks=active, **fields)


def test_written_and_read_values_are_those_of_the_codec():
    for tasks in (0, 2, 200):
        for value in (answer(tasks), answer(tasks, next_rebalance_ms=7)):
            data = write_answer(value)
            assert data == encode_assignment(value)
            assert read_answer(data, KNOWN_VERSIONS) == decode_assignment(data) == value


def test_a_small_answer_is_written_and_read_once():
    assert write_answer(answer()) is write_answer(answer())
    data = write_answer(answer())
    assert read_answer(data, KNOWN_VERSIONS) is read_answer(bytes(bytearray(data)), KNOWN_VERSIONS)


def test_a_large_answer_is_not_kept():
    data = write_answer(answer(200))
    assert write_answer(answer(200)) is not data
    assert read_answer(data, KNOWN_VERSIONS) is not read_answer(data, KNOWN_VERSIONS)
    hosts = PartitionsByHost({HostInfo("h", 1): (TopicPartition("t", 0),)})
    first, again = (write_answer(answer(partitions_by_host=hosts)) for _ in range(2))
    assert first == again
    assert first is not again


def test_readers_of_other_versions_are_distinguished():
    data = write_answer(answer())
    assert read_answer(data, KNOWN_VERSIONS).version == 9
    with pytest.raises(DecodeError, match="version 9"):
        read_answer(data, (1, 2, 3))


def test_a_subscription_that_is_read_again_is_read_as_this_reader_would():
    value = Subscription(version=9, latest_supported_version=9, process_id=UUID(int=1))
    member = GroupMember(member_id="a", user_data=encode_subscription(value))
    native, old = find_release("native"), find_release("2.3.1")
    read = [decode_members([member], native)["a"] for _ in range(2)]
    assert read[0] is read[1]
    assert read[0] == value
    future = decode_members([member], old)["a"]
    assert type(future).__name__ == "FutureSubscription"
    unreadable = GroupMember(member_id="a", user_data=b"\0")
    assert isinstance(decode_members([unreadable], native)["a"], str), "why"


def test_a_subscription_of_few_tasks_is_written_once_and_of_many_each_time():
    sums = [{TaskId(0, n): -2 for n in range(tasks)} for tasks in (3, 65)]
    few, many = (
        Subscription(
            version=11,
            latest_supported_version=11,
            process_id=UUID(int=1),
            task_offset_sums=TaskOffsetSums.from_mapping(given),
        )
        for given in sums
    )
    again = replace(few, task_offset_sums=TaskOffsetSums.from_mapping(sums[0]))
    assert write_subscription(few) is write_subscription(again)
    assert write_subscription(few) == encode_subscription(few)
    assert write_subscription(many) is not write_subscription(many)
    assert write_subscription(many) == encode_subscription(many)
    other = replace(few, unique_field=1)
    assert write_subscription(other) == encode_subscription(other) != write_subscription(few)
