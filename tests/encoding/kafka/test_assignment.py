"""Values that the assignment's writer refuses, and bytes that it writes only once."""

import dataclasses

import pytest

import encoding.kafka.assignment
from encoding import (
    NO_REBALANCE,
    Assignment,
    DecodeError,
    EncodeError,
    HostInfo,
    PartitionsByHost,
    PartitionsByTask,
    TaskId,
    decode_assignment,
    encode_assignment,
)
from tests.versions import LATER

HOSTS = PartitionsByHost({("h1", 1): [("b", 0), ("a", 1)], ("h0", 2): [("b", 1)]})
STANDBY = PartitionsByHost({("h1", 1): [("c", 1)]})
ANSWER = Assignment(
    version=11,
    commonly_supported_version=11,
    active_tasks=(TaskId(0, 1), TaskId(0, 1), TaskId(0, 0)),
    standby_tasks={TaskId(1, 0): [("c", 0)]},
    partitions_by_host=HOSTS,
    standby_partitions_by_host=STANDBY,
)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"version": LATER}, "version"),
        ({"version": 0}, "version"),
        ({"version": 9, "active_tasks": (TaskId(0, 0, "n"),)}, "active_tasks.topology_name"),
        ({"version": 6, "standby_tasks": {TaskId(0, 0, "n"): []}}, "standby_tasks.topology_name"),
        ({"version": 9, "active_tasks": (TaskId(2**31, 0),)}, "active_tasks.subtopology"),
        ({"active_tasks": (TaskId(0, -(2**31) - 1),)}, "active_tasks.partition"),
        ({"standby_tasks": {TaskId(0, 0): [("t", 2**31)]}}, "standby_tasks.partitions.partition"),
        (
            {"version": 4, "partitions_by_host": {HostInfo("h", 2**31): []}},
            "partitions_by_host.port",
        ),
        (
            {"partitions_by_host": {HostInfo("h", 1): [("t", 2**31)]}},
            "partitions_by_host.partitions.partition",
        ),
        ({"next_rebalance_ms": 2**63}, "next_rebalance_ms"),
        ({"commonly_supported_version": 2**31}, "commonly_supported_version"),
        ({"error_code": "1"}, "error_code"),
        ({"active_tasks": (TaskId(0, 0, 7),)}, "active_tasks.topology_name"),
    ],
)
def test_impossible_values_are_refused_by_name(changes, field):
    value = dataclasses.replace(ANSWER, **changes)
    with pytest.raises(EncodeError) as caught:
        encode_assignment(value)
    assert caught.value.field == field
    assert caught.value.version in (None, value.version)


@pytest.mark.parametrize(
    ("topic", "fits"), [("x" * 65_535, True), ("x" * 65_536, False), ("\0" * 32_768, False)]
)
def test_a_topic_may_take_65535_bytes_and_no_more(topic, fits):
    value = dataclasses.replace(ANSWER, standby_tasks={TaskId(0, 0): [(topic, 0)]})
    if fits:
        assert decode_assignment(encode_assignment(value)) == value
        return
    with pytest.raises(EncodeError, match="takes 65536 bytes, at most 65535 fit"):
        encode_assignment(value)


def test_values_are_normalised_when_they_are_built():
    value = Assignment(
        version=11,
        active_tasks=(TaskId(0, 0, ""), TaskId(0, 0, "n")),
        standby_tasks={TaskId(2, 0): [], TaskId(1, 0): [("b", 0), ("a", 0)]},
        partitions_by_host={HostInfo("b", 1): [], HostInfo("a", 1): []},
        standby_partitions_by_host={},
    )
    assert value.active_tasks == (TaskId(0, 0), TaskId(0, 0, "n"))
    assert list(value.standby_tasks) == [TaskId(1, 0), TaskId(2, 0)]
    assert isinstance(value.standby_tasks, PartitionsByTask)
    assert list(value.partitions_by_host) == [HostInfo("a", 1), HostInfo("b", 1)]
    assert value.next_rebalance_ms == NO_REBALANCE
    assert hash(value) == hash(decode_assignment(encode_assignment(value)))


def test_active_tasks_keep_their_order_and_repeats():
    assert decode_assignment(encode_assignment(ANSWER)).active_tasks == ANSWER.active_tasks


def test_the_dictionary_of_version_5_names_no_topic_of_the_standby_map():
    five, six = (encode_assignment(dataclasses.replace(ANSWER, version=v)) for v in (5, 6))
    head = 20 + 3 * 8  # two numbers, three active tasks, no standby task yet
    assert five[:4] == bytes((0, 0, 0, 5))
    assert len(five) < len(six)
    assert (five[head:].count(b"\0\x01c"), six[head:].count(b"\0\x01c")) == (1, 2)


def test_host_maps_are_written_once_for_all_members_and_layouts_that_agree(monkeypatch):
    hosts, standby = PartitionsByHost(HOSTS), PartitionsByHost(STANDBY)
    made = []
    topics_of = encoding.kafka.assignment._topics_of
    monkeypatch.setattr(
        encoding.kafka.assignment, "_topics_of", lambda value: made.append(1) or topics_of(value)
    )
    answers = [
        dataclasses.replace(
            ANSWER,
            version=version,
            active_tasks=(TaskId(0, number),),
            partitions_by_host=hosts,
            standby_partitions_by_host=standby,
        )
        for version in (6, 8, 10, 11)
        for number in range(50)
    ]
    blobs = [encode_assignment(answer) for answer in answers]
    assert len(made) == 3  # the dictionary and the two maps, once
    assert [decode_assignment(blob) for blob in blobs] == answers
    other = dataclasses.replace(answers[-1], standby_partitions_by_host=PartitionsByHost())
    assert decode_assignment(encode_assignment(other)) == other
    assert len(made) == 6
    five = dataclasses.replace(answers[-1], version=5)
    assert decode_assignment(encode_assignment(five)).partitions_by_host == hosts
    assert len(made) == 8


def test_a_topic_number_that_the_dictionary_lacks_is_named():
    only = dataclasses.replace(
        ANSWER,
        standby_tasks={},
        partitions_by_host={HostInfo("h", 1): [("t", 5)]},
        standby_partitions_by_host={},
    )
    data = bytearray(encode_assignment(only))
    at = bytes(data).index(b"\0\0\0\0\0\0\0\x05")
    data[at + 3] = 9
    with pytest.raises(DecodeError, match="topic number 9, which its dictionary lacks"):
        decode_assignment(bytes(data))


def test_a_host_that_is_no_modified_utf8_is_a_decode_error():
    value = dataclasses.replace(ANSWER, version=4, partitions_by_host={HostInfo("host", 1): []})
    data = encode_assignment(value).replace(b"host", b"h\xffst")
    with pytest.raises(DecodeError, match=r"partitions_by_host\.host is not modified UTF-8"):
        decode_assignment(data)
