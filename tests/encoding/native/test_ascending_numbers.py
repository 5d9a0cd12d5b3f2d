"""Ascending numbers: the smaller of two codings; fast and slow paths agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding.native import ascending_numbers as numbers
from encoding.native.ascending_numbers import decode_few_numbers, decode_numbers, encode_numbers
from encoding.primitives.varints import WireFault

LIMIT = 3000
ascending = st.sets(st.integers(0, LIMIT - 1), max_size=90).map(sorted)
ascending |= st.sets(st.integers(0, 120), max_size=90).map(sorted)


def written(values):
    return encode_numbers(np.array(values, np.int32))


@given(ascending)
def test_numbers_are_read_back(values):
    data = written(values)
    assert decode_numbers(data, LIMIT).tolist() == values
    few = decode_few_numbers(data, LIMIT)
    assert few is None or few == values


@given(ascending)
def test_few_numbers_are_written_as_many_are(values):
    data = written(values)
    assert numbers.encode_few_numbers(values) == data
    if values:
        gaps = (np.diff([-1, *values]) - 1).tolist()
        varints = 1 + sum(1 + (gap > 127) for gap in gaps)  # two bytes reach to 16,383
        words = 1 + len(gaps) * (1 + (max(gaps) > 255))
        smallest = min(varints, words, 2 + values[-1] // 8)
        assert smallest <= len(data) <= max(smallest, 1 + (varints - 1) * 5 // 4)


@given(st.binary(max_size=12), st.integers(0, 60))
def test_the_fast_way_never_takes_what_the_slow_way_refuses(data, limit):
    try:
        few = decode_few_numbers(data, limit)
    except WireFault:
        few = None
    try:
        many = decode_numbers(data, limit).tolist()
    except WireFault:
        assert few is None
    else:
        assert few is None or few == many


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0005", "above the last one, 4"),
        ("000400", "number 5 is above the last one, 4"),
        ("000000000000000000", "above the last one, 4"),
        ("0920", "number 5 is above the last one, 4"),
        ("090100", "a bitmap of 2 bytes for 5 numbers"),
        ("0a00", "coding 10; 0 to 8 are known"),
        ("020000ff", "3 bytes are no numbers of 2 bytes each"),
        ("020009", "above the last one, 4"),
        ("0080", "cut off"),
        ("00" + "ff" * 9 + "01", "above the last one, 4"),
    ],
)
def test_numbers_above_the_limit_are_refused(data, message):
    with pytest.raises(WireFault, match=message):
        decode_numbers(bytes.fromhex(data), 5)


def test_no_numbers_take_no_bytes():
    assert written([]) == b""
    assert decode_numbers(b"", 0).tolist() == []
