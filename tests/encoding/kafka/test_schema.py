"""The schema: fields by version, and the generated page."""

from uuid import UUID

import pytest

from docs.generators import wire
from encoding import (
    EARLIEST_PROBEABLE_VERSION,
    KAFKA_VERSIONS,
    Assignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from encoding.kafka.compiled import array_of, minimal_size, record_dtype
from encoding.kafka.schema import ASSIGNMENT, KINDS, STRUCTURES, SUBSCRIPTION, rows_of
from tests.encoding.strategies import LEAVES

# Sizes of blobs without tasks, endpoint, tags and hosts, by version: measured on Kafka's classes.
EMPTY_SUBSCRIPTION = (28, 32, 36, 36, 36, 36, 32, 33, 37, 37, 41)
EMPTY_ASSIGNMENT = (12, 16, 20, 24, 28, 32, 40, 40, 40, 40, 40)
ZERO = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("version", range(1, len(EMPTY_SUBSCRIPTION) + 1))
def test_empty_blobs_have_kafkas_sizes(version):
    member = Subscription(version=version, latest_supported_version=11, process_id=UUID(ZERO))
    assert len(encode_subscription(member)) == EMPTY_SUBSCRIPTION[version - 1]
    assert len(encode_assignment(Assignment(version=version))) == EMPTY_ASSIGNMENT[version - 1]
    for kind, sizes in (("subscription", EMPTY_SUBSCRIPTION), ("assignment", EMPTY_ASSIGNMENT)):
        rows = rows_of(KINDS[kind], version)
        assert sum(minimal_size(row.type) for row in rows) == sizes[version - 1]


def test_layouts_that_are_equal_in_kafka_are_equal_here():
    def layout(rows, version):
        return tuple(rows_of(rows, version))

    assert len({layout(SUBSCRIPTION, version) for version in (3, 4, 5, 6)}) == 1
    assert len({layout(SUBSCRIPTION, version) for version in range(1, 12)}) == 8
    assert len({layout(ASSIGNMENT, version) for version in (7, 8, 9, 10, 11)}) == 1
    assert len({layout(ASSIGNMENT, version) for version in range(1, 12)}) == 7


def test_probing_is_possible_from_the_first_version_with_two_numbers():
    for rows in KINDS.values():
        assert rows[1].since == EARLIEST_PROBEABLE_VERSION


def test_every_type_and_structure_is_known_and_used():
    used, todo = set(), [row for rows in KINDS.values() for row in rows]
    while todo:
        row = todo.pop()
        assert row.meaning
        name = array_of(row.type)
        if name is None:
            assert row.type in LEAVES
        elif name not in used:
            used.add(name)
            todo.extend(STRUCTURES[name])
    assert used == set(STRUCTURES)


def test_no_structure_can_take_zero_bytes():
    for version in KAFKA_VERSIONS:
        for fields in STRUCTURES.values():
            assert all(minimal_size(field.type) > 0 for field in rows_of(fields, version))


def test_shared_rows_stand_together():
    for rows in KINDS.values():
        marks = "".join("x" if row.shared else "." for row in rows)
        assert marks.strip(".") in ("", "x" * marks.count("x"))


def test_records_are_as_large_as_their_fields():
    sizes = {name: record_dtype(name, 11) for name in STRUCTURES}
    assert {name: dtype.itemsize for name, dtype in sizes.items() if dtype} == {
        "task_id": 8,
        "assigned_task": 12,
        "task_offset_sum": 18,
        "partition_offset": 12,
        "topic_index": 8,
    }
    assert record_dtype("assigned_task", 9).itemsize == 8


def test_the_printed_page_names_every_row():
    page = wire.render()
    for rows in (*KINDS.values(), *STRUCTURES.values()):
        for row in rows:
            assert f"`{row.name}`" in page
            assert f"`{row.type}`" in page
    assert "- subscription: v3, v4, v5, v6\n- assignment: v7, v8, v9; v10, v11" in page
