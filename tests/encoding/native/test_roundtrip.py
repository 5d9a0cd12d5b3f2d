"""Properties of native blobs and trailers.

Written values are read back, by this reader and others; any bytes give a value or an error, with
time and memory linear in the input.
"""

import dataclasses
import tracemalloc

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from encoding import (
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    DecodeError,
    FutureSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    read_assignment,
    read_subscription,
)
from encoding.native.schema import MAGIC, native_rows_of
from tests.encoding.native_strategies import native_assignments, native_parts, native_subscriptions
from tests.encoding.strategies import assignments, subscriptions
from tests.versions import NEWEST

EVERY = (*KNOWN_VERSIONS, 102, 103)
released = st.just(101)


@given(native_subscriptions())
def test_native_subscriptions_are_read_back_as_they_were(value):
    data = encode_subscription(value)
    back, end = read_subscription(data, EVERY)
    assert (back, end) == (value, len(data))
    assert hash(back) == hash(value)
    assert encode_subscription(back) == data


@given(native_assignments())
def test_native_assignments_are_read_back_as_they_were(value):
    data = encode_assignment(value)
    back, end = read_assignment(data, EVERY)
    assert (back, end) == (value, len(data))
    assert hash(back) == hash(value)
    assert encode_assignment(back) == data


def trailed(value, native):
    """The value with a trailer, with a supported version of at most Kafka's newest."""
    supported = min(value.latest_supported_version, NEWEST)
    return dataclasses.replace(value, native=native, latest_supported_version=supported)


@given(subscriptions(), native_parts("subscription"), st.binary(max_size=3))
def test_a_trailer_carries_everything_behind_kafkas_fields(value, native, behind):
    with_trailer = trailed(value, native)
    data = encode_subscription(with_trailer)
    kafka = encode_subscription(dataclasses.replace(with_trailer, native=None))
    assert data.startswith(kafka)
    back, end = read_subscription(data + behind, EVERY)
    assert end == len(kafka)
    assert back == with_trailer
    without = decode_subscription(data, KAFKA_VERSIONS)
    assert without == decode_subscription(kafka)
    assert without.native is None


@given(subscriptions(), native_parts("subscription"), st.sampled_from((1, 3, 6, 8)))
def test_a_trailer_carries_what_a_low_version_cannot(value, native, version):
    sums = value.task_offset_sums
    if sums.names is not None:
        return
    low = trailed(dataclasses.replace(value, version=version, latest_supported_version=11), native)
    low = dataclasses.replace(low, unique_field=value.unique_field if version >= 8 else 0)
    assert decode_subscription(encode_subscription(low), EVERY) == (
        low if version >= 3 else dataclasses.replace(low, latest_supported_version=-1)
    )


@given(assignments(), native_parts("assignment"), st.binary(max_size=3))
def test_an_answer_carries_a_trailer_too(value, native, behind):
    with_trailer = dataclasses.replace(value, native=native)
    data = encode_assignment(with_trailer)
    kafka = encode_assignment(value)
    assert data.startswith(kafka)
    assert read_assignment(data + behind, EVERY) == (with_trailer, len(kafka))
    assert decode_assignment(data, KAFKA_VERSIONS) == value


@pytest.mark.kip("268-17", "core")
@given(native_subscriptions(st.just(102)))
def test_a_reader_of_101_keeps_all_fields_of_101_of_a_102_body(value):
    back = decode_subscription(encode_subscription(value))
    known = {row.name for row in native_rows_of("subscription", 101)}
    known -= {"nonce", "instance_id"}  # got another type; was dropped
    for name in sorted(known - {"readable_since"}):
        source = value.native if hasattr(value.native, name) else value
        assert getattr(back.native if source is value.native else back, name) == getattr(
            source, name
        )
    assert (back.version, back.native.version) == (102, 102)
    assert (back.native.nonce, back.native.instance_id) == (0, None)
    assert back.native.free_disk_bytes is None


