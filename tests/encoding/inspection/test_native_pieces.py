"""The explanation of native bodies and trailers covers every byte exactly once."""

import dataclasses
from uuid import UUID

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import (
    KAFKA_VERSIONS,
    Assignment,
    DecodeError,
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    Subscription,
    TaskId,
    TaskOffsetSums,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    explain,
)
from encoding.native.schema import NATIVE_KINDS
from tests.encoding.native_strategies import native_assignments, native_parts, native_subscriptions
from tests.encoding.strategies import assignments, subscriptions

blobs = native_subscriptions().map(lambda value: ("subscription", encode_subscription(value)))
blobs |= native_assignments().map(lambda value: ("assignment", encode_assignment(value)))
blobs |= st.builds(
    lambda value, native: (
        "subscription",
        encode_subscription(
            dataclasses.replace(
                value,
                native=native,
                latest_supported_version=min(11, value.latest_supported_version),
            )
        ),
    ),
    subscriptions(),
    native_parts("subscription"),
)
blobs |= st.builds(
    lambda value, native: (
        "assignment",
        encode_assignment(dataclasses.replace(value, native=native)),
    ),
    assignments(),
    native_parts("assignment"),
)


@given(blobs, st.binary(max_size=4), st.sampled_from(((101,), (101, 102), (101, 103))))
def test_pieces_lie_side_by_side_and_cover_the_blob(blob, behind, native):
    kind, data = blob
    offset = 0
    for piece in explain(kind, data + behind, (*KAFKA_VERSIONS, *native)):
        assert piece.offset == offset
        assert piece.size > 0
        assert piece.meaning
        offset += piece.size
    assert offset == len(data + behind)
    assert (piece.path == "trailing bytes") is bool(behind)


SUMS = {TaskId(0, 0): -2, TaskId(0, 1): 7, TaskId(1, 0): -3}
MEMBER = Subscription(
    version=101,
    latest_supported_version=101,
    process_id=UUID(int=7),
    task_offset_sums=TaskOffsetSums.from_mapping(SUMS),
    error_code=4,
    client_tags={"zone": "a"},
    native=NativeSubscription(
        sizes=(2,) * 10,
        feature_ranges={"f": (1, 2)},
        owned_partitions=(PartitionRange("t", 0, 3), PartitionRange("t", 5, 6)),
    ),
)


def shown(kind, data, **known):
    return {piece.path: piece for piece in explain(kind, data, **known)}


def test_values_are_spelled_with_key_type_and_meaning():
    pieces = shown("subscription", encode_subscription(MEMBER))
    values = {path: (piece.key, piece.type, piece.value) for path, piece in pieces.items()}
    assert values["version"] == (None, "int32", 101)
    assert values["body"] == (None, "map", 8)
    assert values["process_id"] == (1, "uuid", UUID(int=7))
    assert values["client_tags"] == (6, "texts_by_name", "zone=a")
    assert values["sizes"] == (7, "sizes", "2, 2, 2, 2, 2, 2, 2, 2, ... (10)")
    assert values["task_offset_sums"][2] == "0_0 running, 0_1 7, 1_0 unknown"
    assert values["owned_partitions"][2] == "t 0-2, t 5"
    assert values["feature_ranges"][2] == "f=1-2"
    assert pieces["error_code"].meaning.startswith("SHUTDOWN_REQUESTED: ")
    assert pieces["readable_since"].meaning.endswith("this reader's is 101: it is read")


def test_a_trailer_is_listed_behind_kafkas_fields():
    low = dataclasses.replace(MEMBER, version=3, latest_supported_version=11)
    data = encode_subscription(low)
    pieces = shown("subscription", data)
    assert pieces["trailer"].value == bytes.fromhex("f5535241")
    assert pieces["trailer.length"].value == len(data) - pieces["trailer.length"].offset - 4
    assert pieces["trailer.version"].value == 101
    assert pieces["trailer.task_offset_sums"].value == "0_0 running, 0_1 7, 1_0 unknown"
    assert pieces["trailer.task_offset_sums"].key == 10
    assert "trailing bytes" not in pieces
    for ignored in (data[:-1], data[:-4] + b"\xc1" * 4):
        assert "trailer" not in shown("subscription", ignored)
        assert "trailing bytes" in shown("subscription", ignored)
    blind = shown("subscription", data, known_versions=KAFKA_VERSIONS)
    assert blind["trailing bytes"].size == len(data) - pieces["trailer"].offset


