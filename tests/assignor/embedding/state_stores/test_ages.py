"""How old a copy may be: no deleted key stays, whatever interrupts a restore.

The changelog here is compacted as by a broker: a tombstone is removed 24 hours after the compaction
that has first removed what it deletes.
"""

import sqlite3
import time
from contextlib import closing
from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor.embedding.state_stores import replica as replica_module
from assignor.embedding.state_stores.records import Owner
from assignor.embedding.state_stores.replica import REBUILD_AFTER_S, Replica
from assignor.embedding.state_stores.sqlite import SqliteTable
from encoding import TopicPartition

CHANGELOG = TopicPartition("app-counts-changelog", 0)
HOUR_S = 3600
KEPT_S = 24 * HOUR_S


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now_s = 1_800_000_000

    def time_ns(self):
        return self.now_s * 1_000_000_000


@pytest.fixture
def clock_of_replicas(monkeypatch):
    """The time that copies see."""
    moved = Clock()
    monkeypatch.setattr(replica_module, "time", moved)
    return moved


class Changelog:
    """A changelog of which `dead` is deleted, after a copy has read it."""

    def __init__(self, clock):
        self.clock, self.records, self.end, self.compacted = clock, [], 0, {}
        for key in (b"alive", b"dead", *(b"%02d" % number for number in range(40))):
            self.put(key, b"1")

    def put(self, key, value):
        record = SimpleNamespace(offset=self.end, key=key, value=value, headers=())
        self.records, self.end = [*self.records, record], self.end + 1

    def pass_hours(self, hours):
        """Let time pass, with a compaction before and after it."""
        self.compact()
        self.clock.now_s += round(hours * HOUR_S)
        self.compact()

    def compact(self):
        last = {record.key: record.offset for record in self.records}
        kept = [record for record in self.records if last[record.key] == record.offset]
        for record in kept:
            if record.value is None:
                self.compacted.setdefault(record.offset, self.clock.now_s)
        gone = {o for o, since_s in self.compacted.items() if self.clock.now_s - since_s > KEPT_S}
        self.records = [record for record in kept if record.offset not in gone]

    def state(self):
        return {record.key: record.value for record in self.records if record.value is not None}


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

    def read(self, most):
        if not self.is_followed or self.replica.needs_check:
            self.replica.check_range(0, self.log.end)
            self.is_followed = True
        records = [r for r in self.log.records if r.offset >= self.replica.position][:most]
        if records:
            self.replica.restore(records)
        return len(records)

    def finish(self):
        """Read to the end; twice, as the first call may begin anew."""
        for _ in range(2):
            while self.read(100):
                pass
        return dict(self.replica.table.items())


@pytest.fixture
def log(clock_of_replicas):
    return Changelog(clock_of_replicas)


@pytest.fixture
def reader(log, tmp_path):
    made = Reader(log, tmp_path / "counts.db")
    yield made
    made.close()


def delete_dead(log):
    log.put(b"dead", None)
    log.put(b"new", b"5")


def test_a_restore_that_is_interrupted_again_and_again_keeps_no_deleted_key(log, reader):
    """Each part that was read made the copy young again."""
    reader.read(3)
    delete_dead(log)
    for _ in range(4):
        log.pass_hours(11)
        reader.open()
        reader.read(5)
    assert reader.finish() == log.state()


@pytest.mark.parametrize("hours", [13, 26, 72])
def test_a_process_that_was_suspended_keeps_no_deleted_key(log, reader, hours):
    """Its copy stays open, so that it was checked only when it was opened."""
    reader.finish()
    delete_dead(log)
    log.pass_hours(hours)
    assert reader.finish() == log.state()


def test_a_standby_that_reads_on_all_the_time_is_never_rebuilt(log, reader):
    reader.finish()
    for number in range(60):
        log.put(b"%02d" % (number % 40), b"2")
        log.pass_hours(1)
        reader.read(100)
    assert reader.replica.restored == 42 + 60
    assert reader.finish() == log.state()


