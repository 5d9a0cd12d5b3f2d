"""Columns of words: varints or a fixed width, whichever is smaller; invalid bytes are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding.native.unsigned_columns import decode_words, encode_words
from encoding.primitives.varints import FEW, WireFault, encode_varints

columns = st.integers(0, 64).flatmap(
    lambda bits: st.lists(st.integers(0, 2**bits - 1), max_size=70)
)


@given(columns)
def test_words_are_read_back(values):
    data = encode_words(values)
    back = decode_words(data)
    assert [int(value) for value in back] == values
    assert isinstance(back, list) or len(values) > FEW or data[0] == 0


@given(columns)
def test_lists_and_columns_are_written_alike(values):
    assert encode_words(values) == encode_words(np.array(values, np.uint64))


@given(columns.filter(bool))
def test_the_smaller_coding_is_written_and_one_width_where_it_is_nearly_so(values):
    data = encode_words(values)
    varints = len(encode_varints(values))
    width = max(1, (max(values).bit_length() + 7) // 8)
    if data[0] == 0:
        assert len(data) - 1 == varints <= width * len(values)
    else:
        assert data[0] == width
        assert len(data) - 1 == width * len(values)
        assert len(data) - 1 < varints or (len(values) >= 16 and (len(data) - 1) * 4 <= 5 * varints)


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ([], ""),
        ([0], "0000"),
        ([128], "0180"),  # one byte, where a varint takes two
        ([1, 128], "010180"),
        ([2**64 - 1], "08" + "ff" * 8),
        ([128, 200], "0180c8"),
        ([2**16, 2**17], "00808004808008"),  # three bytes either way
    ],
)
def test_bytes_of_words(values, data):
    assert encode_words(values).hex() == data
    assert [int(value) for value in decode_words(bytes.fromhex(data))] == values


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0901", "coding 9; 0 to 8 are known"),
        ("ff", "coding 255; 0 to 8 are known"),
        ("030000", "2 bytes are no numbers of 3 bytes each"),
        ("0080", "cut off"),
    ],
)
def test_what_is_no_words_is_refused(data, message):
    with pytest.raises(WireFault, match=message):
        decode_words(bytes.fromhex(data))


def test_a_width_alone_has_no_numbers():
    assert [list(decode_words(bytes((width,)))) for width in range(9)] == [[]] * 9
