"""Offset sums as columns: sorted, unique, searchable, comparable."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import EncodeError, TaskId, TaskOffsetSums

_number = st.integers(-3, 3) | st.sampled_from((-(2**31), 2**31 - 1))
_tasks = st.builds(TaskId, _number, _number, st.sampled_from((None, "", "a", "b")))
_mappings = st.dictionaries(_tasks, st.integers(-(2**63), 2**63 - 1), max_size=12)


def without_empty_names(sums):
    return {task._replace(topology_name=task.topology_name or None): n for task, n in sums.items()}


@given(_mappings)
def test_columns_hold_what_the_mapping_held_in_order(sums):
    columns = TaskOffsetSums.from_mapping(sums)
    expected = without_empty_names(sums)
    in_order = sorted(expected.items(), key=lambda pair: (*pair[0][:2], pair[0][2] or ""))
    assert list(columns) == in_order
    assert len(columns) == len(expected)
    assert [columns.get(task) for task in expected] == list(expected.values())
    assert all(task in columns for task in expected)


@given(_mappings, st.randoms(use_true_random=False))
def test_the_order_of_insertion_does_not_matter(sums, random):
    sums = without_empty_names(sums)
    shuffled = list(sums.items())
    random.shuffle(shuffled)
    first, other = TaskOffsetSums.from_mapping(sums), TaskOffsetSums.from_mapping(dict(shuffled))
    assert first == other
    assert hash(first) == hash(other)


@given(_mappings, _tasks)
def test_a_task_that_is_not_there_is_not_found(sums, task):
    columns = TaskOffsetSums.from_mapping(sums)
    plain = task._replace(topology_name=task.topology_name or None)
    if plain not in without_empty_names(sums):
        assert columns.get(task) is None
        assert task not in columns


def test_of_repeated_tasks_the_last_wins():
    columns = TaskOffsetSums.from_columns([3, 1, 3], [4, 0, 4], [10, 7, 20])
    assert list(columns) == [(TaskId(1, 0), 7), (TaskId(3, 4), 20)]
    named = TaskOffsetSums.from_columns([3, 3, 3], [4, 4, 4], [1, 2, 3], ["t", None, "t"])
    assert list(named) == [(TaskId(3, 4), 2), (TaskId(3, 4, "t"), 3)]


def test_names_are_kept_only_where_a_task_has_one():
    assert TaskOffsetSums.from_columns([1], [2], [3], [None]).names is None
    assert TaskOffsetSums.from_columns([1], [2], [3], [""]).names is None
    assert TaskOffsetSums.from_columns([1], [2], [3], ["n"]).names == ("n",)


def test_running_tasks_are_those_with_sum_minus_2():
    columns = TaskOffsetSums.from_columns([0, 0, 1], [0, 1, 0], [-2, -3, 5], [None, "n", None])
    assert list(columns.running()) == [(TaskId(0, 0), -2)]
    assert list(columns.not_running().tasks()) == [TaskId(0, 1, "n"), TaskId(1, 0)]


def test_columns_are_read_only_and_hold_no_extra_copies():
    subtopologies = np.arange(4, dtype=np.int32)
    columns = TaskOffsetSums.from_columns(subtopologies, [0] * 4, [1] * 4)
    assert columns.subtopologies is subtopologies
    with pytest.raises(ValueError, match="read-only"):
        columns.sums[0] = 9
    assert (columns.partitions.dtype, columns.sums.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (([2**31], [0], [0]), "task_offset_sums.subtopology"),
        (([0], [-(2**31) - 1], [0]), "task_offset_sums.partition"),
        (([0], [0], [2**63]), "task_offset_sums.offset_sum"),
        (([0], [0], [2**70]), "task_offset_sums.offset_sum"),
        (([0.5], [0], [0]), "task_offset_sums.subtopology"),
        ((["x"], [0], [0]), "task_offset_sums.subtopology"),
        (([[0]], [0], [0]), "task_offset_sums.subtopology"),
        (([0, 1], [0], [0]), "task_offset_sums"),
        (([0], [0], [0], [None, None]), "task_offset_sums"),
    ],
)
def test_columns_that_fit_no_version_are_refused(arguments, field):
    with pytest.raises(EncodeError) as caught:
        TaskOffsetSums.from_columns(*arguments)
    assert caught.value.field == field
    assert caught.value.version is None


def test_a_search_for_absurd_numbers_finds_nothing():
    columns = TaskOffsetSums.from_mapping({TaskId(0, 0): 1})
    assert columns.get(TaskId(2**40, 0)) is None
    assert columns.get(TaskId(-(2**40), 0)) is None
    assert "0_0" not in columns


@pytest.mark.parametrize("other", [{}, {TaskId(0, 0, "n"): 2}])
def test_an_empty_name_finds_the_task_without_a_name(other):
    assert TaskOffsetSums.from_mapping({TaskId(0, 0): 1} | other).get(TaskId(0, 0, "")) == 1


def test_sums_differ_when_any_column_does():
    base = TaskOffsetSums.from_columns([1], [2], [3])
    others = [
        TaskOffsetSums.from_columns([2], [2], [3]),
        TaskOffsetSums.from_columns([1], [3], [3]),
        TaskOffsetSums.from_columns([1], [2], [4]),
        TaskOffsetSums.from_columns([1], [2], [3], ["n"]),
        TaskOffsetSums(),
        {TaskId(1, 2): 3},
    ]
    assert [base == other for other in others] == [False] * len(others)
    assert copy.deepcopy(base) == base
    assert TaskOffsetSums.from_mapping({}) == TaskOffsetSums()


def test_a_repr_names_few_tasks_and_counts_many():
    assert repr(TaskOffsetSums.from_columns([1], [2], [3])) == "TaskOffsetSums(1_2: 3)"
    many = TaskOffsetSums.from_columns([1] * 9, range(9), [0] * 9)
    assert repr(many) == "TaskOffsetSums(9 tasks)"


def test_few_tasks_in_any_order_are_the_same_value_as_their_columns():
    given = {TaskId(1, 2): -2, TaskId(0, 5): 2**40, TaskId(0, -1): -3, TaskId(-4, 7): 0}
    few = TaskOffsetSums.from_mapping(given)
    columns = TaskOffsetSums.from_columns(
        [task.subtopology for task in given],
        [task.partition for task in given],
        list(given.values()),
    )
    assert few == columns
    assert hash(few) == hash(columns)
    assert list(few) == list(columns) == sorted(given.items())
    assert list(few) == list(few)  # kept, and not used up
    assert (few.subtopologies.dtype, few.partitions.dtype, few.sums.dtype) == (
        np.int32,
        np.int32,
        np.int64,
    )
    assert few.names is None


@pytest.mark.parametrize(
    ("task", "offset_sum"),
    [
        (TaskId(2**31, 0), 0),
        (TaskId(-(2**31) - 1, 0), 0),
        (TaskId(0, 2**31), 0),
        (TaskId(0, 0), -(2**63) - 1),
        (TaskId(0, -(2**31) - 1), 0),
        (TaskId(0, 0), 2**63),
        (TaskId(0, 0), 1.5),
    ],
)
def test_few_tasks_with_numbers_out_of_range_are_refused(task, offset_sum):
    with pytest.raises(EncodeError):
        TaskOffsetSums.from_mapping({task: offset_sum})


@pytest.mark.parametrize(
    ("task", "offset_sum"),
    [
        (TaskId(2**31 - 1, -(2**31)), 2**63 - 1),
        (TaskId(-(2**31), 2**31 - 1), -(2**63)),
        (TaskId(0, 0, "n"), 1),
    ],
)
def test_few_tasks_at_the_ends_of_the_range_are_taken(task, offset_sum):
    assert list(TaskOffsetSums.from_mapping({task: offset_sum})) == [(task, offset_sum)]


def test_more_than_a_few_tasks_iterate_as_few_do():
    given = {TaskId(number % 3, number): number for number in range(65)}
    sums = TaskOffsetSums.from_mapping(given)
    assert list(sums) == list(sums) == sorted(given.items())


def test_every_task_is_found_by_its_numbers_and_its_name():
    plain = {TaskId(sub, part): 10 * sub + part for sub in (0, 7) for part in range(3)}
    named = {TaskId(0, 0, name): at for at, name in enumerate((None, "a", "b", "c"))}
    named[TaskId(0, 1, "a")] = 9
    for sums in (plain, named):
        value = TaskOffsetSums.from_mapping(sums)
        assert {task: value.get(task) for task in sums} == sums
        assert all(task in value for task in sums)
        assert [value.get(t) for t in (TaskId(0, 0, "d"), TaskId(0, 9), TaskId(8, 0))] == [None] * 3
