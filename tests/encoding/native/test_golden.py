"""Native bytes of released versions never change.

`golden/native.json` was written once and checked by hand against the layouts in
`encoding/native/schema.py`; below, three blobs are explained byte by byte.
"""

import json
from pathlib import Path
from uuid import UUID

import pytest

from encoding import (
    Assignment,
    NativeAssignment,
    NativeSubscription,
    Subscription,
    TaskId,
    TaskOffsetSums,
    encode_assignment,
    encode_subscription,
)
from tests.encoding.golden_files import DECODE, ENCODE, FROM_FIELDS, TO_FIELDS

PATH = Path(__file__).parents[1] / "golden" / "native.json"
GOLDEN = json.loads(PATH.read_text(encoding="ascii"))
PROCESS = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")


@pytest.mark.parametrize("line", GOLDEN, ids=lambda line: f"{line['kind']}: {line['name']}")
def test_frozen_bytes_are_read_and_written(line):
    data = bytes.fromhex(line["hex"])
    value = DECODE[line["kind"]](data)
    assert TO_FIELDS[line["kind"]](value) == line["fields"]
    assert value.version == line["version"]
    assert ENCODE[line["kind"]](value) == data
    assert FROM_FIELDS[line["kind"]](line["fields"]) == value


def joined(*parts):
    return bytes.fromhex("".join(parts).replace(" ", ""))


def member(**changes):
    sums = {TaskId(0, 0): -2, TaskId(0, 2): 7, TaskId(1, 0): -3}
    return Subscription(
        latest_supported_version=changes.pop("latest", 101),
        process_id=PROCESS,
        task_offset_sums=TaskOffsetSums.from_mapping(sums),
        **changes,
    )


BODY = (
    "85",  # a map of five keys
    "00 65",  # readable since 101
    "01 c4 10 000102030405060708090a0b0c0d0e0f",  # process id
    "06 c4 07 04 7a6f6e65 01 61",  # tags: zone = a
    "07 c4 02 03 01",  # sizes: 3, once more
    "0a c4 09",  # offset sums, 9 bytes
    "03  02 09 0d",  # block of tasks: block of numbers: a bitmap, 0b1101: numbers 0, 2, 3
    "01  01",  # block of a bitmap: the first one runs
    "00 0e 05",  # varints: 7 and -3, zig-zag
)


def test_a_native_subscription_byte_by_byte():
    value = member(version=101, client_tags={"zone": "a"}, native=NativeSubscription(sizes=(3, 3)))
    assert encode_subscription(value) == joined("00000065 00000065", *BODY)


def test_a_trailer_byte_by_byte():
    native = NativeSubscription(sizes=(3, 3))
    value = member(version=3, latest=11, client_tags={"zone": "a"}, native=native)
    assert encode_subscription(value) == joined(
        "00000003 0000000b 000102030405060708090a0b0c0d0e0f",
        "00000001 00000000 00000000",  # previous tasks: 0_0
        "00000002 00000000 00000002 00000001 00000000",  # standby tasks: 0_2, 1_0
        "00000000",  # no endpoint: here Kafka's fields end
        "f5 53 52 41",  # magic
        "00000039",  # 57 bytes follow
        "00000065 00000065",
        *BODY,
    )


def test_a_native_assignment_byte_by_byte():
    value = Assignment(
        version=101,
        commonly_supported_version=101,
        active_tasks=(TaskId(0, 0), TaskId(0, 2), TaskId(5, -1, "n")),
        standby_tasks={TaskId(1, 0): ()},
        native=NativeAssignment(sizes=(3, 3), next_version=300, subscription_read=False),
    )
    assert encode_assignment(value) == joined(
        "00000065 00000065",
        "86 00 65",  # six keys, readable since 101
        "01 c4 02 03 01",  # sizes
        "02 c4 08",  # active tasks, 8 bytes
        "02 09 05",  # block of numbers: a bitmap, 0b101
        "02 0a 01",  # block of rows outside the sizes: 5 and -1, zig-zag
        "01 6e",  # its name: n
        "03 c4 03 02 00 03",  # standby tasks: gaps, 3 before the first
        "0a cd 012c",  # next version 300
        "0b c2",  # subscription not read
    )
