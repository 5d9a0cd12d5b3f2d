"""Small blobs are coded in plain Python, without a detour through numpy; the bytes are the same."""

import numpy as np
import pytest

from encoding import RUNNING, TaskId, TaskOffsetSums
from encoding.native import task_columns as columns
from encoding.native.ascending_numbers import (
    BITMAP,
    decode_few_numbers,
    decode_numbers,
    encode_few_numbers,
    encode_numbers,
)
from encoding.native.task_columns import (
    columns_of,
    decode_offset_sums,
    decode_own_tasks,
    encode_offset_sums,
    encode_own_tasks,
    encode_task_rows,
)
from encoding.native.task_numbers import numbering_of
from encoding.native.unsigned_columns import decode_words, encode_words
from encoding.primitives.varints import FEW, WireFault

SIZES = numbering_of((3, 0, 40))
ALL = [TaskId(sub, part) for sub, size in enumerate(SIZES.sizes) for part in range(size)]


def _detour(*_):
    raise AssertionError("a small column took the way of large ones")


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 16, FEW])
def test_own_tasks_up_to_a_few_stay_in_plain_python(count, monkeypatch):
    for name in ("decode_tasks", "encode_tasks"):
        monkeypatch.setattr(columns, name, _detour)
    for tasks in (ALL[:count], ALL[-count:], ALL[count - 1 :: -1]):
        assert decode_own_tasks(encode_own_tasks(tasks, SIZES), SIZES) == tuple(sorted(tasks))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 16, FEW])
@pytest.mark.parametrize("total", [0, -1, 5, 2**20, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("running", ["none", "first", "last", "all"])
def test_sums_of_a_few_tasks_stay_in_plain_python(count, total, running, monkeypatch):
    runs = {"none": [], "first": [0], "last": [count - 1], "all": range(count)}[running]
    sums = [RUNNING if at in runs else total for at in range(count)]
    value = TaskOffsetSums.from_mapping(dict(zip(ALL, sums, strict=False)))
    data = encode_offset_sums(value, SIZES)
    monkeypatch.setattr(columns, "decode_tasks", _detour)
    assert decode_offset_sums(data, SIZES) == value


def test_tasks_that_run_are_one_bit_each_up_to_the_last():
    def bitmap(running):
        sums = {task: RUNNING if at in running else 0 for at, task in enumerate(ALL[:24])}
        value = TaskOffsetSums.from_mapping(sums)
        data = encode_offset_sums(value, SIZES)
        assert decode_offset_sums(data, SIZES) == value
        return data[1 + data[0] :][1 : 1 + data[1 + data[0]]]

    assert bitmap({17}) == b"\0\0\2"
    assert bitmap({0}) == b"\1"
    assert bitmap({3, 4, 6}) == b"X"  # no letter in the place of a zero byte
    assert bitmap(set()) == b""


def test_a_task_just_outside_its_subtopology_is_not_the_first_of_the_next():
    for tasks in ([TaskId(0, 3)], [TaskId(0, 2), TaskId(0, 3), TaskId(1, 0)], [TaskId(3, 0)]):
        assert decode_own_tasks(encode_own_tasks(tasks, SIZES), SIZES) == tuple(tasks)


def test_no_tasks_take_no_bytes():
    assert encode_own_tasks((), SIZES) == b""
    assert encode_task_rows(columns_of(())) == b""
    assert (decode_own_tasks(b"", SIZES), decode_own_tasks(b"\0", SIZES)) == ((), ())


def test_tasks_that_differ_only_in_their_name_are_distinguished():
    tasks = (TaskId(0, 0), TaskId(0, 0, "a"), TaskId(0, 0, "b"), TaskId(0, 1), TaskId(7, 7))
    for order in (tasks, tasks[::-1]):
        assert decode_own_tasks(encode_own_tasks(order, SIZES), SIZES) == tasks


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ([], ""),
        ([0], "0000"),
        ([0, 1, 2], "0907"),  # three bits are less than three gaps
        ([7], "0007"),
        ([5, 6, 7, 8], "09e001"),
        ([15, 16], "000f00"),
        ([1, 9], "000107"),  # as long as a bitmap: gaps
        ([0, 1, 23], "00000015"),
        ([0, 1, 2, 23], "09070080"),
    ],
)
def test_few_and_many_numbers_take_the_smaller_coding_and_gaps_if_neither_is(values, data):
    column = np.array(values, np.int32)
    assert encode_few_numbers(values).hex() == data
    assert encode_numbers(column).hex() == data
    assert decode_numbers(bytes.fromhex(data), 24).tolist() == values
    assert (decode_few_numbers(bytes.fromhex(data), 24) or []) == values