@given(native_assignments(st.just(102)))
def test_a_reader_of_101_reads_an_answer_of_102(value):
    back = decode_assignment(encode_assignment(value))
    assert back.active_tasks == value.active_tasks
    assert back.standby_tasks == value.standby_tasks
    assert back.native == dataclasses.replace(
        value.native, followup_reason=None, feature_epoch=-1, view_reference=None
    )


@pytest.mark.kip("268-17", "core")
@given(native_subscriptions(st.just(103)), st.sampled_from((KNOWN_VERSIONS, (101, 102))))
def test_of_a_103_subscription_lower_readers_see_two_numbers(value, known):
    data = encode_subscription(value)
    numbers = FutureSubscription(103, value.latest_supported_version)
    assert read_subscription(data, known) == (numbers, 8)


@given(native_subscriptions(), native_assignments())
def test_a_reader_of_kafkas_versions_alone_sees_two_numbers_or_refuses(member, answer):
    numbers = FutureSubscription(member.version, member.latest_supported_version)
    assert decode_subscription(encode_subscription(member), KAFKA_VERSIONS) == numbers
    with pytest.raises(DecodeError, match=f"version {answer.version}, which this reader"):
        decode_assignment(encode_assignment(answer), KAFKA_VERSIONS)


@given(native_assignments(st.just(103)))
def test_an_answer_of_103_is_an_error_for_a_reader_of_101(value):
    with pytest.raises(DecodeError, match="version 103, which this reader does not know"):
        decode_assignment(encode_assignment(value))


@given(subscriptions(), native_parts("subscription", st.just(103)))
def test_a_trailer_for_later_readers_leaves_kafkas_fields_and_two_numbers(value, native):
    data = encode_subscription(trailed(value, native))
    back = decode_subscription(data)
    assert (back.native.version, back.native.is_readable) == (103, False)
    assert dataclasses.replace(back, native=None) == decode_subscription(data, KAFKA_VERSIONS)


@given(
    native_subscriptions(released),
    st.integers(104, 2**31 - 1),
    st.dictionaries(
        st.integers(30, 2**63),
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
        max_size=5,
    ),
)
def test_a_body_of_any_later_version_is_read_less_the_keys_it_adds(value, version, added):
    body = msgpack.unpackb(encode_subscription(value)[8:], strict_map_key=False)
    data = version.to_bytes(4, "big") * 2 + msgpack.packb(body | added)
    later = dataclasses.replace(value, version=version, latest_supported_version=version)
    assert decode_subscription(data) == later


def refuse_or_read(data):
    for read in (read_subscription, read_assignment):
        for known in (KNOWN_VERSIONS, EVERY):
            try:
                _, end = read(data, known)
            except DecodeError as error:
                place, size = error.offset, error.available
            else:
                place, size = end, len(data)
            assert 0 <= place <= len(data) == size


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=10)
    | st.binary(max_size=60)
)
_odd_values = _scalars | st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_scalars, inner)
)


@given(st.sampled_from((101, 102, 103, 200)), st.binary(max_size=80))
@example(101, b"")
@example(101, b"\x80")
@example(101, b"\x81\x90\x00")  # a list as a key
@example(101, b"\x81\x80\x00")  # a map as a key
@example(101, b"\xc7\x00\x01")  # an extension
@example(101, b"\x81\x01\xd6\xff\x00\x00\x00\x00")  # a timestamp
@example(101, b"\x82\x01\xc0\x01\xc0")  # a key twice
@example(101, b"\x81\x07\xc4\x05\xff\xff\xff\xff\x7f")  # sizes cut off
@example(101, b"\xdf\xff\xff\xff\xff")  # a huge map
@example(101, b"\xdd\xff\xff\xff\xff")  # a huge array
@example(101, b"\x81\x0a\xdb\xff\xff\xff\xff")  # a huge text
def test_random_bodies_are_a_value_or_a_decode_error(version, body):
    head = version.to_bytes(4, "big") * 2
    refuse_or_read(head + body)
    kafka = b"\0\0\0\3\0\0\0\x0b" + bytes(28)
    blob = head + body
    decode_subscription(kafka + MAGIC + len(blob).to_bytes(4, "big") + blob)  # never an error


