"""A partition keeps the received bytes and returns them from any offset."""

import struct

import pytest
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from system_tests.broker import partition_log
from system_tests.broker.partition_log import PartitionLog
from system_tests.broker.transactions import control_batch, transactional_batch

CODECS = {"none": 0, "gzip": 1, "lz4": 3}


def batch(*values, producer=(-1, -1, -1), codec=0, first_ms=1_000):
    builder = MemoryRecordsBuilder(2, codec, 1_000_000)
    if producer[0] >= 0:
        builder.set_producer_state(*producer, is_transactional=False)
    for number, value in enumerate(values):
        builder.append(timestamp=first_ms + number, key=None, value=value, headers=[])
    builder.close()
    return bytes(builder.buffer())


def values_in(data):
    records = MemoryRecords(data)
    found = []
    while (opened := records.next_batch()) is not None:
        found += [(record.offset, record.value) for record in opened]
    return found


@pytest.fixture
def log():
    return PartitionLog(max_batch_bytes=100_000)


def test_offsets_are_rewritten_and_the_records_come_back_in_order(log):
    assert log.append(batch(b"a", b"b")).base_offset == 0
    assert log.append(batch(b"c")).base_offset == 2
    data = log.read(0, 10_000, at_least_one=True)
    assert values_in(data) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.end_offset == 3


def test_a_read_from_inside_a_batch_begins_with_that_whole_batch(log):
    log.append(batch(b"a"))
    log.append(batch(b"b", b"c"))
    assert [o for o, _ in values_in(log.read(2, 10_000, at_least_one=True))] == [1, 2]
    assert log.read(3, 10_000, at_least_one=True) == b""


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_batches_pass_through_compressed_as_they_came(log, codec):
    data = batch(*[b"same value"] * 50, codec=CODECS[codec])
    log.append(batch(b"before"))
    log.append(data)
    stored = log.read(1, 100_000, at_least_one=True)
    assert stored[16:] == data[16:]
    assert len(values_in(stored)) == 50


def test_the_first_batch_is_read_whole_even_if_it_is_too_large(log):
    log.append(batch(b"x" * 500))
    log.append(batch(b"y"))
    assert [v for _, v in values_in(log.read(0, 10, at_least_one=True))] == [b"x" * 500]
    assert log.read(0, 10, at_least_one=False) == b""


def broken(at, value):
    data = bytearray(batch(b"a", b"b"))
    data[at : at + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", partition_log.CORRUPT_MESSAGE),
        (b"\0" * 60, partition_log.CORRUPT_MESSAGE),
        (broken(16, b"\1"), partition_log.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (broken(8, b"\0\0\0\1"), partition_log.INVALID_RECORD),
        (batch(b"a") + batch(b"b"), partition_log.INVALID_RECORD),
        (broken(57, struct.pack(">i", 5)), partition_log.INVALID_RECORD),
        (broken(65, b"\7"), partition_log.CORRUPT_MESSAGE),
        (batch(b"x" * 100_000), partition_log.MESSAGE_TOO_LARGE),
    ],
)
def test_an_invalid_batch_is_refused_and_not_stored(log, data, error):
    appended = log.append(data)
    assert (appended.error, appended.base_offset) == (error, -1)
    assert appended.message
    assert log.end_offset == 0


class TestIdempotence:
    def test_repeated_batch_is_stored_once_and_answered_as_before(self, log):
        first = log.append(batch(b"a", b"b", producer=(7, 0, 0)))
        log.append(batch(b"c", producer=(7, 0, 2)))
        assert log.append(batch(b"a", b"b", producer=(7, 0, 0))) == first
        assert log.end_offset == 3

    def test_gap_in_the_sequence_is_refused(self, log):
        log.append(batch(b"a", producer=(7, 0, 0)))
        appended = log.append(batch(b"c", producer=(7, 0, 2)))
        assert appended.error == partition_log.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_old_epoch_is_refused_and_a_new_one_starts_at_zero(self, log):
        log.append(batch(b"a", producer=(7, 1, 0)))
        old = log.append(batch(b"b", producer=(7, 0, 1)))
        late = log.append(batch(b"b", producer=(7, 2, 5)))
        new = log.append(batch(b"b", producer=(7, 2, 0)))
        assert old.error == partition_log.INVALID_PRODUCER_EPOCH
        assert late.error == partition_log.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert new.error == 0

    def test_sequence_wraps_after_two_to_the_31(self, log):
        log.append(batch(b"a", producer=(7, 0, 2**31 - 1)))
        assert log.append(batch(b"b", producer=(7, 0, 0))).error == 0

    def test_producers_are_independent(self, log):
        for producer_id in (1, 2):
            assert log.append(batch(b"a", producer=(producer_id, 0, 0))).error == 0