def test_the_age_is_that_of_the_last_time_at_which_the_copy_was_complete(log, reader):
    reader.finish()
    complete_ms = reader.replica.table.progress.complete_ms
    log.put(b"one", b"1")
    log.put(b"two", b"1")
    log.pass_hours(2)
    reader.read(1)
    assert reader.replica.table.progress.complete_ms == complete_ms
    reader.read(1)
    assert reader.replica.table.progress.complete_ms == complete_ms + 2 * HOUR_S * 1000
    log.pass_hours(1)
    reader.replica.written({b"three": b"1"}, position=log.end + 1, owner=Owner(1, b"12345678"))
    assert reader.replica.table.progress.complete_ms == complete_ms + 3 * HOUR_S * 1000


def test_a_restore_that_takes_longer_than_deletions_are_kept_is_begun_anew_once(
    log, reader, caplog
):
    for _ in range(80):
        reader.read(1)
        log.pass_hours(1)
    assert reader.replica.position == log.end
    assert caplog.text.count("longer than its deletions are kept") > 0
    assert "raise its delete.retention.ms" in caplog.text
    assert reader.replica.restored < 80


SCHEMA = """
    create table items (key blob primary key, value blob not null) without rowid;
    create table progress (
        topic text not null, partition integer not null, position integer not null,
        epoch integer not null, process blob not null, last_commit blob not null,
        saved_ms integer not null
    );
    create table unowned (key blob primary key) without rowid;
    create table topic (id blob not null);
"""
"""The tables of a file as the releases before wrote it, where `saved_ms` was the last write."""


def earlier_file(path, *, position, saved_ms):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.executescript(
            SCHEMA + f"pragma application_id = {0x53524253}; pragma user_version = 1;"
        )
        connection.execute("insert into items values (?, ?)", (b"dead", b"1"))
        connection.execute("insert into unowned values (?)", (b"hidden",))
        connection.execute("insert into topic values (?)", (UUID(int=7).bytes,))
        row = (*CHANGELOG, position, 3, b"12345678", b"", saved_ms)
        connection.execute("insert into progress values (?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()


@pytest.mark.parametrize(("hours", "is_kept"), [(11, True), (13, False)])
def test_a_file_of_an_earlier_release_is_read_and_its_age_is_that_of_its_last_write(
    log, tmp_path, hours, is_kept
):
    path = tmp_path / "earlier.db"
    saved_ms = (log.clock.now_s - hours * HOUR_S) * 1000
    earlier_file(path, position=2, saved_ms=saved_ms)
    with closing(SqliteTable(path, CHANGELOG)) as table:
        copy = Replica("counts", CHANGELOG, table)
        assert (copy.owner, copy.unowned) == (Owner(3, b"12345678"), {b"hidden"})
        assert table.progress.topic_id == UUID(int=7)
        copy.check_range(0, log.end, UUID(int=7))
        assert copy.position == (2 if is_kept else 0)
        assert (table.get(b"dead") == b"1") is is_kept
        if is_kept:
            assert table.progress.complete_ms == saved_ms


def test_an_earlier_release_reads_the_file_and_takes_no_copy_for_younger_than_it_is(log, reader):
    reader.read(3)
    begun_ms = log.clock.now_s * 1000
    log.pass_hours(1)
    reader.read(3)
    reader.close()
    with closing(sqlite3.connect(reader.path)) as connection:
        statements = {
            " ".join(row[0].split())
            for row in connection.execute("select sql from sqlite_master where sql is not null")
        }
        [saved_ms] = connection.execute("select saved_ms from progress").fetchone()
    wanted = {" ".join(each.split()) for each in SCHEMA.lower().split(";") if each.strip()}
    assert {each.lower() for each in statements} == wanted
    assert saved_ms == begun_ms


def test_half_of_the_time_that_deletions_are_kept_is_the_limit():
    assert REBUILD_AFTER_S * 2 == KEPT_S
    assert replica_module.rebuild_after_s(7_200_000) == HOUR_S
    assert time.time_ns() > 0
