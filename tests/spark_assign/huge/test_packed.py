"""Rows that the first pass over a huge group packs for the next ones."""

from types import SimpleNamespace

import numpy as np
import pytest

from assignor.placement import LAG_UNKNOWN, NOBODY
from spark_assign.huge.worker.chunk import Chunk, Plans, Stored
from spark_assign.huge.worker.packed import packed_rows, unpacked_rows
from spark_assign.huge.worker.rows import Rows


def rows_of(seed, *, size=500, width=3):
    rng = np.random.default_rng(seed)
    shape = (size, width)
    return Rows(
        subtopology=rng.integers(0, 3, size),
        partition=np.arange(size) + int(rng.integers(2**31 - size)),
        stateful=rng.random(size) < 0.5,
        owner=rng.integers(NOBODY, 100_000, size),
        ends=rng.choice([0, 2**40, LAG_UNKNOWN], size),
        copy_client=np.asfortranarray(rng.integers(NOBODY, 300, shape)),
        copy_lag=np.asfortranarray(rng.choice([-1, 127, 128, 2**33, LAG_UNKNOWN], shape)),
        copy_stalled=np.asfortranarray(rng.random(shape) < 0.1),
        source_class=rng.integers(0, 70_000, size),
        changelog_class=np.zeros(size, dtype=np.int64),
        is_wrong=np.zeros(size, dtype=np.bool_),
    )


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("size", [1, 500])
def test_packed_rows_come_back_as_they_were(size, width):
    for seed in range(20):
        rows = rows_of(seed, size=size, width=width)
        again = unpacked_rows(packed_rows(rows))
        for name in Rows.__slots__:
            before, after = getattr(rows, name), getattr(again, name)
            assert (before.dtype, before.shape) == (after.dtype, after.shape), name
            assert np.array_equal(before, after), name


def test_columns_that_are_constant_or_small_take_few_bytes():
    rows = rows_of(1)
    numbers = {name: getattr(rows, name) for name in Rows.__slots__}
    plain = Rows(**{name: np.zeros_like(column) for name, column in numbers.items()})
    assert len(packed_rows(plain)) < 200
    small = {name: column % 100 for name, column in numbers.items() if column.dtype != np.bool_}
    narrow = Rows(**(numbers | small))
    assert len(packed_rows(narrow)) < 17 * len(rows.owner)


def test_other_rows_than_were_counted_are_an_error():
    data = memoryview(packed_rows(rows_of(2)))
    lines = [Stored(0, None, data), Stored(0, 77, None)]

    def chunk(mark):
        known = SimpleNamespace(plans=Plans(marks={0: mark}))
        return Chunk(known=known, number=0)

    assert [len(rows.owner) for rows in chunk(77).unpacked(lines)] == [500]
    with pytest.raises(RuntimeError, match="chunk 0 of the tasks has other rows"):
        list(chunk(78).unpacked(lines))
