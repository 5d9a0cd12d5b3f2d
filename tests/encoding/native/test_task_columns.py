"""Columns of tasks and sums: their bytes, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import RUNNING, TaskId, TaskOffsetSums
from encoding.native.task_columns import (
    decode_offset_rows,
    decode_offset_sums,
    decode_own_tasks,
    decode_task_rows,
    encode_offset_rows,
    encode_offset_sums,
    encode_own_tasks,
    encode_text,
    take_text,
)
from encoding.native.task_numbers import numbering_of
from encoding.primitives.varints import Cursor, WireFault, block
from tests.encoding.native_strategies import DRAWN

SIZES = numbering_of((3, 0, 40))


@given(DRAWN["offset_sums"], DRAWN["sizes"])
def test_sums_are_read_back_in_any_numbering(value, sizes):
    numbering = numbering_of(sizes)
    assert decode_offset_sums(encode_offset_sums(value, numbering), numbering) == value
    assert decode_offset_rows(encode_offset_rows(value)) == value


@given(DRAWN["tasks"], DRAWN["sizes"])
def test_own_tasks_are_read_back_sorted_and_once(tasks, sizes):
    numbering = numbering_of(sizes)
    order = lambda task: (*task[:2], task.topology_name or "")  # noqa: E731 used here
    back = decode_own_tasks(encode_own_tasks(tasks, numbering), numbering)
    assert back == tuple(sorted(set(tasks), key=order))


@given(st.integers(0, 2000), st.randoms(use_true_random=False))
def test_many_tasks_are_read_back_too(count, random):
    numbering = numbering_of((500,) * 10)
    tasks = random.sample([TaskId(s, p) for s in range(10) for p in range(500)], count)
    sums = {task: random.choice((RUNNING, -3, random.randrange(2**40))) for task in tasks}
    value = TaskOffsetSums.from_mapping(sums)
    data = encode_offset_sums(value, numbering)
    assert decode_offset_sums(data, numbering) == value
    assert decode_own_tasks(encode_own_tasks(tasks, numbering), numbering) == tuple(sorted(tasks))
    assert len(data) <= 40 + 9 * count


def test_the_smaller_coding_of_sums_is_written():
    small = TaskOffsetSums.from_columns([2] * 40, range(40), [5] * 40)
    large = TaskOffsetSums.from_columns([2] * 40, range(40), [-(2**62)] * 40)
    # Blocks of 8 and 0 bytes, a byte of coding, then a byte or eight for each.
    assert len(encode_offset_sums(small, SIZES)) == 1 + 8 + 1 + 1 + 40
    assert len(encode_offset_sums(large, SIZES)) == 1 + 8 + 1 + 1 + 320
    for value in (small, large):
        assert decode_offset_sums(encode_offset_sums(value, SIZES), SIZES) == value


NUMBERS = block(b"\x00\x00")  # one task, 0_0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (block(NUMBERS) + block(b"\2"), "marks more than 1 tasks"),
        (block(NUMBERS) + block(b"\0\0"), "a bitmap of 2 bytes for 1 tasks"),
        (block(NUMBERS) + block(b""), "1 tasks without RUNNING, but 0 offset sums"),
        (block(NUMBERS) + block(b"\1") + b"\0\5", "0 tasks without RUNNING, but 1 offset sums"),
        (block(NUMBERS) + block(b"") + b"\x08\0", "1 bytes are no numbers of 8 bytes each"),
        (block(NUMBERS) + block(b"") + b"\x09\0", "coding 9; 0 to 8 are known"),
        (block(NUMBERS) + b"\5", "5 bytes are announced, 0 are left"),
        (block(block(b"\0\x2b")) + block(b"") + b"\0\0", "above the last one, 42"),
        (block(NUMBERS + block(b"\0")) + block(b""), "a subtopology without a partition"),
        (b"\xff", "cut off"),
    ],
)
def test_sums_that_do_not_add_up_are_refused(data, message):
    with pytest.raises(WireFault, match=message):
        decode_offset_sums(data, SIZES)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (block(b"\0\0") + b"\1a\1b", "1 tasks, but not as many names"),
        (block(b"\0\0\0\0") + b"\0", "2 tasks, but not as many names"),
        (block(b"\0\0") + b"\2a", "2 bytes are announced, 1 are left"),
        (block(b"\0\0") + b"\1\xff", "not UTF-8"),
        (block(b"\xfe\xff\xff\xff\x1f\0"), "beyond 32 bits"),
        (block(b"\0\xff\xff\xff\xff\x1f"), "beyond 32 bits"),
    ],
)
def test_rows_that_do_not_add_up_are_refused(data, message):
    with pytest.raises(WireFault, match=message):
        decode_task_rows(data)
    with pytest.raises(WireFault):
        decode_offset_rows(block(data))


def test_the_last_of_equal_tasks_wins_as_in_kafka():
    rows = block(b"\0\0\0\0")
    data = block(rows) + b"\x0a\x0e"
    assert dict(decode_offset_rows(data)) == {TaskId(0, 0): 7}
    with pytest.raises(WireFault, match="2 tasks, but 1 offset sums"):
        decode_offset_rows(data[:-1])


@pytest.mark.parametrize("tasks", [(TaskId(2**31, 0),), (TaskId(0.5, 0),), (TaskId("a", 0),)])
def test_tasks_beyond_32_bits_are_not_written(tasks):
    with pytest.raises((WireFault, TypeError)):
        encode_own_tasks(tasks, numbering_of(()))


def test_text_is_bounded_both_ways():
    assert take_text(Cursor(encode_text("é" * 30_000))) == "é" * 30_000
    with pytest.raises(WireFault, match="65536 bytes, at most 65535"):
        encode_text("x" * 65_536)
    with pytest.raises(WireFault, match="a text of 65536 bytes"):
        take_text(Cursor(b"\x80\x80\x04" + bytes(65_536)))
    with pytest.raises(WireFault, match="no text"):
        encode_text(5)


def test_columns_are_of_the_types_that_sums_promise():
    value = decode_offset_sums(encode_offset_sums(TaskOffsetSums(), SIZES), SIZES)
    few = TaskOffsetSums.from_columns([0], [1], [5])
    for sums in (value, decode_offset_sums(encode_offset_sums(few, SIZES), SIZES)):
        assert (sums.subtopologies.dtype, sums.partitions.dtype) == (np.int32, np.int32)
        assert sums.sums.dtype == np.int64
        assert not sums.sums.flags.writeable
