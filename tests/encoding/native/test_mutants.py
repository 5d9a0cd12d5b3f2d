"""Exact limits of the native types, and the exact message of every refusal."""

import pytest

from encoding import PartitionRange, TaskId, TaskOffsetSums
from encoding.native.ascending_numbers import decode_numbers
from encoding.native.task_columns import encode_text, take_text
from encoding.native.task_numbers import numbering_of
from encoding.native.value_types import TYPES
from encoding.primitives.varints import Cursor, WireFault

EIGHT = numbering_of((8,))
LONGEST = "x" * 65_535


def read(type_, data):
    return TYPES[type_].read(data, EIGHT)


def write(type_, value):
    return TYPES[type_].write(value, EIGHT)


REFUSED = {
    "7 is no text": lambda: write("text", 7),
    "8 is no text": lambda: write("texts", 8),
    "it takes 65536 bytes, at most 65535 fit; shorten it": lambda: write("text", LONGEST + "x"),
    "a text of 65536 bytes; at most 65535 may be": lambda: read("texts", b"\x80\x80\x04"),
    "a text is not UTF-8": lambda: read("texts", b"\x01\xff"),
    "1 is neither True nor False": lambda: write("bool", 1),
    "str is not bytes": lambda: write("bytes", "x"),
    "it takes exactly 8 bytes": lambda: write("bytes8", b"7"),
    "2147483648 is no integer from -2147483648 to 2147483647": lambda: write("int32", 2**31),
    "-1 is no integer from 0 to 2147483647": lambda: write("count", -1),
    "4294967296 is no integer from 0 to 4294967295": lambda: write("uint32", 2**32),
    f"{2**63} is no integer of 64 bits": lambda: write("int64_bytes", 2**63),
    "give a uuid.UUID": lambda: write("uuid", "x"),
    "a UUID of 1 bytes; it takes 16": lambda: read("uuid", b"x"),
    "give ids from 0 to 16383": lambda: write("numbers", [2**14]),
    "give tasks with numbers that fit 32 bits": lambda: write("tasks", [TaskId(2**31, 0)]),
    "give TaskOffsetSums, for example TaskOffsetSums.from_mapping(...)": (
        lambda: write("offset_sums", {})
    ),
    "2147483648 is no integer from 0 to 2147483647": (
        lambda: write("counts_by_name", {"a": 2**31})
    ),
    "2147483648 is larger than 2147483647": (
        lambda: read("counts_by_name", b"\x01a\x80\x80\x80\x80\x08")
    ),
    "'a' occurs twice": lambda: read("counts_by_name", b"\x01a\x01\x01a\x01"),
    "3 is no (lowest, highest)": lambda: write("ranges_by_name", {"a": 3}),
    "(1, 2, 3) is no (lowest, highest)": lambda: write("ranges_by_name", {"a": (1, 2, 3)}),
    "('t', 2, 1) is no range of partitions from 0 on": (lambda: write("partitions", [("t", 2, 1)])),
    "partition 2147483648 is beyond 32 bits": (lambda: write("partitions", [("t", 0, 2**31 + 1)])),
    "partition 2147483648 of 't' is beyond 32 bits": (
        lambda: read("partitions", b"\x01t\x06\x00\x81\x80\x80\x80\x08")
    ),
    "a range of 't' without a length": lambda: read("partitions", b"\x01t\x01\x00"),
    "ranges of 't' that are empty or touch": lambda: read("partitions", b"\x01t\x02\x00\x00"),
    "topic 's' behind 't'; topics ascend": (
        lambda: read("partitions", b"\x01t\x02\x00\x01\x01s\x02\x00\x01")
    ),
    "topic 't' behind 't'; topics ascend": (
        lambda: read("partitions", b"\x01t\x02\x00\x01\x01t\x02\x05\x01")
    ),
    "partition 2147483652 of 't' is beyond 32 bits": (
        lambda: read("partitions", b"\x01t\x08\x00\x04\x01\x80\x80\x80\x80\x08")
    ),
    "('t', 0, 2.0) is no range of partitions from 0 on": (
        lambda: write("partitions", [("t", 0, 2.0)])
    ),
    "('t', False, 2) is no range of partitions from 0 on": (
        lambda: write("partitions", [("t", False, 2)])
    ),
    "a subtopology without a partition": lambda: read("task_rows", b"\x01\x00"),
    "a task beyond 32 bits": lambda: read("task_rows", b"\x06\x80\x80\x80\x80\x10\x00"),
    "2 tasks, but not as many names": lambda: read("task_rows", b"\x04\x00\x00\x02\x00" + bytes(3)),
    "a bitmap of 2 bytes for 8 numbers": lambda: decode_numbers(b"\x09\x01\x00", 8),
    "number 8 is above the last one, 7": lambda: decode_numbers(b"\x00\x00\x07", 8),
    "a number is above the last one, 7": lambda: decode_numbers(b"\x00\x08", 8),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_value_that_does_not_fit_is_refused_in_full(sentence):
    with pytest.raises(WireFault) as caught:
        REFUSED[sentence]()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("task", [TaskId("a", 0), TaskId(0, "a"), TaskId(0.5, 0)])
def test_a_task_without_numbers_is_refused_like_one_with_large_ones(task):
    with pytest.raises(WireFault, match=r"^give tasks with numbers that fit 32 bits$"):
        write("tasks", [task])


def test_ranges_are_plain_integers_however_many_there_are():
    ranges = tuple(PartitionRange("t", 2 * at, 2 * at + 1) for at in range(99))
    back = tuple(read("partitions", write("partitions", ranges)))
    assert back == ranges
    assert {type(number) for _, *numbers in back for number in numbers} == {int}
    assert read("partitions", write("partitions", ())) == ()


def test_the_longest_text_fits():
    assert write("text", LONGEST) == LONGEST
    assert take_text(Cursor(encode_text(LONGEST))) == LONGEST


def test_the_last_partition_of_a_topic_fits():
    last = (PartitionRange("t", 0, 2**31),)
    assert tuple(read("partitions", write("partitions", last))) == last


@pytest.mark.parametrize("count", [1, 7, 8])
def test_all_the_numbers_there_are_fit(count):
    gaps = b"\x00" + bytes(count)
    bitmap = b"\x09" + bytes([2**count - 1])
    for data in (gaps, bitmap):
        assert decode_numbers(data, count).tolist() == list(range(count))


@pytest.mark.parametrize("tasks", [1, 8, 9, 40, 300])
def test_a_bitmap_of_those_that_run_is_no_longer_than_the_tasks(tasks):
    running = TaskOffsetSums.from_mapping({TaskId(0, part): -2 for part in range(tasks)})
    numbering = numbering_of((tasks,))
    data = TYPES["offset_sums"].write(running, numbering)
    assert TYPES["offset_sums"].read(data, numbering) == running
    size = (tasks + 7) // 8
    short = data.removesuffix(bytes([255] * (tasks // 8)) + bytes([2 ** (tasks % 8) - 1]))
    short = short.removesuffix(bytes([255] * size))
    grown = short[:-1] + bytes([size + 1]) + data[len(short) :] + b"\x00"
    with pytest.raises(WireFault, match=f"a bitmap of {size + 1} bytes for {tasks} tasks"):
        TYPES["offset_sums"].read(grown, numbering)
