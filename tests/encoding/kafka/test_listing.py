"""The pieces that `assignor decode` shows of whole blobs, and its messages for invalid ones."""

import struct
from uuid import UUID

import msgpack
import pytest

from encoding import (
    Assignment,
    DecodeError,
    HostInfo,
    NativeSubscription,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    explain,
)
from encoding.kafka.schema import KINDS, STRUCTURES
from encoding.native.schema import NATIVE_KINDS
from tests.versions import LATER

MEANINGS = {
    (row.name, row.meaning)
    for rows in (*KINDS.values(), *NATIVE_KINDS.values(), *STRUCTURES.values())
    for row in rows
}
PROCESS = UUID(int=5)


def listing(kind, data, **known):
    """One line per piece, with its meaning if that is not the schema's."""
    lines = []
    for piece in explain(kind, data, **known):
        assert isinstance(piece.type, str)
        name = piece.path.rsplit(".", 1)[-1]
        meaning = "" if (name, piece.meaning) in MEANINGS else f" | {piece.meaning}"
        key = "" if piece.key is None else f" key {piece.key}"
        place = f"{piece.offset}+{piece.size}"
        lines.append(f"{place} {piece.path}: {piece.type} {piece.value!r}{key}{meaning}")
    return lines


def test_a_subscription_with_a_trailer_is_listed_to_its_last_byte():
    sums = TaskOffsetSums.from_mapping({TaskId(0, 1): -2, TaskId(1, 0): 7})
    value = Subscription(
        version=11,
        latest_supported_version=11,
        process_id=PROCESS,
        user_endpoint="h:1",
        task_offset_sums=sums,
        client_tags={"zone": "a"},
        native=NativeSubscription(threads=3),
    )
    read = (
        "readers whose latest version is at least this understand the body; this reader's is 101:"
        " it is"
    )
    assert listing("subscription", encode_subscription(value) + b"xy") == [
        "0+4 version: int32 11",
        "4+4 latest_supported_version: int32 11",
        f"8+16 process_id: uuid {PROCESS!r}",
        "24+7 user_endpoint: bytes 'h:1'",
        "31+4 task_offset_sums: []task_offset_sum 2",
        "35+4 task_offset_sums[0].subtopology: int32 0",
        "39+4 task_offset_sums[0].partition: int32 1",
        (
            "43+8 task_offset_sums[0].offset_sum: int64 -2"
            " | running: -2 running, -3 unknown, else sum of offsets"
        ),
        "51+2 task_offset_sums[0].topology_name: string None",
        "53+4 task_offset_sums[1].subtopology: int32 1",
        "57+4 task_offset_sums[1].partition: int32 0",
        "61+8 task_offset_sums[1].offset_sum: int64 7",
        "69+2 task_offset_sums[1].topology_name: string None",
        "71+1 unique_field: int8 0",
        "72+4 error_code: int32 0 | NONE: 0, or 4: the member asks the group to shut down",
        "76+4 client_tags: []client_tag 1",
        "80+8 client_tags[0].key: bytes 'zone'",
        "88+5 client_tags[0].value: bytes 'a'",
        "93+4 trailer: magic b'\\xf5SRA' | a native blob follows",
        "97+4 trailer.length: int32 61 | bytes of that blob",
        "101+4 trailer.version: int32 101",
        "105+4 trailer.latest_supported_version: int32 101",
        "109+1 trailer.body: map 6 | fields that differ from default",
        f"110+2 trailer.readable_since: count 101 key 0 | {read} read",
        f"112+19 trailer.process_id: uuid {PROCESS!r} key 1",
        "131+5 trailer.user_endpoint: text 'h:1' key 3",
        "136+2 trailer.threads: count 3 key 4",
        "138+10 trailer.client_tags: texts_by_name 'zone=a' key 6",
        "148+14 trailer.task_offset_sums: offset_sums '0_1 running, 1_0 7' key 10",
        "162+2 trailing bytes:  b'xy' | not read: behind the last field",
    ]


def native(pairs, version=101, behind=b""):
    return struct.pack(">ii", version, version) + msgpack.packb(pairs) + behind


def trailer(pairs, version=101, behind=b""):
    body = native(pairs, version, behind)
    old = Assignment(version=2, commonly_supported_version=-1)
    return encode_assignment(old) + b"\xf5SRA" + struct.pack(">i", len(body)) + body


def test_a_native_answer_is_listed_with_what_nobody_reads():
    lines = listing("assignment", native({0: 101, 7: 2, 90: "later"}, behind=b"z"))
    assert lines[3].startswith("9+2 readable_since: count 101 key 0 | ")
    assert lines[:3] + lines[4:] == [
        "0+4 version: int32 101",
        "4+4 commonly_supported_version: int32 101",
        "8+1 body: map 3 | fields that differ from default",
        "11+2 error_code: int32 2 key 7 | VERSION_PROBING: 0, or why the group cannot be assigned",
        (
            "13+7 key 90 (unknown): str 'later' key 90"
            " | not read: a key that this reader does not know"
        ),
        "20+1 trailing bytes:  b'z' | not read: behind the last key",
    ]