def test_many_numbers_in_gaps_as_long_as_a_bitmap_are_gaps():
    # 33 gaps, of a byte each: 34 bytes. A bitmap takes 34 to number 263, and 33 to number 255.
    spread = [8 * at + 7 for at in range(33)]
    for last, coding in ((263, 0x01), (255, 0x09)):
        values = np.array([*spread[:-2], last - 1, last], np.int32)
        data = encode_numbers(values)
        assert (data[0], len(data)) == (coding, 34 - (coding == 9))
        assert decode_numbers(data, last + 1).tolist() == values.tolist()
        with pytest.raises(WireFault, match=f"the last one, {last - 1}$"):
            decode_numbers(data, last)


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 55, 56])
def test_a_short_bitmap_is_read_bit_by_bit(bits):
    data = BITMAP + ((1 << bits) - 1).to_bytes((bits + 7) // 8, "little")
    assert decode_few_numbers(data, bits) == list(range(bits))
    assert decode_numbers(data, bits).tolist() == list(range(bits))
    assert decode_few_numbers(data, bits - 1) is None
    with pytest.raises(WireFault):
        decode_numbers(data, bits - 1)


@pytest.mark.parametrize(
    ("data", "limit", "message"),
    [
        ("090001", 8, "a bitmap of 2 bytes for 8 numbers"),
        ("090001", 0, "a bitmap of 2 bytes for 0 numbers"),
        ("090080", 15, "number 15 is above the last one, 14"),
        ("000000", 1, "a number is above the last one, 0"),
        ("000001", 2, "number 2 is above the last one, 1"),
        ("0002", 2, "a number is above the last one, 1"),
        ("08" + "f" * 16, 2**24, "a number is above the last one, 16777215"),
        ("01" + "00" * 40, 39, "a number is above the last one, 38"),
        ("01" + "00" * 39 + "01", 40, "number 40 is above the last one, 39"),
    ],
)
def test_numbers_beyond_the_last_task_are_refused_with_both_numbers(data, limit, message):
    with pytest.raises(WireFault) as caught:
        decode_numbers(bytes.fromhex(data), limit)
    assert str(caught.value) == message
    assert decode_few_numbers(bytes.fromhex(data), limit) is None


def test_one_width_is_taken_for_many_numbers_up_to_a_quarter_more_bytes():
    def coding(small, large):
        values = [1] * small + [300] * large
        data = encode_words(values)
        assert encode_words(np.array(values, np.uint64)) == data
        assert [int(value) for value in decode_words(data)] == values
        return data[0]

    assert (coding(8, 12), coding(9, 11)) == (2, 0)  # 40 bytes where varints take 32, or 31
    assert (coding(6, 9), coding(0, 15)) == (0, 0)  # 15 numbers are not many
    assert encode_words([0] * 16) == b"\1" + bytes(16)
    assert encode_words([0] * 15) == bytes(16)


@pytest.mark.parametrize("coding", [*range(9), BITMAP[0]])
def test_a_coding_alone_has_no_numbers(coding):
    assert decode_numbers(bytes((coding,)), 1).tolist() == []
    assert decode_few_numbers(bytes((coding,)), 1) is None


def test_words_of_one_width_are_a_list_if_they_are_few_and_a_column_if_not():
    for width in range(1, 9):
        few = bytes((width,)) + bytes(width * FEW)
        assert decode_words(few) == [0] * FEW
        many = decode_words(few + bytes(width))
        assert isinstance(many, np.ndarray)
        assert (many.dtype, many.tolist()) == (np.uint64, [0] * (FEW + 1))
