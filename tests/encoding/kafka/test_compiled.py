"""Readers and writers of the wire types: bounds, nulls, fast and slow paths."""

import numpy as np
import pytest

from encoding import DecodeError, EncodeError
from encoding.kafka.compiled import array_of, reader, writer
from encoding.kafka.schema import Field


def written(type_, value, version=11):
    parts = []
    writer(Field("f", type_), version)(value, parts)
    return b"".join(parts)


def read(type_, data, version=11):
    return reader(Field("f", type_), version)(data, 0)


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        ("int8", -1, "ff"),
        ("int32", -2, "fffffffe"),
        ("int64", 2**63 - 1, "7fffffffffffffff"),
        ("bytes", "é", "00000002c3a9"),
        ("bytes", "", "00000000"),
        ("string", None, "ffff"),
        ("string", "", "0000"),
        ("string", "é", "0002c3a9"),
        ("java_utf", "\0", "0002c080"),
        ("utf16", None, "00000000"),
        ("utf16", "é", "0000000100e9"),
        ("utf16", "😀", "00000002d83dde00"),
        ("[]client_tag", [("a", "b")], "0000000100000001610000000162"),
    ],
)
def test_a_value_is_written_and_read(type_, value, data):
    raw = bytes.fromhex(data)
    assert written(type_, value) == raw
    assert read(type_, raw + b"rest") == (value, len(raw))
    for length in range(len(raw)):
        with pytest.raises(DecodeError):
            read(type_, raw[:length])


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int8", 128),
        ("int32", "1"),
        ("int64", 1.5),
        ("uuid", "x"),
        ("bytes", None),
        ("bytes", b"x"),
        ("java_utf", None),
        ("[]task_id", [(1, 2**31)]),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(type_, value):
    with pytest.raises(EncodeError):
        written(type_, value)


@pytest.mark.parametrize(
    ("type_", "data", "value"),
    [("string", "fffe", None), ("utf16", "80000000", None), ("string", "8000", None)],
)
def test_negative_lengths_of_nullable_text_are_null(type_, data, value):
    assert read(type_, bytes.fromhex(data))[0] is value


def test_a_negative_length_of_other_text_is_an_error():
    with pytest.raises(DecodeError, match="length -1, but it cannot be null"):
        read("bytes", b"\xff\xff\xff\xff")


@pytest.mark.parametrize("count", ["ffffffff", "80000000", "7fffffff", "00000002"])
def test_a_count_that_cannot_be_is_refused_before_anything_is_made(count):
    with pytest.raises(DecodeError, match=r"entries of at least 8 bytes, 8 bytes are left"):
        read("[]task_id", bytes.fromhex(count) + bytes(8))


def test_records_without_names_come_as_columns_and_others_as_rows():
    nameless = written("[]task_offset_sum", [(1, 2, 3, None), (4, 5, 6, None)])
    records, end = read("[]task_offset_sum", nameless)
    assert isinstance(records, np.ndarray)
    assert (records["offset_sum"].tolist(), end) == ([3, 6], len(nameless))
    # A name in the middle shifts what follows, and is still seen.
    rows = [(1, 2, 3, None), (4, 5, 6, "n"), (7, 8, 9, None)]
    named = written("[]task_offset_sum", rows)
    assert read("[]task_offset_sum", named) == (rows, len(named))


def test_an_array_at_the_very_end_may_be_empty():
    for type_ in ("[]task_id", "[]task_offset_sum", "[]client_tag"):
        value, end = read(type_, bytes(4))
        assert (len(value), end) == (0, 4)


def test_columns_are_written_as_rows_are():
    rows = [(1, 2), (3, 4)]
    columns = np.array(rows, np.dtype([("subtopology", ">i4"), ("partition", ">i4")]))
    assert written("[]task_id", columns) == written("[]task_id", rows)
    wrong = np.array(rows, np.dtype([("subtopology", "<i8"), ("partition", "<i8")]))
    assert written("[]task_id", wrong) == written("[]task_id", rows)


def test_an_array_type_names_its_structure():
    assert array_of("[]task_id") == "task_id"
    assert array_of("int32") is None
