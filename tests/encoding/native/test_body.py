"""Native bodies and trailers: rejections with the field's name, and versions for readers."""

import dataclasses
from uuid import UUID

import msgpack
import pytest

from encoding import (
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    Assignment,
    DecodeError,
    EncodeError,
    FutureSubscription,
    NativeAssignment,
    NativeSubscription,
    Subscription,
    TaskId,
    TaskOffsetSums,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from encoding.native.body import MAX_KEYS, latest_native_version
from encoding.native.schema import MAGIC

MEMBER = Subscription(version=101, latest_supported_version=101, process_id=UUID(int=7))
BESIDE = Subscription(
    version=11,
    latest_supported_version=11,
    process_id=UUID(int=7),
    native=NativeSubscription(),
)
ANSWER = Assignment(version=101, commonly_supported_version=101)


def member(**changes):
    return dataclasses.replace(MEMBER, native=NativeSubscription(**changes))


def answer(**changes):
    return dataclasses.replace(ANSWER, native=NativeAssignment(**changes))


def blob(body, version=101, supported=None):
    head = version.to_bytes(4, "big") + (supported or version).to_bytes(4, "big")
    return head + (body if isinstance(body, bytes) else msgpack.packb(body))


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        (member(threads=-1), "threads", "no integer from 0 to 2147483647"),
        (member(threads=2**31), "threads", "no integer"),
        (member(threads="2"), "threads", "no integer"),
        (member(owned_generation=2**31), "owned_generation", "no integer"),
        (member(nonce=2**63), "nonce", "no integer"),
        (member(view_checksum=2**32), "view_checksum", "to 4294967295"),
        (member(rack="x" * 65_536), "rack", "takes 65536 bytes, at most 65535 fit"),
        (member(rack=5), "rack", "no text"),
        (member(fingerprint=b"1234567"), "fingerprint", "exactly 8 bytes"),
        (member(sizes=(-1,)), "sizes", "integers from 0 on"),
        (member(sizes=None), "sizes", "wrong type"),
        (member(sizes=5), "sizes", "= 5 in version 101: it has the wrong type"),
        (member(subtopologies=(2**14,)), "subtopologies", "ids from 0 to 16383"),
        (member(end_offset_sums={}), "end_offset_sums", None),
        (member(end_offset_sums={TaskId(0, 0): 1}), "end_offset_sums", "give TaskOffsetSums"),
        (member(feature_ranges={"f": (1, 2**31)}), "feature_ranges", "no integer"),
        (member(feature_ranges={"f": 1}), "feature_ranges", "no (lowest, highest)"),
        (member(adopted_levels={"f": -1}), "adopted_levels", "no integer"),
        (member(owned_partitions=(("t", -1, 2),)), "owned_partitions", "no range"),
        (member(owned_partitions=(("t", 0, 2**31 + 1),)), "owned_partitions", "beyond 32 bits"),
        (member(owned_partitions=((5, 0, 1),)), "owned_partitions", "no text"),
        (dataclasses.replace(MEMBER, client_tags={"a": 5}), "client_tags", "5 is no text"),
        (dataclasses.replace(MEMBER, process_id="7"), "process_id", "give a uuid.UUID"),
        (dataclasses.replace(MEMBER, error_code=2**31), "error_code", "no integer"),
        (dataclasses.replace(MEMBER, latest_supported_version=100), "latest_supported_version", ""),
        (
            dataclasses.replace(MEMBER, latest_supported_version=2**31),
            "latest_supported_version",
            "",
        ),
        (dataclasses.replace(MEMBER, version=104), "native.version", "101, 102, 103"),
        (dataclasses.replace(BESIDE, latest_supported_version=101), "latest_supported_version", ""),
        (
            dataclasses.replace(BESIDE, native=NativeSubscription(version=11)),
            "native.version",
            "101, 102, 103",
        ),
        (
            dataclasses.replace(BESIDE, native=NativeSubscription(is_readable=False)),
            "native.is_readable",
            "not read",
        ),
    ],
)
def test_errors_of_subscriptions_name_the_field(value, field, message):
    if message is None:
        assert encode_subscription(value) == encode_subscription(MEMBER)  # nothing to say
        return
    with pytest.raises(EncodeError) as caught:
        encode_subscription(value)
    assert caught.value.field == field
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (answer(view_full="x"), "view_full"),
        (answer(next_version=-1), "next_version"),
        (answer(subscription_read=0), "subscription_read"),
        (answer(partition_counts={"t": 2**31}), "partition_counts"),
        (answer(warmup_tasks=(TaskId(2**31, 0),)), "warmup_tasks"),
        (dataclasses.replace(ANSWER, active_tasks=(TaskId(0.5, 0),)), "active_tasks"),
        (dataclasses.replace(ANSWER, active_tasks=(TaskId(2**31, 0),)), "active_tasks"),
        (dataclasses.replace(ANSWER, next_rebalance_ms=2**63), "next_rebalance_ms"),
        (dataclasses.replace(ANSWER, version=102, next_rebalance_ms=None), "next_rebalance_ms"),
        (
            dataclasses.replace(answer(feature_epoch=2**63), version=102),
            "feature_epoch",
        ),
    ],
)
def test_errors_of_assignments_name_the_field(value, field):
    value = dataclasses.replace(value, commonly_supported_version=value.version)
    with pytest.raises(EncodeError) as caught:
        encode_assignment(value)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({4: "2"}, "key 4 (threads, count): str instead of int"),
        ({4: True}, "key 4 (threads, count): bool instead of int"),
        ({4: 2.0}, "key 4 (threads, count): float instead of int"),
        ({4: -1}, "key 4 (threads, count): -1 is no integer from 0"),
        ({14: 2**63}, "key 14 (nonce, int64): 9223372036854775808 is no integer"),
        ({5: b"x"}, "key 5 (rack, text): bytes instead of str"),
        ({1: b"x"}, "key 1 (process_id, uuid): a UUID of 1 bytes"),
        ({8: b"x"}, "key 8 (fingerprint, bytes8): it takes exactly 8 bytes"),
        ({7: "x"}, "key 7 (sizes): str instead of bytes"),
        ({7: b"\xff"}, "key 7 (sizes): a varint is cut off"),
        ({6: b"\1a\1b\1a\1c"}, "key 6 (client_tags, texts_by_name): 'a' occurs twice"),
        ({16: b"\1a\1"}, "key 16 (feature_ranges, ranges_by_name): a varint is cut off"),
        (
            {17: b"\1a\xff\xff\xff\xff\x0f"},
            "key 17 (adopted_levels, counts_by_name): 4294967295 is",
        ),
        (
            {12: b"\1t\1\5"},
            "key 12 (owned_partitions, partitions): a range of 't' without a length",
        ),
        ({12: b"\1t\6\0\xff\xff\xff\xff\x0f"}, "partition 4294967294 of 't' is beyond 32 bits"),
        ({10: b"\0\0\0\1"}, "key 10 (task_offset_sums, offset_sums): 0 tasks without RUNNING"),
        ({9: b"\0\xff\xff\3"}, "key 9 (subtopologies, numbers): a number is above"),
        ({-1: 0, "a": 0}, "key 'a' of the body is no integer"),
        ({True: 0}, "key True of the body is no integer"),
        ({4: [1]}, "exceeds max_array_len(0)"),
        (dict.fromkeys(range(30, 31 + MAX_KEYS), 0), "exceeds max_map_len(128)"),
        ({30: "x" * 65_536}, "exceeds max_str_len(65535)"),
        ({30: msgpack.ExtType(1, b"x")}, "exceeds max_ext_len(0)"),
        (b"\x82\x04\x01\x04\x02", "the body has 2 keys, but only 1 are different"),
        (b"\x01", "the body is a msgpack int; it must be a map"),
        (b"\x90", "the body is a msgpack list; it must be a map"),
        (b"\x81\x05\xa1\xff", "the body is no flat msgpack map"),
        (b"", "the body is no flat msgpack map"),
        (b"\xc1", "the body is no flat msgpack map"),
        (b"\x81\x1e" * 2000, "the body is no flat msgpack map"),
    ],
)
def test_decode_errors_name_key_and_type(body, message):
    data = blob(body)
    with pytest.raises(DecodeError) as caught:
        decode_subscription(data)
    assert message in str(caught.value)
    assert (caught.value.offset, caught.value.version) == (8, 101)
    assert caught.value.available == len(data)