def test_the_first_record_at_or_after_a_time_is_found(log):
    log.append(batch(b"a", b"b", b"c", first_ms=100))
    log.append(batch(b"d", first_ms=200, codec=1))
    assert log.find_timestamp(0) == (0, 100)
    assert log.find_timestamp(101) == (1, 101)
    assert log.find_timestamp(103) == (3, 200)
    assert log.find_timestamp(201) == (-1, -1)
    assert log.max_timestamp() == (3, 200)
    assert PartitionLog(1).max_timestamp() == (-1, -1)


def test_epochs_end_where_the_next_leader_began(log):
    log.append(batch(b"a"))
    log.new_leader()
    log.append(batch(b"b", b"c"))
    assert log.leader_epoch == 1
    assert log.epoch_end(0) == (0, 1)
    assert log.epoch_end(1) == (1, 3)
    assert log.epoch_end(9) == (1, 3)
    assert log.epoch_end(-1) == (-1, -1)


def test_without_a_limit_nothing_is_ever_dropped(log):
    for number in range(200):
        log.append(batch(b"value %d" % number))
    assert log.start_offset == 0
    assert len(values_in(log.read(0, 1_000_000, at_least_one=True))) == 200


def test_old_batches_go_when_enough_is_left_without_them():
    size = len(batch(b"value"))
    log = PartitionLog(100_000, retention_bytes=10 * size)
    for number in range(1_000):
        appended = log.append(batch(b"value"))
        assert appended.base_offset == number
        kept = values_in(log.read(log.start_offset, 1_000_000, at_least_one=True))
        assert min(number + 1, 10) <= len(kept) <= 14
        assert [offset for offset, _ in kept] == list(range(log.start_offset, number + 1))
    assert appended.start_offset == log.start_offset >= 986
    assert log.end_offset == 1_000


def test_a_time_before_the_first_kept_record_finds_that_record():
    size = len(batch(b"value"))
    log = PartitionLog(100_000, retention_bytes=2 * size)
    for number in range(50):
        log.append(batch(b"value", first_ms=1_000 + number))
    assert log.find_timestamp(0) == (log.start_offset, 1_000 + log.start_offset)


class TestTransactions:
    """Transactions as data; system_tests/scenarios/real/test_input.py has real brokers' answers."""

    def test_the_last_stable_offset_is_that_of_the_first_open_transaction(self):
        log = PartitionLog(10_000)
        log.append(transactional_batch([b"a", b"b"], producer_id=1))
        log.append(transactional_batch([b"c"], producer_id=2))
        assert (log.end_offset, log.stable_end_offset) == (3, 0)
        log.append(control_batch(producer_id=1, is_commit=True))
        assert (log.end_offset, log.stable_end_offset) == (4, 2)
        assert log.read(0, 10_000, at_least_one=True, end_offset=2)
        assert not log.read(2, 10_000, at_least_one=True, end_offset=2)
        log.append(control_batch(producer_id=2, is_commit=False))
        assert (log.end_offset, log.stable_end_offset) == (5, 5)

    def test_aborted_transactions_are_those_with_records_or_marker_in_the_range(self):
        log = PartitionLog(10_000)
        for producer_id, is_commit in ((1, False), (2, True), (3, False)):
            log.append(transactional_batch([b"a"], producer_id=producer_id))
            log.append(control_batch(producer_id=producer_id, is_commit=is_commit))

        def aborted(start, end):
            found = log.transactions.aborted(start, end)
            return [(each.producer_id, each.first_offset, each.last_offset) for each in found]

        assert aborted(0, 6) == [(1, 0, 1), (3, 4, 5)]
        assert aborted(1, 4) == [(1, 0, 1)]
        assert aborted(2, 4) == []
        assert aborted(5, 6) == [(3, 4, 5)]

    def test_a_marker_of_an_empty_transaction_aborts_nothing(self):
        log = PartitionLog(10_000)
        log.append(control_batch(producer_id=1, is_commit=False))
        assert (log.stable_end_offset, log.transactions.aborted(0, 9)) == (1, [])
