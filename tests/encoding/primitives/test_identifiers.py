"""Basic values of the wire, and errors."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import AssignorError, DecodeError, EncodeError, TaskId, task_order


def test_a_task_is_written_as_kafka_writes_it():
    assert str(TaskId(0, 1)) == "0_1"
    assert str(TaskId(2, 3, "orders")) == "orders__2_3"


@given(
    st.builds(
        TaskId, st.integers(), st.integers(), st.none() | st.text("ab_1", min_size=1, max_size=9)
    )
)
def test_a_written_task_can_be_read(task):
    assert TaskId.parse(str(task)) == task


@pytest.mark.parametrize("text", ["", "1", "a_1", "1_", "_1", "1_2_3x", "__1_2"])
def test_what_is_no_task_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="for example 0_1"):
        TaskId.parse(text)


def test_tasks_without_a_name_come_first():
    tasks = [TaskId(1, 0), TaskId(0, 2, "b"), TaskId(0, 2), TaskId(0, 2, "a")]
    ordered = [TaskId(0, 2), TaskId(0, 2, "a"), TaskId(0, 2, "b"), TaskId(1, 0)]
    assert sorted(tasks, key=task_order) == ordered


def test_error_codes_are_kafkas():
    assert [code.value for code in AssignorError] == [0, 1, 2, 3, 4]
    assert AssignorError.SHUTDOWN_REQUESTED == 4


def test_errors_have_their_numbers_in_message_and_attributes():
    error = EncodeError("unique_field", 300, 8, "give an integer that fits int8")
    assert str(error) == (
        "cannot write unique_field = 300 in version 8: give an integer that fits int8"
    )
    peers = DecodeError("x is cut off", offset=3, version=None, available=5)
    assert str(peers) == "x is cut off (at byte 3 of 5, unknown version)"
    assert (peers.what, peers.offset, peers.version, peers.available) == (
        "x is cut off",
        3,
        None,
        5,
    )
    assert "(at byte 3 of 5, version 4)" in str(DecodeError("x", offset=3, version=4, available=5))


def test_long_values_are_cut_in_the_message_only():
    error = EncodeError("topic", "x" * 70_000, None, "shorten it")
    assert len(str(error)) < 200
    assert "70002 characters" in str(error)
    assert len(error.value) == 70_000


def test_errors_survive_a_trip_to_another_process():
    for error in (
        EncodeError("f", 1, 2, "r"),
        DecodeError("w", offset=1, version=2, available=3),
    ):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 bytes of this test
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
