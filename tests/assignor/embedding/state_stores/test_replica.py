"""Records of a changelog become entries; a changelog that cannot complete them begins anew."""

import time
from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    NOBODY,
    OWNER_HEADER,
    OWNER_KEY,
    Commit,
    Owner,
    commit_bytes,
    owned_record,
    owner_of,
    read_commit,
)
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import REBUILD_AFTER_S, DictTable, Moment
from assignor.stores import StoreError
from encoding import TopicPartition

CHANGELOG = TopicPartition("app-counts-changelog", 1)
FIRST, SECOND = Owner(1, b"11111111"), Owner(2, b"00000000")


def record(offset, key, value, owner=FIRST):
    made = owned_record(CHANGELOG, key, value, owner)
    return read_record(offset, key, value, made.headers)


def read_record(offset, key, value, headers):
    return SimpleNamespace(
        offset=offset, key=key, value=value, headers=headers and list(headers), timestamp=-1
    )


@pytest.fixture
def replica():
    return Replica("counts", CHANGELOG, DictTable("counts"))


def test_writes_owners_and_commits_are_kept_apart(replica):
    replica.restore(
        [
            record(3, OWNER_KEY, b""),
            record(4, COMMIT_KEY, commit_bytes(Commit(number=5))),
            record(5, b"one", b"1"),
            record(7, b"two", b"2"),
            record(9, b"one", None),
        ]
    )
    assert dict(replica.table.items()) == {b"two": b"2"}
    assert (replica.position, replica.owner, replica.commit.number) == (10, FIRST, 5)
    assert (replica.restored, replica.unowned) == (2, set())


def test_records_of_an_earlier_owner_do_not_count_and_are_remembered(replica):
    commit = commit_bytes(Commit(number=5))
    replica.restore([record(0, b"one", b"1"), record(1, OWNER_KEY, b"", SECOND)])
    replica.restore([record(2, b"one", b"late"), record(3, COMMIT_KEY, commit)])
    replica.restore([record(4, b"two", b"2", SECOND)])
    assert dict(replica.table.items()) == {b"one": b"1", b"two": b"2"}
    assert replica.commit == Commit()
    assert list(replica.repairs({})) == [(b"one", b"1")]
    assert dict(replica.repairs({b"one": b"newer"}))[b"one"] == b"newer"


def test_records_of_other_programs_count_until_a_task_has_run(replica):
    plain = read_record(0, b"one", b"1", ())
    replica.restore([plain, record(1, OWNER_KEY, b"")])
    replica.restore([read_record(2, b"one", b"2", None)])
    replica.restore([read_record(3, None, b"2", ())])
    assert dict(replica.table.items()) == {b"one": b"1"}
    assert replica.unowned == {b"one"}
    assert replica.position == 4, "a record without a key is read, too"


def test_records_below_the_position_are_skipped(replica):
    replica.restore([record(5, b"one", b"1")])
    replica.restore([record(2, b"one", b"old"), record(6, b"two", b"2")])
    assert dict(replica.table.items()) == {b"one": b"1", b"two": b"2"}


@pytest.mark.parametrize(
    "value", [b"", b"1234567", bytes(16), b"\xff" * 16, b"\x00" * 7 + b"\x01" + b"1234567"]
)
def test_an_invalid_owner_is_no_owner(value):
    assert owner_of([("other", b""), (OWNER_HEADER, value)]) == NOBODY


@pytest.mark.parametrize(
    ("start", "end", "position"),
    [(0, 10, 10), (0, 12, 10), (10, 10, 10), (0, 9, 0), (11, 12, 11), (0, 0, 0), (3, 5, 3)],
)
def test_a_copy_that_the_changelog_cannot_complete_is_rebuilt(replica, start, end, position):
    replica.restore([record(9, b"one", b"1")])
    replica.check_range(start, end)
    assert replica.position == position
    assert dict(replica.table.items()) == ({b"one": b"1"} if position == 10 else {})


def test_a_new_copy_begins_where_the_changelog_does(replica):
    replica.check_range(7, 7)
    assert replica.position == 7
    replica.check_range(7, 9)
    assert replica.position == 7


def test_a_copy_of_a_changelog_that_was_made_anew_is_rebuilt_though_it_is_longer(tmp_path, caplog):
    caplog.set_level("INFO")
    path, (first, second) = tmp_path / "file", (UUID(int=1), UUID(int=2))

    def opened():
        return Replica("counts", CHANGELOG, SqliteTable(path, CHANGELOG))

    replica = opened()
    replica.restore([record(9, b"one", b"1")])
    begun_ms = replica.table.progress.complete_ms
    for topic_id in (None, first, None, first):
        replica.check_range(0, 12, topic_id)
        assert (replica.position, replica.table.get(b"one")) == (10, b"1")
        replica.table.close()
        replica = opened()
    assert replica.table.progress.topic_id == first
    assert replica.table.progress.complete_ms == begun_ms, "it was not brought up to date"
    replica.restore([record(10, b"two", b"2")])
    assert replica.table.progress.topic_id == first
    replica.check_range(0, 12, second)
    assert "is rebuilt: the changelog was deleted and made anew" in caplog.text
    assert (replica.position, dict(replica.table.items())) == (0, {})
    replica.written({b"one": b"3"}, position=1, owner=SECOND, begun=Moment.now())
    replica.table.close()
    replica = opened()
    assert (replica.table.progress.topic_id, replica.position) == (second, 1)
    replica.table.close()


