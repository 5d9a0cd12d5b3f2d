"""Properties of every version: written values are read back; any bytes give a value or an error."""

import dataclasses
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from encoding import (
    KAFKA_VERSIONS,
    NO_REBALANCE,
    DecodeError,
    FutureSubscription,
    PartitionsByHost,
    TaskOffsetSums,
    assignment_from_fields,
    assignment_to_fields,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    read_assignment,
    read_subscription,
    subscription_from_fields,
    subscription_to_fields,
)
from tests.encoding.strategies import assignments, subscriptions, versions


@given(subscriptions())
def test_subscriptions_are_read_back_as_they_were(value):
    data = encode_subscription(value)
    assert read_subscription(data) == (value, len(data))
    assert hash(decode_subscription(data)) == hash(value)
    assert encode_subscription(decode_subscription(data)) == data


@given(assignments())
def test_assignments_are_read_back_as_they_were(value):
    data = encode_assignment(value)
    assert read_assignment(data) == (value, len(data))
    assert hash(decode_assignment(data)) == hash(value)
    assert encode_assignment(decode_assignment(data)) == data


@given(subscriptions(), st.binary(max_size=20))
def test_bytes_behind_a_subscription_are_left_where_they_are(value, trailer):
    data = encode_subscription(value)
    assert read_subscription(data + trailer) == (value, len(data))


@given(assignments(), st.binary(max_size=20))
def test_bytes_behind_an_assignment_are_left_where_they_are(value, trailer):
    data = encode_assignment(value)
    assert read_assignment(data + trailer) == (value, len(data))


@given(subscriptions(), versions)
def test_writing_a_lower_version_loses_only_what_it_cannot_carry(value, version):
    sums = value.task_offset_sums
    plain = TaskOffsetSums.from_columns(sums.subtopologies, sums.partitions, sums.sums)
    lower = dataclasses.replace(
        value, version=version, latest_supported_version=99, task_offset_sums=plain
    )
    back = decode_subscription(encode_subscription(lower))
    assert list(back.task_offset_sums.tasks()) == list(plain.tasks())
    assert back.prev_tasks == lower.prev_tasks
    assert back.standby_tasks == lower.standby_tasks
    assert back.user_endpoint == (lower.user_endpoint if version >= 2 else None)
    assert back.unique_field == (lower.unique_field if version >= 8 else 0)
    assert back.error_code == (lower.error_code if version >= 9 else 0)
    assert back.client_tags == (lower.client_tags if version >= 11 else {})
    assert back.latest_supported_version == (99 if version >= 3 else -1)


@given(assignments(st.sampled_from((4, 9))), versions)
def test_writing_a_lower_assignment_loses_only_what_it_cannot_carry(value, version):
    hosts = PartitionsByHost({("h", 1): [("t", 0)]})
    lower = dataclasses.replace(
        value, version=version, partitions_by_host=hosts, standby_partitions_by_host=hosts
    )
    back = decode_assignment(encode_assignment(lower))
    assert back.active_tasks == lower.active_tasks
    assert back.standby_tasks == lower.standby_tasks
    assert back.partitions_by_host == (hosts if version >= 2 else {})
    assert back.standby_partitions_by_host == (hosts if version >= 6 else {})
    assert back.error_code == (lower.error_code if version >= 4 else 0)
    assert back.next_rebalance_ms == (lower.next_rebalance_ms if version >= 7 else NO_REBALANCE)


@given(subscriptions())
def test_subscription_fields_and_values_are_equivalent(value):
    assert subscription_from_fields(subscription_to_fields(value)) == value


@given(assignments())
def test_assignment_fields_and_values_are_equivalent(value):
    assert assignment_from_fields(assignment_to_fields(value)) == value


@given(subscriptions(), st.integers(1, 11))
def test_an_older_reader_sees_two_numbers_of_what_it_does_not_know(value, latest):
    data = encode_subscription(value)
    known = range(1, latest + 1)
    if value.version <= latest:
        assert decode_subscription(data, known) == value
    elif value.version < 3:
        with pytest.raises(DecodeError, match="version 2, which this reader does not know"):
            decode_subscription(data, known)
    else:
        numbers = FutureSubscription(value.version, value.latest_supported_version)
        assert read_subscription(data, known) == (numbers, 8)


def refuse_or_read(data):
    for read in (read_subscription, read_assignment):
        try:
            _, end = read(data)
        except DecodeError as error:
            refusal = error
        else:
            assert end <= len(data)
            continue
        assert 0 <= refusal.offset <= len(data)
        assert refusal.available == len(data)


@given(st.binary(max_size=200))
@example(b"")
def test_random_bytes_are_a_value_or_a_decode_error(data):
    refuse_or_read(data)


@given(versions, st.binary(max_size=120))
def test_random_bytes_behind_a_version_are_a_value_or_a_decode_error(version, data):
    refuse_or_read(version.to_bytes(4, "big") + data)
    refuse_or_read(version.to_bytes(4, "big") + b"\x00\x00\x00\x0b" + data)


_blobs = subscriptions().map(encode_subscription) | assignments().map(encode_assignment)
_edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from((b"\xff", b"\x00", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xed\xa0")),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@given(_blobs, _edits)
def test_damaged_blobs_are_a_value_or_a_decode_error(data, edits):
    for place, piece, insert in edits:
        at = int(place * len(data))
        data = data[:at] + piece + data[at + (0 if insert else len(piece)) :]
    refuse_or_read(data)


@given(subscriptions(), st.floats(0, 1, exclude_max=True))
def test_truncated_subscriptions_are_decode_errors(value, part):
    data = encode_subscription(value)
    with pytest.raises(DecodeError):
        decode_subscription(data[: int(part * len(data))])


@given(assignments(), st.floats(0, 1, exclude_max=True))
def test_truncated_assignments_are_decode_errors(value, part):
    data = encode_assignment(value)
    with pytest.raises(DecodeError):
        decode_assignment(data[: int(part * len(data))])


@pytest.mark.parametrize("version", KAFKA_VERSIONS)
def test_claimed_sizes_cost_no_memory(version):
    head = version.to_bytes(4, "big") + (b"\0\0\0\x0b" if version >= 3 else b"")
    blobs = [head + bytes(gap) + b"\x7f\xff\xff\xff" * 8 for gap in range(0, 40, 4)]
    tracemalloc.start()
    try:
        for data in blobs:
            refuse_or_read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000
