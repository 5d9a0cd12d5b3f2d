"""What members tell of their topology: bytes, hostile bytes, and readers that know none of it."""

import json
from pathlib import Path

import pytest

from encoding import (
    DecodeError,
    NativeAssignment,
    NativeSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from encoding.native import ReachedRow, SubtopologyRow, body, schema
from encoding.native.topology_rows import (
    decode_fingerprints,
    decode_reached_rows,
    decode_subtopology_rows,
    encode_fingerprints,
    encode_reached_rows,
    encode_subtopology_rows,
)
from encoding.primitives import WireFault

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "native.json").read_text(encoding="ascii")
)
ROW = SubtopologyRow((1,), ("lines",), changelog_topics=("app-counts-changelog",))
NEW_KEYS = {"subscription": {26, 27, 28}, "assignment": {20, 21, 22}}


@pytest.fixture
def _reader_of_the_release_before(monkeypatch):
    """Readers without the rows that this page is about."""
    for kind, keys in NEW_KEYS.items():
        rows = tuple(row for row in schema.NATIVE_KINDS[kind] if row.key not in keys)
        monkeypatch.setitem(schema.NATIVE_KINDS, kind, rows)
    body._readers.cache_clear()
    yield
    body._readers.cache_clear()


@pytest.mark.usefixtures("_reader_of_the_release_before")
@pytest.mark.parametrize("name", ["topology described", "numbered by fingerprints"])
def test_the_release_before_skips_the_new_keys(name):
    [line] = [line for line in GOLDEN if line["name"] == name]
    data = bytes.fromhex(line["hex"])
    if line["kind"] == "subscription":
        native = decode_subscription(data).native
        assert native == NativeSubscription(fingerprint=bytes(range(8)))
    else:
        value = decode_assignment(data)
        assert value.native == NativeAssignment(sizes=(2, 2), partition_counts={"lines": 2})
        assert [str(task) for task in value.active_tasks] == ["0_0", "1_1"]


def test_a_program_without_versions_writes_the_bytes_of_the_release_before():
    for line in GOLDEN:
        if line["name"] in {"topology described", "numbered by fingerprints"}:
            continue
        data = bytes.fromhex(line["hex"])
        if line["kind"] == "subscription":
            assert encode_subscription(decode_subscription(data)) == data
        else:
            assert encode_assignment(decode_assignment(data)) == data


def test_rows_are_read_as_written():
    rows = (ROW, ROW._replace(versions=(1, 2), repartition_topics=(("r", 0),)))
    assert decode_subtopology_rows(encode_subtopology_rows(rows)) == rows
    memory = (ReachedRow(b"12345678", 2**62, 3),)
    assert decode_reached_rows(encode_reached_rows(memory)) == memory
    forms = (b"87654321", b"12345678")
    assert decode_fingerprints(encode_fingerprints(forms)) == forms


@pytest.mark.parametrize(
    "data",
    [
        b"\x02\x05b",  # a text that is cut off
        b"\x04\x01b\x01a",  # names that do not ascend
        b"\x02\x01a\x01\x01\x01\x05\x00\x00\x00\x00\x00",  # topic 5 of 1
        b"\x02\x01a\x00\x01\x00\x00\x00\x00\x00\x00",  # no version
        b"\x02\x01a\x01\x01\x00\x00\x00\x00\x00\x00",  # no source
        b"\x02\x01a\xff\xff\xff\xff\x0f",  # four thousand million versions
        b"\x02\x01a\x01\x01\x01\x00",  # cut off
    ],
)
def test_hostile_subtopologies_are_refused(data):
    with pytest.raises(WireFault):
        decode_subtopology_rows(data)


def test_hostile_memories_and_fingerprints_are_refused():
    good = encode_reached_rows((ReachedRow(b"12345678", 0, 1),))
    for data in (good[:-1], good + good, b"12345678" + b"\xff" * 9 + b"\x01\x01"):
        with pytest.raises(WireFault):
            decode_reached_rows(data)
    for data in (b"1234567", b"x" * 8 * (2**14 + 1)):
        with pytest.raises(WireFault):
            decode_fingerprints(data)


def test_a_fault_names_its_key():
    data = bytes.fromhex("0000006500000065") + b"\x82\x00\x65\x1b\xc4\x01\x05"
    with pytest.raises(DecodeError, match=r"key 27 \(carried, subtopology_rows\)"):
        decode_subscription(data)


def test_invalid_values_are_not_written():
    for write, value in (
        (encode_subtopology_rows, (ROW._replace(versions=()),)),
        (encode_subtopology_rows, (ROW._replace(versions=(-1,)),)),
        (encode_reached_rows, (ReachedRow(b"1", 0, 1),)),
        (encode_reached_rows, (ReachedRow(b"12345678", -1, 1),)),
        (encode_reached_rows, (ReachedRow(b"12345678", 0, 1), ReachedRow(b"12345678", 1, 1))),
        (encode_fingerprints, (b"",)),
    ):
        with pytest.raises(WireFault):
            write(value)
