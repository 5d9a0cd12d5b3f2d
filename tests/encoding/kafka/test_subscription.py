"""Values that the subscription's writer refuses, and values that its reader returns."""

import dataclasses
from uuid import UUID

import pytest

from encoding import (
    KAFKA_VERSIONS,
    UNKNOWN_VERSION,
    DecodeError,
    EncodeError,
    Subscription,
    TaskId,
    TaskOffsetSums,
    decode_subscription,
    encode_subscription,
)
from tests.versions import LATER, NEWEST

MEMBER = Subscription(version=11, latest_supported_version=11, process_id=UUID(int=7))
NAMED = TaskOffsetSums.from_mapping({TaskId(0, 1, "orders"): 5})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"version": LATER, "latest_supported_version": LATER}, "version"),
        ({"version": 0}, "version"),
        ({"version": 5, "latest_supported_version": 4}, "latest_supported_version"),
        ({"version": 3, "latest_supported_version": -1}, "latest_supported_version"),
        ({"version": 2, "latest_supported_version": 1}, "latest_supported_version"),
        ({"latest_supported_version": 2**31}, "latest_supported_version"),
        ({"version": 9, "task_offset_sums": NAMED}, "task_offset_sums.topology_name"),
        ({"version": 6, "task_offset_sums": NAMED}, "task_offset_sums.topology_name"),
        ({"unique_field": 128}, "unique_field"),
        ({"unique_field": -129}, "unique_field"),
        ({"error_code": 2**31}, "error_code"),
        ({"error_code": None}, "error_code"),
        ({"process_id": "7"}, "process_id"),
        ({"user_endpoint": 7}, "user_endpoint"),
        ({"client_tags": {"zone": 7}}, "client_tags.value"),
        ({"client_tags": {"zone": None}}, "client_tags.value"),
    ],
)
def test_impossible_values_are_refused_by_name(changes, field):
    value = dataclasses.replace(MEMBER, **changes)
    with pytest.raises(EncodeError) as caught:
        encode_subscription(value)
    assert caught.value.field == field
    assert caught.value.version in (None, value.version)


def test_a_topology_name_may_take_32767_bytes_and_no_more():
    def named(length):
        sums = TaskOffsetSums.from_mapping({TaskId(0, 1, "x" * length): 5})
        return dataclasses.replace(MEMBER, task_offset_sums=sums)

    assert decode_subscription(encode_subscription(named(32_767))) == named(32_767)
    with pytest.raises(EncodeError, match="takes 32768 bytes, at most 32767 fit"):
        encode_subscription(named(32_768))


def test_versions_1_and_2_may_leave_the_supported_version_unknown():
    for version in (1, 2):
        member = dataclasses.replace(
            MEMBER, version=version, latest_supported_version=UNKNOWN_VERSION
        )
        assert decode_subscription(encode_subscription(member)) == member


def test_values_are_normalised_when_they_are_built():
    tags = {"zone": "b", "rack": "a"}
    member = dataclasses.replace(MEMBER, user_endpoint="", client_tags=tags)
    assert member.user_endpoint is None
    assert list(member.client_tags) == ["rack", "zone"]
    assert hash(member) == hash(decode_subscription(encode_subscription(member)))


def test_lists_of_versions_1_to_6_keep_which_tasks_run_and_lose_the_sums():
    sums = {TaskId(0, 0): -2, TaskId(0, 1): 0, TaskId(0, 2): -3, TaskId(0, 3): -4, TaskId(0, 4): 99}
    for version in KAFKA_VERSIONS:
        member = dataclasses.replace(
            MEMBER,
            version=version,
            latest_supported_version=NEWEST,
            task_offset_sums=TaskOffsetSums.from_mapping(sums),
        )
        back = dict(decode_subscription(encode_subscription(member)).task_offset_sums)
        if version >= 7:
            assert back == sums
        else:
            assert back == {task: -2 if n == -2 else -3 for task, n in sums.items()}


def test_decode_errors_have_offset_and_available_bytes():
    data = encode_subscription(dataclasses.replace(MEMBER, user_endpoint="host:9"))
    with pytest.raises(DecodeError) as caught:
        decode_subscription(data[:30])
    error = caught.value
    assert (error.offset, error.version, error.available) == (28, 11, 30)
    assert error.what == (
        "subscription user_endpoint needs 6 bytes, 2 are left; the peer's blob is cut off"
    )


def test_the_same_tag_twice_is_an_error():
    data = encode_subscription(dataclasses.replace(MEMBER, client_tags={"a": "1", "b": "2"}))
    with pytest.raises(DecodeError, match="2 entries, but 1 different keys"):
        decode_subscription(data.replace(b"b", b"a"))


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_is_read_and_none_is_kept(wrap):
    sums = TaskOffsetSums.from_columns([1, 2], [0, 0], [-2, 5])
    member = dataclasses.replace(MEMBER, task_offset_sums=sums)
    source = wrap(encode_subscription(member))
    value = decode_subscription(source)
    if wrap is bytearray:
        source[:] = bytes(len(source))
    assert value == member


def test_many_groups_are_read_in_one_pass():
    count = 20_000
    sums = TaskOffsetSums.from_columns(range(count), [0] * count, range(count))
    member = dataclasses.replace(MEMBER, version=8, task_offset_sums=sums)
    assert decode_subscription(encode_subscription(member)) == member


def test_a_reader_of_version_1_alone_cannot_read_two_numbers_in_version_2():
    data = encode_subscription(dataclasses.replace(MEMBER, version=2))
    with pytest.raises(DecodeError, match="version 2, which this reader does not know"):
        decode_subscription(data, known_versions=(1,))


def test_kafkas_fields_can_have_fewer_tasks_than_the_trailer():
    sums = TaskOffsetSums.from_mapping({TaskId(0, 1): 5})
    fewer = dataclasses.replace(MEMBER, task_offset_sums=TaskOffsetSums.from_mapping({}))
    more = dataclasses.replace(MEMBER, task_offset_sums=sums)
    assert encode_subscription(fewer, kafka_offset_sums=sums) == encode_subscription(more)
