"""Varints and columns: every number is read back; columns need enough bytes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from encoding import DecodeError
from encoding.primitives.varints import encode_varint
from encoding.view.bits import ViewReader, bits_for, pack_bits, write_ascending

numbers = st.integers(0, 2**63 - 1) | st.sampled_from((0, 127, 128, 16_383, 16_384))
ascending = st.sets(st.integers(0, 300) | st.integers(0, 2**31 - 1)).map(sorted)


@given(numbers)
@example(2**63 - 1)
def test_a_varint_is_read_back(number):
    read = ViewReader(encode_varint(number))
    assert read.varint("it") == number
    read.end()


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9 + b"\x01"])
def test_a_varint_without_an_end_is_refused(data):
    with pytest.raises(DecodeError, match="it is a number without an end"):
        ViewReader(data).varint("it")


def test_a_varint_above_its_limit_is_refused_and_named():
    assert ViewReader(b"\x05").varint("it", 5) == 5
    with pytest.raises(DecodeError, match="it is 6, but at most 5"):
        ViewReader(b"\x06").varint("it", 5)


@given(ascending)
@example([])
@example([0])
@example([2**31 - 1])
def test_ascending_numbers_are_read_back(column):
    out = bytearray()
    write_ascending(out, np.array(column, np.int64))
    read = ViewReader(out)
    assert read.ascending("it", 2**31).tolist() == column
    read.end()


def test_a_run_of_numbers_takes_a_byte_each():
    out = bytearray()
    write_ascending(out, np.arange(100))
    assert len(out) == 101


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x02\x00", "needs 2 bytes, 1 are left"),
        (b"\x01\x80", "cut off"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "reaches 18446744073709551615"),
        (b"\x0a" + b"\xff" * 9 + b"\x02", "larger than 64 bits"),
        (b"\x01\x0a", "reaches 10"),
        (b"\x02\x05\x04", "reaches 10"),
    ],
)
def test_an_invalid_column_of_gaps_is_refused(data, reason):
    with pytest.raises(DecodeError, match=reason):
        ViewReader(data).ascending("it", 10)


@pytest.mark.parametrize(
    ("values", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (1001, 10), (1024, 10), (1025, 11)]
)
def test_bits_are_as_few_as_hold_all_values_but_never_none(values, bits):
    assert bits_for(values) == bits


@given(st.data(), st.integers(1, 2**31 - 1) | st.integers(1, 9))
def test_a_packed_column_is_read_back(data, values):
    column = data.draw(st.lists(st.integers(0, values - 1), max_size=20))
    packed = pack_bits(np.array(column, np.int64), bits_for(values))
    assert len(packed) == (len(column) * bits_for(values) + 7) // 8
    read = ViewReader(packed)
    assert read.packed(len(column), values, "it").tolist() == column
    read.end()


@pytest.mark.parametrize(
    ("data", "count", "reason"),
    [
        (b"", 1, "needs 1 bytes, 0 are left"),
        (b"\xff", 2**60, "needs"),
        (b"\xc0", 1, "holds 3, but only 3 values"),
        (b"\x01", 1, "bits behind its last entry"),
    ],
)
def test_an_invalid_packed_column_is_refused(data, count, reason):
    with pytest.raises(DecodeError, match=reason):
        ViewReader(data).packed(count, 3, "it")


def test_an_error_names_place_size_and_version():
    read = ViewReader(b"\x00\x00\x00")
    read.take(2, "it")
    with pytest.raises(DecodeError) as caught:
        read.end()
    error = caught.value
    assert (error.offset, error.available, error.version) == (2, 3, 101)