@given(
    st.sampled_from((101, 102, 103)),
    st.dictionaries(st.integers(0, 26), _odd_values, max_size=8),
)
def test_values_of_any_type_under_any_key_are_a_value_or_a_decode_error(version, body):
    refuse_or_read(version.to_bytes(4, "big") * 2 + msgpack.packb(body))


_blobs = native_subscriptions().map(encode_subscription)
_blobs |= native_assignments().map(encode_assignment)
_edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from((b"\xff", b"\x00", b"\x7f", b"\xc4\xff", b"\x80" * 9, b"\xff" * 9 + b"\1")),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@given(_blobs, _edits)
def test_damaged_native_blobs_are_a_value_or_a_decode_error(data, edits):
    for place, piece, insert in edits:
        at = 8 + int(place * (len(data) - 8))
        data = data[:at] + piece + data[at + (0 if insert else len(piece)) :]
    refuse_or_read(data)


@given(native_subscriptions(), native_assignments())
def test_native_blobs_cut_at_every_byte_are_decode_errors(member, answer):
    for data, decode in (
        (encode_subscription(member), decode_subscription),
        (encode_assignment(answer), decode_assignment),
    ):
        for length in range(min(len(data), 300)):
            with pytest.raises(DecodeError):
                decode(data[:length], EVERY)


@given(subscriptions(), native_parts("subscription"))
def test_a_trailer_cut_at_any_byte_is_ignored(value, native):
    data = encode_subscription(trailed(value, native))
    kafka = decode_subscription(data, KAFKA_VERSIONS)
    end = read_subscription(data)[1]
    for length in range(end, min(len(data), end + 200)):
        assert decode_subscription(data[:length], EVERY) == kafka


def peak_of(data):
    tracemalloc.start()
    try:
        refuse_or_read(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HEAD = (101).to_bytes(4, "big") * 2
HUGE = {
    "nested arrays": b"\x81\x1e" + b"\xdd\x00\x00\xff\xff" * 200,
    "nested maps": b"\xde\x00\x80\x1e" * 1020,
    "many sizes": b"\x81\x07\xc4\x06" + b"\x00\xff\xff\xff\xff\x0f",
    "large sizes": b"\x81\x07\xc4\x06" + b"\xff\xff\xff\xff\x0f\x00",
    "a number of 2**63": b"\x82\x07\xc4\x02\x64\x00\x0a\xc4\x0d\x0b\x0a\x00" + b"\xff" * 9 + b"\1",
    "a huge block": b"\x81\x0a\xc4\x05\xff\xff\xff\xff\x0f",
    "a huge range": b"\x81\x0c\xc4\x08\x01t\x05\x00" + b"\xff\xff\xff\x7f",
}


@pytest.mark.parametrize("name", HUGE)
def test_claims_cost_no_memory(name):
    refuse_or_read(HEAD + HUGE[name])  # fills the caches
    assert peak_of(HEAD + HUGE[name]) < 2_500_000


def test_a_byte_of_bitmaps_costs_a_bounded_number_of_bytes():
    sizes = b"\x80\x80\x80\x02\x00"  # 2**22 tasks
    bitmap = b"\xff" * 50_000
    numbers = b"\x09" + bitmap
    varint = lambda n: bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14])  # noqa: E731 used here
    tasks = varint(len(numbers)) + numbers
    sums = varint(len(tasks)) + tasks + varint(len(bitmap)) + bitmap
    data = HEAD + msgpack.packb({7: sizes, 10: sums})
    assert len(decode_subscription(data).task_offset_sums) == 400_000
    assert peak_of(data) < 150 * len(data)
