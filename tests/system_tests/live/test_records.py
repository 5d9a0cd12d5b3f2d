from system_tests.live.events import RecordsProcessed, Report
from system_tests.live.evidence.records import coverages, pauses, processed_counts


def batch(first, last, *, partition=0, member="a", began_ms=0.0, done_ms=None):
    event = RecordsProcessed(
        partition=partition, first_offset=first, last_offset=last, began_ms=began_ms
    )
    at_ms = began_ms if done_ms is None else done_ms
    return Report(member=member, incarnation=0, at_ms=at_ms, event=event)


def only(found):
    (coverage,) = found
    return coverage


def test_contiguous_batches_cover_a_partition():
    coverage = only(coverages([batch(0, 3), batch(4, 9)], produced={0: 10}))
    assert (coverage.missing, coverage.duplicates) == ((), 0)


def test_holes_are_found_at_the_start_in_the_middle_and_at_the_end():
    coverage = only(coverages([batch(2, 3), batch(6, 7)], produced={0: 10}))
    assert coverage.missing == ((0, 1), (4, 5), (8, 9))
    assert coverage.missing_records == 6


def test_a_partition_that_nobody_read_is_missing_whole():
    assert only(coverages([], produced={4: 3})).missing == ((0, 2),)


def test_records_processed_again_are_counted_once_per_time():
    reports = [batch(0, 5), batch(3, 8), batch(3, 4)]
    coverage = only(coverages(reports, produced={0: 9}))
    assert (coverage.missing, coverage.duplicates) == ((), 3 + 2)


def test_processed_counts_know_the_highest_offset():
    assert processed_counts([batch(0, 5), batch(3, 4)]) == {0: 6}


def test_a_pause_is_the_wait_of_a_written_record():
    reports = [batch(0, 0, began_ms=0, done_ms=1), batch(1, 2, began_ms=500)]
    pause = only(pauses(reports, written_ms={0: (0, 100, 450)}))
    assert (pause.offset, pause.pause_ms) == (1, 400)


def test_a_partition_without_traffic_does_not_pause():
    reports = [batch(0, 0, began_ms=0), batch(1, 1, began_ms=900)]
    assert only(pauses(reports, written_ms={0: (0, 899)})).pause_ms == 1


def test_a_record_written_while_the_batch_before_ran_waits_from_its_end():
    reports = [batch(0, 0, began_ms=0, done_ms=50), batch(1, 1, began_ms=60)]
    assert only(pauses(reports, written_ms={0: (0, 10)})).pause_ms == 10


def test_processing_again_does_not_end_a_pause():
    reports = [
        batch(0, 4, began_ms=0),
        batch(2, 4, began_ms=100, member="b"),
        batch(5, 5, began_ms=300, member="b"),
    ]
    pause = only(pauses(reports, written_ms={0: (0,) * 5 + (10,)}))
    assert (pause.offset, pause.pause_ms) == (5, 200)
