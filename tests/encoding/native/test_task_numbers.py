"""Task numbers: positions in (subtopology, partition) order; limits are checked first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding.native.schema import MAX_SUBTOPOLOGIES, MAX_TASKS
from encoding.native.task_numbers import numbering_of, read_numbering
from encoding.primitives.varints import WireFault, encode_varints

sizes_of = st.lists(st.integers(0, 9), max_size=12).map(tuple)


def columns(tasks):
    return (np.array([t[n] for t in tasks], np.int32) for n in (0, 1))


@given(sizes_of)
def test_every_task_has_its_position(sizes):
    tasks = [(sub, part) for sub, size in enumerate(sizes) for part in range(size)]
    numbering = numbering_of(sizes)
    numbers, inside = numbering.numbers_of(*columns(tasks))
    assert numbers.tolist() == list(range(len(tasks))) == list(range(numbering.total))
    assert inside is None or not tasks
    subs, parts = numbering.tasks_of(numbers)
    assert list(zip(subs.tolist(), parts.tolist(), strict=True)) == tasks
    assert read_numbering(numbering.written).sizes == sizes


@given(sizes_of, st.lists(st.tuples(st.integers(-2, 13), st.integers(-2, 10)), min_size=1))
def test_tasks_outside_the_sizes_have_none(sizes, tasks):
    numbers, inside = numbering_of(sizes).numbers_of(*columns(tasks))
    known = [0 <= s < len(sizes) and 0 <= p < sizes[s] for s, p in tasks]
    assert (np.ones(len(tasks), bool) if inside is None else inside).tolist() == known
    assert numbers.tolist() == [
        sum(sizes[:s]) + p for (s, p), is_known in zip(tasks, known, strict=True) if is_known
    ]


def test_equal_sizes_are_written_as_runs():
    assert numbering_of((100,) * 100).written == bytes((100, 99))
    assert numbering_of((3, 3, 0)).written == bytes((3, 1, 0, 0))
    assert numbering_of(()).written == b""


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((1,) * (MAX_SUBTOPOLOGIES + 1), "16385 subtopologies; at most 16384"),
        ((MAX_TASKS, 1), "16777217 tasks in all; at most 16777216"),
        ((-1,), "integers from 0 on"),
        ((1.5,), "integers from 0 on"),
    ],
)
def test_sizes_that_no_reader_takes_are_not_written(sizes, message):
    with pytest.raises(WireFault, match=message):
        numbering_of(sizes)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([0, MAX_SUBTOPOLOGIES], "more than 16384 subtopologies"),
        ([1, 2**62], "more than 16384 subtopologies"),
        ([MAX_TASKS, 1], "more than 16777216 tasks"),
        ([2**63, 0], "more than 16777216 tasks"),
        ([5], "cut off"),
    ],
)
def test_sizes_that_claim_too_much_are_refused(runs, message):
    with pytest.raises(WireFault, match=message):
        read_numbering(encode_varints(runs))


def test_the_limits_themselves_are_accepted():
    assert read_numbering(encode_varints([0, MAX_SUBTOPOLOGIES - 1])).total == 0
    assert read_numbering(encode_varints([MAX_TASKS, 0])).total == MAX_TASKS
