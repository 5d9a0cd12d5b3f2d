"""How old a copy may be: no deleted key stays, whatever interrupts a restore.

The changelog here is compacted as by a broker: a tombstone is removed 24 hours after the compaction
that has first removed what it deletes.
"""

from contextlib import closing
from types import SimpleNamespace

import pytest

from assignor.embedding.state_stores import tables
from assignor.embedding.state_stores.records import Owner
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import REBUILD_AFTER_S, Moment, rebuild_after_s
from encoding import TopicPartition

CHANGELOG = TopicPartition("app-counts-changelog", 0)
HOUR_S = 3600
KEPT_S = 24 * HOUR_S
KEYS = (b"alive", b"dead", *(b"%02d" % number for number in range(40)))


class Clock:
    """Both clocks of a machine; a test moves them."""

    def __init__(self):
        self.real_s, self.ahead_s = 1_800_000_000, 0

    def time_ns(self):
        return (self.real_s + self.ahead_s) * 1_000_000_000

    def monotonic(self):
        return self.real_s - 1_700_000_000


@pytest.fixture
def machine(monkeypatch):
    """The machine that has the copy."""
    moved = Clock()
    monkeypatch.setattr(tables, "time", moved)
    return moved


class Changelog:
    """A changelog with records of an owner whose clock is right."""

    def __init__(self, clock):
        self.clock, self.records, self.end, self.compacted = clock, [], 0, {}
        for key in KEYS:
            self.put(key, b"1")

    def put(self, key, value):
        record = SimpleNamespace(
            offset=self.end, key=key, value=value, headers=(), timestamp=self.clock.real_s * 1000
        )
        self.records, self.end = [*self.records, record], self.end + 1

    def delete_dead(self):
        self.put(b"dead", None)
        self.put(b"new", b"5")

    def pass_hours(self, hours):
        """Let time pass, with a compaction before and after it."""
        self.compact()
        self.clock.real_s += round(hours * HOUR_S)
        self.compact()

    def compact(self):
        last = {record.key: record.offset for record in self.records}
        kept = [record for record in self.records if last[record.key] == record.offset]
        for record in kept:
            if record.value is None:
                self.compacted.setdefault(record.offset, self.clock.real_s)
        gone = {o for o, at_s in self.compacted.items() if self.clock.real_s - at_s > KEPT_S}
        self.records = [record for record in kept if record.offset not in gone]

    def state(self):
        return {record.key: record.value for record in self.records if record.value is not None}