def test_a_header_alone_and_a_wrong_second_number_are_errors():
    with pytest.raises(DecodeError, match="latest_supported_version needs 4 bytes"):
        decode_subscription(b"\0\0\0\x65")
    with pytest.raises(DecodeError, match="claims version 101, but to support 11 at most"):
        decode_subscription(blob({}, 101, 11))
    with pytest.raises(DecodeError, match="commonly_supported_version needs 4 bytes"):
        decode_assignment(b"\0\0\0\x65\0\0\0")


def test_missing_keys_and_nil_are_defaults():
    for body in ({}, dict.fromkeys(range(30))):
        assert decode_subscription(blob(body)) == dataclasses.replace(
            MEMBER, process_id=UUID(int=0)
        )
        assert decode_assignment(blob(body)) == ANSWER


def test_bytes_behind_a_body_are_ignored():
    assert decode_subscription(blob({4: 3}) + b"rest").native.threads == 3


@pytest.mark.parametrize(
    ("version", "since", "known", "is_read"),
    [
        (101, 101, KNOWN_VERSIONS, True),
        (102, 101, KNOWN_VERSIONS, True),
        (103, 103, KNOWN_VERSIONS, False),
        (104, 102, KNOWN_VERSIONS, False),
        (104, 102, (*KNOWN_VERSIONS, 102), True),
        (102, 101, (*KNOWN_VERSIONS, 103), True),
        (104, 103, (*KNOWN_VERSIONS, 103), True),
        (2**31 - 1, 101, KNOWN_VERSIONS, True),
        (104, None, KNOWN_VERSIONS, False),
        (101, None, KNOWN_VERSIONS, True),
        (101, 101, KAFKA_VERSIONS, False),
    ],
)
def test_a_body_is_read_by_the_versions_that_it_names(version, since, known, is_read):
    data = blob({4: 3} if since is None else {0: since, 4: 3}, version)
    value = decode_subscription(data, known)
    if is_read:
        assert (value.version, value.native.threads) == (version, 3)
    else:
        assert value == FutureSubscription(version, version)
        with pytest.raises(DecodeError, match="which this reader does not know"):
            decode_assignment(data, known)