def test_kafkas_fields_inside_a_trailer_are_not_read():
    low = Assignment(version=2, active_tasks=(TaskId(0, 0),), native=NativeAssignment())
    data = encode_assignment(low)
    at = data.index(bytes.fromhex("02c404")) + 3  # behind key and length
    broken = data[:at] + b"\xff" + data[at + 1 :]
    assert decode_assignment(broken) == decode_assignment(data) == low
    piece = shown("assignment", broken)["trailer.active_tasks"]
    assert isinstance(piece.value, bytes)
    assert piece.meaning.startswith("not read: ")


def test_bytes_behind_the_body_of_a_trailer_are_listed():
    low = dataclasses.replace(MEMBER, version=3, latest_supported_version=11)
    data = encode_subscription(low)
    at = shown("subscription", data)["trailer.length"].offset
    longer = (len(data) - at - 4 + 2).to_bytes(4, "big")
    pieces = shown("subscription", data[:at] + longer + data[at + 4 :] + b"xyz")
    assert pieces["trailer.rest"].value == b"xy"
    assert pieces["trailing bytes"].value == b"z"


def test_keys_of_later_versions_are_listed_as_unknown():
    later = dataclasses.replace(
        MEMBER,
        version=103,
        latest_supported_version=103,
        native=dataclasses.replace(MEMBER.native, free_disk_bytes=5),
    )
    pieces = shown("subscription", encode_subscription(later))
    assert pieces["key 23 (unknown)"].value == 5
    assert pieces["key 24 (unknown)"].type == "bytes"
    assert pieces["client_tags"].value == "zone=a"
    assert pieces["readable_since"].value == 103
    assert pieces["readable_since"].meaning.endswith("this reader's is 101: it is not read")
    answer = Assignment(version=103, commonly_supported_version=103, active_tasks=(TaskId(0, 0),))
    unread = shown("assignment", encode_assignment(answer))
    assert "key 17 (unknown)" in unread


def test_what_cannot_be_read_is_an_error_unless_it_is_for_later_readers():
    body = msgpack.packb({0: 101, 4: "two"})
    with pytest.raises(DecodeError, match=r"key 4 \(threads, count\): str instead of int"):
        list(explain("subscription", b"\0\0\0\x65" * 2 + body))
    sizes = next(row.key for row in NATIVE_KINDS["subscription"] if row.name == "sizes")
    body = msgpack.packb({0: 101, sizes: b"\x80"})
    for read in (decode_subscription, lambda data: list(explain("subscription", data))):
        with pytest.raises(DecodeError, match=rf"key {sizes} \(sizes\): "):
            read(b"\0\0\0\x65" * 2 + body)
    body = msgpack.packb({0: 104, 4: "two", 5: None})
    pieces = shown("subscription", b"\0\0\0\x68" * 2 + body)
    assert pieces["threads"].value == "two"
    assert pieces["threads"].meaning.startswith("not read: ")
    assert pieces["rack"].value is None


def test_every_row_has_a_meaning_that_the_listing_can_show():
    for rows in NATIVE_KINDS.values():
        assert all(len(row.meaning) < 80 for row in rows)


def test_an_answer_is_listed_with_its_tasks():
    answer = Assignment(
        version=101,
        commonly_supported_version=101,
        active_tasks=(TaskId(0, 0), TaskId(5, 1, "n")),
        native=NativeAssignment(sizes=(3,), view_full=b"\1\2", subscription_read=False),
    )
    pieces = shown("assignment", encode_assignment(answer))
    assert pieces["commonly_supported_version"].value == 101
    assert pieces["active_tasks"].value == "0_0, n__5_1"
    assert pieces["view_full"].value == b"\1\2"
    assert pieces["subscription_read"].value is False
