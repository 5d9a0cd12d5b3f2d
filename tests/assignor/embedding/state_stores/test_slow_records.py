"""Records that have taken too long: which are left to a later call, and when they begin."""

import pytest

from assignor.embedding.state_stores.held_input import SlowRecords
from encoding import TopicPartition

A, B, C = (TopicPartition("in", number) for number in range(3))


def call(slow, offsets, records, *, are_committed=True, cuts_off=False):
    """Return those of the records that a call processes."""
    slow.begin(offsets, are_committed=are_committed)
    done = [record for record in records if not slow.skips(*record)]
    if cuts_off:
        slow.cut_off()
    slow.end()
    return done


def test_a_slow_record_and_those_behind_it_wait_for_a_call_that_has_it_alone():
    slow, records = SlowRecords(), [(A, 6), (A, 7), (B, 1), (A, 8), (B, 2)]
    assert call(slow, {A: 7}, records) == [(A, 6), (B, 1), (B, 2)]
    assert call(slow, {A: 7}, [(A, 7), (A, 8), (B, 3)]) == [(A, 7)]
    assert call(slow, {A: 7}, [(A, 8), (B, 3)]) == [(A, 8), (B, 3)]


def test_nothing_is_held_back_without_a_slow_record():
    records = [(A, 6), (A, 7), (B, 1)]
    assert call(SlowRecords(), {}, records) == records
    assert call(SlowRecords(), {A: 5}, records) == records


def test_it_does_not_begin_before_all_offsets_are_committed():
    slow = SlowRecords()
    assert call(slow, {A: 7}, [(A, 7), (B, 1)]) == [(B, 1)]
    assert call(slow, {A: 7}, [(A, 7), (B, 2)], are_committed=False) == [(B, 2)]
    assert call(slow, {A: 7}, [(A, 7), (B, 3)]) == [(A, 7)]


def test_it_does_not_begin_before_a_call_has_left_no_other_record_for_some_calls():
    slow, number = SlowRecords(), 0
    while call(slow, {A: 7}, [(A, 7), (B, number)], cuts_off=True) == [(B, number)]:
        number += 1
    assert 5 < number < 20
    slow = SlowRecords()
    assert call(slow, {A: 7}, [(A, 7), (B, 1)], cuts_off=True) == [(B, 1)]
    assert call(slow, {A: 7}, [(A, 7), (B, 2)]) == [(B, 2)]
    assert call(slow, {A: 7}, [(A, 7)]) == [(A, 7)]


def test_the_records_of_its_partition_before_it_are_processed_before_it():
    slow = SlowRecords()
    assert call(slow, {A: 7}, [(A, 7), (B, 1)]) == [(B, 1)]
    # It has been revoked since, and comes back at an earlier offset.
    records = [(A, 5), (B, 2), (A, 6), (A, 7), (A, 8)]
    assert call(slow, {A: 7}, records) == [(A, 5), (A, 6), (A, 7)]


def test_one_that_has_moved_away_is_forgotten():
    slow = SlowRecords()
    assert call(slow, {A: 7}, [(A, 7)]) == []
    slow.begin({A: 7}, are_committed=False)
    slow.end()
    assert call(slow, {A: 7}, [(B, 1)]) == [(B, 1)]


@pytest.mark.parametrize("are_known", [True, False])
def test_several_begin_one_after_the_other_and_others_in_between(are_known):
    slow, offsets = SlowRecords(), {A: 7, B: 3}
    records = [(A, 7), (B, 3), (C, 1)]
    assert call(slow, offsets, records) == [(C, 1)]
    assert call(slow, offsets, records) == [(A, 7)]
    # It has passed, or the member came back, and it is tried again.
    first = [(C, 1)] if are_known else [(A, 8), (C, 1)]
    records = [(A, 7 if are_known else 8), (B, 3), (C, 1)]
    assert call(slow, offsets, records) == first
    assert call(slow, offsets, records) == [(B, 3)]