def test_the_latest_native_version_is_the_greatest_one_known():
    assert latest_native_version((1, 11)) is None
    assert latest_native_version([101, 103, 1]) == 103
    assert latest_native_version(range(1, 150)) == 149


def test_a_native_value_goes_by_the_versions_around_it():
    value = Subscription(
        version=102, latest_supported_version=103, process_id=UUID(int=1), native=None
    )
    assert (value.native.version, value.native.latest_supported_version) == (102, 103)
    given = Assignment(version=101, commonly_supported_version=101, native=NativeAssignment())
    assert given.native == NativeAssignment()
    assert BESIDE.native.version == 101


TRAILER = encode_subscription(BESIDE)[
    len(encode_subscription(dataclasses.replace(BESIDE, native=None))) :
]


def test_a_trailer_begins_with_its_magic_and_length():
    assert TRAILER[:4] == MAGIC
    assert int.from_bytes(TRAILER[4:8], "big") == len(TRAILER) - 8
    assert TRAILER[8:16] == bytes.fromhex("0000006500000065")


@pytest.mark.parametrize(
    "behind",
    [
        b"",
        MAGIC,
        b"\0" + TRAILER,
        MAGIC[:3] + b"B" + TRAILER[4:],
        TRAILER[:-1],
        TRAILER[:4] + b"\xff\xff\xff\xff" + TRAILER[8:],
        TRAILER[:4] + b"\0\0\0\7" + TRAILER[8:],
        TRAILER[:4] + b"\x7f\xff\xff\xff" + TRAILER[8:],
        TRAILER[:8] + bytes.fromhex("0000000b0000000b") + TRAILER[16:],
        TRAILER[:8] + bytes.fromhex("0000006500000064") + TRAILER[16:],
        TRAILER[:16] + b"\xc1" * (len(TRAILER) - 16),
        # The v2 tail that releases 0.10.1 to 1.1 write behind v1, and the bytes of a counter.
        b"\0\0\0\4h:90",
        b"\x2a",
    ],
)
@pytest.mark.parametrize("version", [1, 3, 11])
def test_whatever_else_stands_behind_the_fields_is_ignored(version, behind):
    plain = dataclasses.replace(BESIDE, version=version, native=None)
    data = encode_subscription(plain)
    assert decode_subscription(data + behind) == decode_subscription(data)
    native = decode_subscription(data + TRAILER).native
    assert native == NativeSubscription()


def test_a_trailer_replaces_offset_sums_tags_endpoint_and_error_code():
    sums = TaskOffsetSums.from_mapping({TaskId(0, 0): 99, TaskId(0, 1): -2})
    value = dataclasses.replace(
        BESIDE,
        version=1,
        latest_supported_version=1,
        user_endpoint="h:1",
        task_offset_sums=sums,
        client_tags={"zone": "a"},
        error_code=4,
    )
    back = decode_subscription(encode_subscription(value))
    assert back == dataclasses.replace(value, latest_supported_version=-1)
    jvm = decode_subscription(encode_subscription(value), KAFKA_VERSIONS)
    assert dict(jvm.task_offset_sums) == {TaskId(0, 0): -3, TaskId(0, 1): -2}
    assert (jvm.user_endpoint, jvm.client_tags, jvm.error_code) == (None, {}, 0)


def test_the_tasks_of_an_answer_stay_kafkas_beside_a_trailer():
    tasks = (TaskId(0, 1), TaskId(0, 1), TaskId(0, 0))
    value = Assignment(
        version=2,
        active_tasks=tasks,
        standby_tasks={TaskId(1, 0): [("c", 0)]},
        error_code=3,
        next_rebalance_ms=5,
        native=NativeAssignment(next_version=11),
    )
    assert decode_assignment(encode_assignment(value)) == dataclasses.replace(value)
    native = dataclasses.replace(value, version=101, commonly_supported_version=101)
    back = decode_assignment(encode_assignment(native))
    assert back.active_tasks == (TaskId(0, 0), TaskId(0, 1))
    assert dict(back.standby_tasks) == {TaskId(1, 0): ()}


def test_half_a_surrogate_pair_becomes_a_question_mark_as_in_kafkas_subscriptions():
    value = dataclasses.replace(MEMBER, user_endpoint="h\ud800", client_tags={"\ud800": "x"})
    back = decode_subscription(encode_subscription(value))
    assert (back.user_endpoint, back.client_tags) == ("h?", {"?": "x"})
