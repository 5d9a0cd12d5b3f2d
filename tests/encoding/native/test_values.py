"""Native values are normalised when they are built: equal content compares equal."""

import pytest

from encoding import (
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    TaskId,
    TopicPartition,
    partition_ranges,
)


def test_partitions_become_as_few_ranges_as_possible():
    partitions = [TopicPartition("b", 1), *(TopicPartition("a", n) for n in (7, 0, 1, 2, 5, 6, 1))]
    ranges = (PartitionRange("a", 0, 3), PartitionRange("a", 5, 8), PartitionRange("b", 1, 2))
    assert partition_ranges(partitions) == ranges
    assert partition_ranges([]) == ()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([("t", 0, 2), ("t", 2, 3)], [("t", 0, 3)]),
        ([("t", 4, 9), ("t", 0, 5)], [("t", 0, 9)]),
        ([("t", 0, 9), ("t", 2, 3)], [("t", 0, 9)]),
        ([("t", 3, 3), ("t", 5, 4)], []),
        ([("u", 0, 1), ("t", 1, 2)], [("t", 1, 2), ("u", 0, 1)]),
    ],
)
def test_owned_ranges_are_sorted_and_merged(given, kept):
    value = NativeSubscription(owned_partitions=tuple(PartitionRange(*row) for row in given))
    assert value.owned_partitions == tuple(kept)


def test_order_repeats_and_empty_names_make_no_difference():
    unsorted = NativeSubscription(
        subtopologies=(2, 1, 2), rack="", instance_id="", adopted_levels={"b": 1, "a": 2}
    )
    other = NativeSubscription(subtopologies=(1, 2), adopted_levels={"a": 2, "b": 1})
    assert unsorted == other
    assert hash(unsorted) == hash(other)
    assert list(unsorted.adopted_levels) == ["a", "b"]
    tasks = (TaskId(1, 0, "n"), TaskId(0, 1, ""), TaskId(0, 1))
    warm = NativeAssignment(warmup_tasks=tasks, followup_reason="")
    assert warm.warmup_tasks == (TaskId(0, 1), TaskId(1, 0, "n"))
    assert hash(warm) == hash(NativeAssignment(warmup_tasks=tasks[::-1]))


def test_every_field_has_an_empty_default():
    member, answer = NativeSubscription(), NativeAssignment()
    assert (member.threads, member.subtopologies, member.pinned_version) == (1, None, None)
    assert (member.owned_generation, member.view_epoch, member.adopted_epoch) == (-1, -1, -1)
    assert (answer.next_version, answer.subscription_read, answer.view_full) == (0, True, None)