def test_the_trailer_of_an_answer_names_its_errors_and_shows_its_rest():
    lines = listing("assignment", trailer({0: 101, 7: 4}, behind=b"??"))
    assert lines[-2:] == [
        (
            "35+2 trailer.error_code: int32 4 key 7"
            " | SHUTDOWN_REQUESTED: 0, or why the group cannot be assigned"
        ),
        "37+2 trailer.rest:  b'??' | not read: behind the last key",
    ]


def test_a_body_in_a_known_version_is_read_whatever_later_reader_it_requires():
    data = native({0: 103, 7: 2})
    assert decode_assignment(data).error_code == 2
    assert listing("assignment", data)[3].endswith("this reader's is 101: it is read")
    later = native({0: 103, 7: 2}, version=102)
    assert listing("assignment", later)[3].endswith("this reader's is 101: it is not read")


def test_bytes_behind_the_two_numbers_of_a_future_version_are_listed_as_such():
    (*_, rest) = explain("subscription", struct.pack(">ii", LATER, LATER + 1) + b"?")
    assert rest.meaning == "not read: body of a future version"


def answer_with_hosts():
    served = [TopicPartition("in", 0), TopicPartition("in", 1)]
    return Assignment(
        version=5,
        commonly_supported_version=5,
        active_tasks=(TaskId(0, 0),),
        standby_tasks={TaskId(0, 1): served},
        partitions_by_host={HostInfo("h", 1): served},
    )


@pytest.mark.parametrize("version", [2, 5, 11])
def test_a_cut_blob_is_refused_at_the_piece_that_is_cut(version):
    value = answer_with_hosts()
    data = encode_assignment(Assignment(**{**fields_of(value), "version": version}))
    whole = list(explain("assignment", data))
    for piece in whole:
        for cut in (piece.offset, piece.offset + piece.size - 1):
            with pytest.raises(DecodeError) as caught:
                list(explain("assignment", data[:cut]))
            error = caught.value
            assert error.version == (version if cut >= 4 else None)
            assert error.available == cut
            assert 0 <= error.offset <= cut
            name = error.what.split()[1 if error.what.startswith("assignment") else 0]
            assert any(piece.path == name.rstrip(":") for piece in whole), error.what


def fields_of(value):
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}


def test_counts_that_the_rest_cannot_hold_are_refused_before_any_entry():
    data = struct.pack(">i16si", 1, bytes(16), 3) + bytes(16)
    with pytest.raises(DecodeError) as caught:
        list(explain("subscription", data))
    assert caught.value.what == "prev_tasks claims 3 entries, 16 bytes are left"
    assert (caught.value.offset, caught.value.version, caught.value.available) == (20, 1, 40)
    with pytest.raises(DecodeError, match="prev_tasks claims -1 entries, 0 bytes"):
        list(explain("subscription", struct.pack(">i16si", 1, bytes(16), -1)))


def test_entries_that_just_fit_are_listed():
    data = struct.pack(">i16siiii", 1, bytes(16), 1, 7, 8, 0)
    assert [piece.value for piece in explain("subscription", data)][2:] == [1, 7, 8, 0]
    assert decode_subscription(data).prev_tasks == (TaskId(7, 8),)


@pytest.mark.parametrize("kind", ["subscription", "assignment"])
def test_a_native_blob_without_its_second_number_is_refused_in_its_version(kind):
    with pytest.raises(DecodeError) as caught:
        list(explain(kind, struct.pack(">i", 101) + b"\0"))
    assert (caught.value.offset, caught.value.version, caught.value.available) == (4, 101, 5)


@pytest.mark.parametrize("kind", ["subscription", "assignment"])
def test_what_has_no_version_is_refused_by_the_name_of_its_kind(kind):
    with pytest.raises(DecodeError) as caught:
        list(explain(kind, b"\0\0\0"))
    assert caught.value.what.startswith(f"{kind} version")
    assert (caught.value.offset, caught.value.version, caught.value.available) == (0, None, 3)


def test_eight_parts_of_a_value_are_spelled_and_more_are_counted():
    def shown(count):
        tags = {f"k{at}": "v" for at in range(count)}
        value = Subscription(
            version=101, latest_supported_version=101, process_id=PROCESS, client_tags=tags
        )
        pieces = explain("subscription", encode_subscription(value))
        return next(piece.value for piece in pieces if piece.path == "client_tags")

    eight = "k0=v, k1=v, k2=v, k3=v, k4=v, k5=v, k6=v, k7=v"
    assert (shown(8), shown(9)) == (eight, f"{eight}, ... (9)")