class EarlyChangelog(Changelog):
    """Its broker removes tombstones 24 hours after they were written, as those before 3.1 do."""

    def compact(self):
        tombstones = [record for record in self.records if record.value is None]
        self.compacted.update({each.offset: each.timestamp // 1000 for each in tombstones})
        super().compact()


class Reader:
    """Reads a changelog into a copy, as `ChangelogReader` does; `open` begins a new process."""

    def __init__(self, log, path):
        self.log, self.path, self.replica = log, path, None
        self.open()

    def open(self):
        self.close()
        self.replica = Replica("counts", CHANGELOG, SqliteTable(self.path, CHANGELOG))
        self.is_followed = False

    def close(self):
        if self.replica is not None:
            self.replica.table.close()

    def read(self, most, *, while_asking=lambda: None, while_polling=lambda: None):
        if not self.is_followed or self.replica.needs_check:
            asked_ms, end = Moment.now().wall_ms, self.log.end
            while_asking()
            self.replica.check_range(0, end, None, asked_ms)
            self.is_followed = True
        while_polling()
        records = [r for r in self.log.records if r.offset >= self.replica.position][:most]
        if records:
            self.replica.restore(records)
        return len(records)

    def finish(self, **events):
        """Read to the end, from the beginning if the copy begins anew."""
        while self.read(100, **events):
            events = {}
        return dict(self.replica.table.items())


@pytest.fixture
def log(machine):
    return Changelog(machine)


@pytest.fixture
def reader(log, tmp_path):
    made = Reader(log, tmp_path / "counts.db")
    yield made
    made.close()


def test_a_restore_that_is_interrupted_again_and_again_keeps_no_deleted_key(log, reader):
    """Each part that was read made the copy young again."""
    reader.read(3)
    log.delete_dead()
    for _ in range(4):
        log.pass_hours(11)
        reader.open()
        reader.read(5)
    assert reader.finish() == log.state()


@pytest.mark.parametrize("hours", [11, 13, 25])
@pytest.mark.parametrize("most", [3, 100], ids=["a part", "everything"])
def test_kafka_8522_a_broker_that_removes_tombstones_by_their_own_age_brings_no_key_back(
    machine, tmp_path, hours, most
):
    """KAFKA-4545, too: the time does not begin with the compaction that removes the values."""
    log = EarlyChangelog(machine)
    reader = Reader(log, tmp_path / "counts.db")
    with closing(reader):
        reader.read(most)
        machine.real_s += HOUR_S
        log.delete_dead()
        for _ in range(3):
            log.pass_hours(hours)
            reader.open()
            reader.read(5)
        assert reader.finish() == log.state()


@pytest.mark.parametrize("hours", [13, 26, 72])
def test_a_process_that_was_suspended_keeps_no_deleted_key(log, reader, hours):
    """Its copy stays open, so that it was checked only when it was opened."""
    reader.finish()
    log.delete_dead()
    log.pass_hours(hours)
    assert reader.finish() == log.state()


def test_a_process_that_was_suspended_in_a_poll_applies_nothing_of_what_comes(log, reader):
    """The records behind the missing tombstones come without another look at the offsets."""
    reader.finish()
    log.delete_dead()
    assert reader.finish(while_polling=lambda: log.pass_hours(72)) == log.state()


def test_a_process_that_was_suspended_while_it_asked_is_as_old_as_its_question(log, reader):
    reader.finish()
    log.pass_hours(2)

    def suspended():
        log.delete_dead()
        log.pass_hours(72)

    assert reader.finish(while_asking=suspended) == log.state()


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_owner_that_was_suspended_while_it_wrote_is_as_old_as_its_write(
    log, reader, is_restarted
):
    reader.finish()
    begun = Moment.now()
    log.put(b"own", b"1")
    position = log.end
    log.delete_dead()
    log.pass_hours(72)
    owner = Owner(1, b"12345678")
    reader.replica.written({b"own": b"1"}, position=position, owner=owner, begun=begun)
    reader.is_followed = False
    if is_restarted:
        reader.open()
    assert reader.finish() == log.state()


def test_a_standby_that_reads_on_all_the_time_is_never_rebuilt(log, reader):
    reader.finish()
    for number in range(60):
        log.put(b"%02d" % (number % 40), b"2")
        log.pass_hours(1)
        reader.read(100)
    assert reader.replica.restored == len(KEYS) + 60
    assert reader.finish() == log.state()


def test_the_age_is_that_of_the_last_time_at_which_the_copy_was_complete(log, reader):
    def complete_h():
        at_ms = reader.replica.table.progress.complete_ms
        return at_ms / 1000 / HOUR_S - first_h

    first_h = 0
    reader.finish()
    first_h = complete_h()
    log.put(b"one", b"1")
    log.put(b"two", b"1")
    log.pass_hours(2)
    reader.read(1)
    assert complete_h() == 0
    reader.read(1, while_polling=lambda: log.pass_hours(1))
    assert complete_h() == 2, "when the end was asked for"
    begun, owner = Moment.now(), Owner(1, b"12345678")
    log.pass_hours(1)
    reader.replica.written({b"three": b"1"}, position=log.end, owner=owner, begun=begun)
    assert complete_h() == 3


def test_a_first_restore_has_as_long_as_deletions_are_surely_kept(log, reader):
    """18 of 24 hours: it has no keys that were deleted before it began."""
    for _ in range(16):
        reader.read(1)
        log.pass_hours(1)
    log.delete_dead()
    log.pass_hours(1)
    assert reader.finish() == log.state()
    assert reader.replica.restored == len(KEYS) + 2


def test_a_restore_that_takes_longer_than_deletions_are_kept_is_begun_anew_once(
    log, reader, caplog
):
    for _ in range(80):
        reader.read(1)
        log.pass_hours(1)
    assert reader.replica.position == log.end
    assert len(KEYS) < reader.replica.restored < 80
    assert "about as long as its deletions are kept" in caplog.text
    assert "raise its delete.retention.ms" in caplog.text
    # It is complete now, so that it is judged as any other.
    log.delete_dead()
    log.pass_hours(72)
    assert reader.finish() == log.state()


@pytest.mark.parametrize(("ahead_h", "hours"), [(20, 30), (15, 26), (4, 25), (-20, 30)])
def test_a_clock_that_was_wrong_when_the_copy_was_written_keeps_no_deleted_key(
    machine, log, reader, ahead_h, hours
):
    """The file's time is that of a wrong clock, and the clock is right when it is opened."""
    machine.ahead_s = ahead_h * HOUR_S
    reader.finish()
    log.pass_hours(1)
    log.delete_dead()
    log.pass_hours(hours - 1)
    machine.ahead_s = 0
    reader.open()
    assert reader.finish() == log.state()


def test_a_clock_that_is_late_when_the_copy_is_opened_keeps_no_deleted_key(machine, log, reader):
    reader.finish()
    log.pass_hours(1)
    log.delete_dead()
    log.pass_hours(29)
    log.put(b"newer", b"1")
    machine.ahead_s = -20 * HOUR_S
    reader.open()
    assert reader.finish() == log.state()


@pytest.mark.parametrize("ahead_h", [-2, 2])
def test_a_clock_that_is_a_little_wrong_costs_nothing(machine, log, reader, ahead_h):
    reader.finish()
    log.pass_hours(3)
    log.put(b"more", b"1")
    machine.ahead_s = ahead_h * HOUR_S
    reader.open()
    assert reader.finish() == log.state()
    assert reader.replica.restored == 1


@pytest.mark.parametrize("ahead_h", [-20, 20])
def test_an_owner_with_a_wrong_clock_costs_one_restoration_a_start_and_no_more(
    machine, log, reader, ahead_h
):
    """The records' times are wrong by this, the copy's are right."""
    reader.finish()
    log.pass_hours(1)
    restored = []
    for _ in range(2):
        reader.open()
        for _ in range(5):
            log.put(b"more", b"1")
            log.records[-1].timestamp += ahead_h * HOUR_S * 1000
            reader.finish()
        restored.append(reader.replica.restored)
    assert restored[0] == len(KEYS) + 1 + 4
    assert reader.finish() == log.state()


def test_a_clock_that_is_set_back_while_the_process_runs_costs_nothing(machine, log, reader):
    machine.ahead_s = 20 * HOUR_S
    reader.finish()
    machine.ahead_s = 0
    for _ in range(3):
        log.put(b"more", b"1")
        log.pass_hours(2)
        reader.read(100)
    assert reader.replica.restored == len(KEYS) + 3
    assert reader.replica.table.progress.complete_ms == machine.real_s * 1000
    log.delete_dead()
    log.pass_hours(72)
    assert reader.finish() == log.state()


def test_half_of_the_time_that_deletions_are_kept_is_the_limit():
    assert REBUILD_AFTER_S * 2 == KEPT_S
    assert rebuild_after_s(7_200_000) == HOUR_S
