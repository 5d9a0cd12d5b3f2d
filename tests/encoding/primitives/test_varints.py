"""Varints: short and long columns have one coding; truncated or too large ones are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding.primitives import varints
from encoding.primitives.varints import (
    Cursor,
    WireFault,
    block,
    decode_varints,
    encode_varint,
    encode_varints,
    is_block,
    unzigzag,
    zigzag,
)

words = st.integers(0, 300) | st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**64 - 1, "ff" * 9 + "01")],
)
def test_a_number_takes_seven_bits_a_byte(value, data):
    assert encode_varint(value).hex() == data
    assert encode_varints([value]).hex() == data
    assert list(decode_varints(bytes.fromhex(data))) == [value]
    assert Cursor(bytes.fromhex(data)).varint() == value


@given(st.lists(words, max_size=80))
def test_few_and_many_numbers_are_written_and_read_alike(values):
    data = b"".join(map(encode_varint, values))
    column = np.array(values, np.uint64)
    assert encode_varints(values) == encode_varints(column) == data
    assert [int(value) for value in decode_varints(data)] == values
    if values:
        assert varints._encode_column(column) == data
        assert varints._decode_column(data).tolist() == values


@given(st.binary(max_size=32))
def test_plain_python_and_numpy_refuse_the_same_bytes(data):
    def outcome(read):
        try:
            return [int(value) for value in read(data)]
        except WireFault as fault:
            return str(fault)

    few, many = outcome(decode_varints), outcome(varints._decode_column) if data else []
    assert isinstance(few, str) == isinstance(many, str)
    assert isinstance(few, str) or few == many


@pytest.mark.parametrize(
    "data", ["80", "80" * 9 + "02", "ff" * 9 + "02", "80" * 10 + "00", "ff" * 10]
)
@pytest.mark.parametrize("front", [b"", b"\0" * 40])
def test_cut_off_and_too_large_numbers_are_refused(data, front):
    with pytest.raises(WireFault, match=r"cut off|larger than 64 bits"):
        decode_varints(front + bytes.fromhex(data))
    with pytest.raises(WireFault, match=r"cut off|larger than 64 bits"):
        Cursor(bytes.fromhex(data)).varint()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_zig_zag_keeps_the_sign_in_the_lowest_bit(values):
    column = np.array(values, np.int64)
    folded = zigzag(column)
    assert folded.tolist() == [2 * v if v >= 0 else -2 * v - 1 for v in values]
    assert unzigzag(folded).tolist() == unzigzag(folded.tolist()).tolist() == values


@pytest.mark.parametrize(("more", "is_one"), [(b"", True), (b"\0", False), (b"ab", False)])
def test_bytes_behind_a_block_are_not_part_of_it(more, is_one):
    assert is_block(block(b"abc") + more) == is_one


def test_a_cursor_reads_blocks_and_reports_where_the_bytes_end():
    cursor = Cursor(block(b"abc") + b"\5de")
    assert cursor.block() == b"abc"
    assert cursor.left == 3
    with pytest.raises(WireFault, match="5 bytes are announced, 2 are left"):
        cursor.block()
    assert Cursor(b"xy").rest() == b"xy"
    with pytest.raises(WireFault):
        Cursor(b"").varint()
