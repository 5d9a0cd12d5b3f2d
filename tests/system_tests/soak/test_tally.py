"""The tally of a soak: planted losses, owners and commits are found, and no memory grows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_tests.live.events import (
    AssignmentTaken,
    OffsetsCommitted,
    PartitionsAssigned,
    PartitionsRevoked,
    RecordsProcessed,
    Report,
)
from system_tests.live.evidence.records import coverages
from system_tests.soak.tally import OffsetRuns, Stall, Tally, Written


def report(member, at_ms, event, incarnation=0):
    return Report(member=member, incarnation=incarnation, at_ms=at_ms, event=event)


def batch(first, last, *, partition=0, member="a", at_ms=0.0):
    event = RecordsProcessed(
        partition=partition, first_offset=first, last_offset=last, began_ms=at_ms
    )
    return report(member, at_ms, event)


def taken(member, at_ms, generation, incarnation=0):
    event = AssignmentTaken(
        generation=generation,
        version=11,
        commonly_supported_version=11,
        active_tasks=(),
        standby_tasks=(),
        error_code=0,
        next_version=11,
    )
    return report(member, at_ms, event, incarnation)


def assigned(member, at_ms, *partitions, incarnation=0):
    return report(member, at_ms, PartitionsAssigned(partitions=partitions), incarnation)


def revoked(member, at_ms, *partitions):
    return report(member, at_ms, PartitionsRevoked(partitions=partitions))


@pytest.fixture
def written():
    return Written(1)


@pytest.fixture
def tally(written):
    return Tally(written, partitions=1, zombie_ms=100.0)


def close(tally, *, owner="a", generation=1, ended_ms=None, now_ms=1000.0):
    return tally.close(
        owners={0: owner}, generation=generation, ended_ms=ended_ms or {}, now_ms=now_ms
    )


def note(written, count):
    for offset in range(count):
        written.note(0, offset, 0.0)


# Records

spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=30)


@given(spans, st.integers(0, 60))
def test_runs_of_offsets_equal_the_check_of_a_live_bounce(found, produced):
    runs = OffsetRuns()
    reports = []
    for first, length in found:
        runs.add(first, first + length)
        reports.append(batch(first, first + length))
    (expected,) = coverages(reports, produced={0: produced})
    offsets = {o for first, length in found for o in range(first, first + length + 1)}
    missing = [o for first, last in runs.missing(produced) for o in range(first, last + 1)]
    assert missing == [o for o in range(produced) if o not in offsets]
    assert runs.duplicates == sum(length + 1 for _, length in found) - len(offsets)
    assert runs.duplicates == expected.duplicates
    assert runs.following() == min(set(range(60)) - offsets)


def test_a_planted_loss_is_found(tally, written):
    note(written, 10)
    tally.take([batch(0, 3), batch(5, 9)])
    (coverage,) = tally.coverages()
    assert (coverage.produced, coverage.missing, coverage.missing_records) == (10, ((4, 4),), 1)


def test_records_processed_again_are_counted_and_are_no_loss(tally, written):
    note(written, 10)
    tally.take([batch(0, 6), batch(4, 9)])
    (coverage,) = tally.coverages()
    assert (coverage.missing, coverage.duplicates) == ((), 3)


def test_a_commit_above_a_record_that_nobody_processed_is_found(tally):
    tally.take([batch(0, 3), batch(5, 9), report("a", 0, OffsetsCommitted(offsets=((0, 10),)))])
    assert tally.committed_unprocessed() == {}, "its report can still arrive from another process"
    assert tally.committed_unprocessed() == {0: (4, 10)}
    assert tally.committed_unprocessed(at_end=True) == {0: (4, 10)}
    tally.take([batch(4, 4)])
    assert tally.committed_unprocessed(at_end=True) == {}


def test_an_hour_of_records_is_one_run_and_no_report(tally, written):
    for offset in range(5_000):
        written.note(0, offset, float(offset))
        tally.take([batch(offset, offset, at_ms=float(offset))])
    assert len(tally.runs[0]) == 1
    assert written.behind() == 0
    assert tally.records == 5_000


def test_the_wait_of_a_record_is_from_its_acknowledgement_to_the_start_of_its_batch(tally, written):
    for offset, at_ms in ((0, 10.0), (1, 20.0)):
        written.note(0, offset, at_ms)
    tally.take([batch(0, 1, at_ms=110.0)])
    written.note(0, 2, 130.0)
    tally.take([batch(2, 2, at_ms=125.0)])  # done before the acknowledgement was seen
    assert close(tally).longest_wait_ms == 100.0
    assert close(tally).longest_wait_ms == 0.0


def test_what_is_acknowledged_after_it_was_processed_does_not_wait(written):
    assert written.take(0, 4, 50.0) == 0.0
    for offset in range(6):
        written.note(0, offset, 60.0)
    assert (written.behind(), written.ends()) == (1, {0: 6})


# Owners


def test_a_planted_double_owner_is_found_across_windows(tally):
    tally.take([taken("a", 0, 1), assigned("a", 1, 0)])
    assert close(tally, now_ms=10).doubles == ()
    tally.take([taken("b", 20, 2), assigned("b", 21, 0), revoked("a", 25, 0)])
    (double,) = close(tally, owner="b", generation=2).doubles
    assert (double.first.member, double.second.member, double.overlap_ms) == ("a", "b", 4)


def test_a_stalled_member_may_own_beside_its_successor_for_a_while(tally):
    tally.take([taken("a", 0, 1), assigned("a", 1, 0)])
    close(tally, now_ms=10)
    tally.take([taken("b", 20, 2), assigned("b", 21, 0), revoked("a", 60, 0)])
    tally.note_stall(Stall(incarnation=("a", 0), from_ms=12, to_ms=50))
    window = close(tally, owner="b", generation=2, now_ms=70)
    assert (window.doubles, window.excused) == ((), 1)
    tally.take([assigned("c", 80, 0)])
    assert len(close(tally, owner="c", generation=3).doubles) == 1, "an old stall is no excuse"


def test_a_stall_excuses_neither_a_stranger_nor_what_begins_long_after_it(tally):
    for stall in (
        Stall(incarnation=("c", 0), from_ms=12, to_ms=50),
        Stall(incarnation=("a", 1), from_ms=12, to_ms=50),
        Stall(incarnation=("a", 0), from_ms=1, to_ms=2),
    ):
        tally = Tally(Written(1), partitions=1, zombie_ms=5.0)
        tally.note_stall(stall)
        tally.take([taken("a", 0, 1), assigned("a", 0, 0), taken("b", 20, 2), assigned("b", 21, 0)])
        assert len(close(tally, generation=2).doubles) == 1


def test_two_owners_of_one_generation_are_never_excused(tally):
    tally.note_stall(Stall(incarnation=("a", 0), from_ms=0, to_ms=50))
    tally.take([taken("a", 0, 1), assigned("a", 1, 0), taken("b", 2, 1), assigned("b", 3, 0)])
    assert len(close(tally).doubles) == 1


def test_a_killed_owner_owns_nothing_any_more(tally):
    tally.take([taken("a", 0, 1), assigned("a", 1, 0)])
    close(tally, now_ms=10)
    tally.take([taken("b", 20, 2), assigned("b", 21, 0)])
    ended_ms = {("a", 0): 15.0}
    assert close(tally, owner="b", generation=2, ended_ms=ended_ms).doubles == ()


# Rebalances


def test_rebalances_and_moves_are_counted_from_one_settled_group_to_the_next(tally):
    tally.take([taken("a", 0, 1), assigned("a", 1, 0)])
    first = close(tally, now_ms=10)
    assert (first.rebalances.total, first.moves) == (1, 0)
    tally.take([taken("a", 20, 2), taken("b", 20, 2)])
    second = close(tally, owner="b", generation=2)
    assert (second.rebalances.membership, second.moves) == ((2,), 1)
    tally.take([taken("a", 30, 3), taken("b", 30, 3)])
    third = close(tally, owner="b", generation=3)
    assert (third.rebalances.membership, third.rebalances.followup, third.moves) == ((), (3,), 0)


def test_a_member_that_was_killed_is_the_cause_of_the_next_rebalance(tally):
    tally.take([taken("a", 0, 1), taken("b", 0, 1)])
    close(tally)
    tally.take([taken("a", 20, 2)])
    window = close(tally, generation=2, ended_ms={("b", 0): 15.0})
    assert window.rebalances.membership == (2,)