def with_time(replica, ahead_s):
    """The same copy, opened by another process; its time is this many seconds from now."""
    replica.restore([record(9, b"one", b"1")])
    then_ms = round((time.time() + ahead_s) * 1000)
    replica.table.progress = replace(replica.table.progress, complete_ms=then_ms)
    return Replica("counts", CHANGELOG, replica.table)


def read_on(replica, end):
    """Read what there is up to an offset, as a reader of changelogs does."""
    replica.check_range(0, end)
    if end > replica.position:
        replica.restore([record(end - 1, b"two", b"2")])
    if replica.needs_check:
        replica.check_range(0, end)


@pytest.mark.parametrize(
    ("end", "ahead_s", "is_kept"), [(10, 7200, True), (11, 7200, False), (11, 30, True)]
)
def test_a_copy_from_the_future_is_rebuilt(replica, end, ahead_s, is_kept):
    replica = with_time(replica, ahead_s)
    read_on(replica, end)
    assert (replica.table.get(b"one") == b"1") is is_kept


def test_a_key_that_its_owner_wrote_again_needs_no_repair(replica):
    replica.restore([record(0, OWNER_KEY, b"", SECOND), record(1, b"one", b"late")])
    replica.restore([record(2, b"two", b"late"), record(3, b"one", b"1", SECOND)])
    assert replica.unowned == {b"two"}


def test_keys_to_repair_are_kept_with_the_position(tmp_path):
    path = tmp_path / "file"
    replica = Replica("counts", CHANGELOG, SqliteTable(path, CHANGELOG))
    replica.restore([record(0, b"one", b"1"), record(1, OWNER_KEY, b"", SECOND)])
    replica.restore([record(2, b"one", b"late"), record(3, b"two", b"late")])
    replica.table.close()
    replica = Replica("counts", CHANGELOG, SqliteTable(path, CHANGELOG))
    assert replica.position == 4
    assert dict(replica.repairs({})) == {b"one": b"1", b"two": None}
    replica.written({b"one": b"1"}, position=5, owner=SECOND, begun=Moment.now())
    replica.table.close()
    replica = Replica("counts", CHANGELOG, SqliteTable(path, CHANGELOG))
    assert replica.unowned == {b"two"}
    replica.check_range(6, 6)
    replica.table.close()
    replica = Replica("counts", CHANGELOG, SqliteTable(path, CHANGELOG))
    assert (replica.position, replica.unowned) == (6, set())
    replica.table.close()


@pytest.mark.parametrize(("end", "is_kept"), [(10, True), (11, False)])
def test_a_copy_that_may_have_missed_tombstones_is_rebuilt(replica, end, is_kept):
    replica = with_time(replica, -REBUILD_AFTER_S - 60)
    read_on(replica, end)
    assert (replica.table.get(b"one") == b"1") is is_kept


def test_offsets_in_between_are_noticed(replica):
    replica.restore([record(9, b"one", b"1")])
    assert replica.is_next([])
    assert replica.is_next([10, 11])
    assert replica.is_next([12, 11], after=1)
    assert not replica.is_next([11])
    assert not replica.is_next([10, 12])
    assert not replica.is_next([-1])
    assert not replica.is_next([10, 10])


COMMIT = Commit(
    epoch=2,
    number=3,
    inputs={TopicPartition("orders", 1): 12},
    writes={"counts": {b"one": b"1", b"two": None}},
)


def test_commits_are_read_as_they_were_written():
    assert read_commit(commit_bytes(COMMIT), name="record") == COMMIT
    assert read_commit(b"", name="record") == Commit()
    assert read_commit(None, name="record") == Commit()


@pytest.mark.parametrize("at", range(len(commit_bytes(COMMIT))))
def test_a_truncated_commit_is_one_sentence(at):
    if at:
        with pytest.raises(StoreError, match="record is not a valid commit record"):
            read_commit(commit_bytes(COMMIT)[:at], name="record")


@pytest.mark.parametrize(
    "value",
    [
        b"\xc0",
        b"\x94\x01\x00\x90\x80",
        b"\x95\x02\x00\x00\x90\x80",
        b"\x95\x01\xff\x00\x90\x80",
        b"\x95\x01\x00\xff\x90\x80",
        b"\x95\x01\x00\x00\x91\x93\xa1a\x00\xff\x80",
        b"\x95\x01\x00\x00\x90\x81\xa1a\x91\x92\xa1a\xc0",
        b"\x95\x01\x00\x00\x90\x81\x01\x90",
    ],
)
def test_a_commit_of_another_program_is_one_sentence(value):
    with pytest.raises(StoreError, match="does another program write to this changelog"):
        read_commit(value, name="record")
