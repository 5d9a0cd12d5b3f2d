"""A store's file: damaged, foreign, locked, of another task; both writes or neither."""

import os
import resource
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor.embedding import StoreNotHeld
from assignor.embedding.state_stores.records import Owner
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import DictTable, Progress
from assignor.stores import StoreError
from encoding import TopicPartition

CHANGELOG = TopicPartition("app-counts-changelog", 1)
AT = Progress(position=7, owner=Owner(3, b"12345678"), commit=b"commit", complete_ms=12)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "counts.db"


@pytest.fixture(params=["sqlite", "dict"])
def table(request, path):
    made = SqliteTable(path, CHANGELOG) if request.param == "sqlite" else DictTable("counts")
    yield made
    made.close()


def test_entries_are_ordered_by_key_and_found_by_prefix(table):
    keys = [bytes([first, *rest]) for first in (1, 254, 255) for rest in ((), (0,), (255, 255))]
    table.apply({key: key[:1] for key in reversed(keys)}, AT)
    assert [key for key, _ in table.items()] == sorted(keys)
    for prefix in (b"\x01", b"\xff", b"\xff\xff", b"\xfe\xff", b"\x02", b""):
        assert [key for key, _ in table.items(prefix)] == [
            key for key in sorted(keys) if key.startswith(prefix)
        ]
    assert table.get(b"\xff") == b"\xff"
    assert table.get(b"\x02") is None


def test_many_entries_are_read_page_by_page(table):
    entries = {f"{number:05}".encode(): b"" for number in range(2500)}
    table.apply(entries, AT)
    assert dict(table.items()) == entries
    assert len(list(table.items(b"00"))) == 1000


def test_a_table_that_begins_anew_has_no_keys_to_repair(table):
    table.apply({b"one": b"1"}, AT, {b"hidden": True})
    assert table.unowned == {b"hidden"}
    table.clear()
    assert (dict(table.items()), table.progress, table.unowned) == ({}, Progress(), set())


def test_threads_read_a_file_in_turn(path):
    with closing(SqliteTable(path, CHANGELOG)) as table:
        connection, held = table._connection, []

        def execute(*query):
            held.append(table._lock.locked())
            return connection.execute(*query)

        table._connection = SimpleNamespace(execute=execute, close=connection.close)
        table.get(b"one")
        assert list(table.items()) == []
        assert held == [True, True]


def test_deleted_keys_are_gone_and_an_empty_value_is_a_value(table):
    table.apply({b"one": b"", b"two": b"2"}, AT)
    table.apply({b"two": None, b"none": None}, AT)
    assert dict(table.items()) == {b"one": b""}
    table.clear()
    assert dict(table.items()) == {}
    assert table.progress == Progress()


def test_a_closed_table_says_so(table):
    table.close()
    table.close()
    for use in (
        lambda: table.get(b""),
        lambda: list(table.items()),
        lambda: table.apply({}, AT),
        table.clear,
    ):
        with pytest.raises(
            StoreNotHeld, match="is closed: its task is not on this member any more"
        ):
            use()


def test_entries_and_progress_survive_the_process(path):
    with closing(SqliteTable(path, CHANGELOG)) as table:
        table.apply({b"one": b"1"}, AT)
    with closing(SqliteTable(path, CHANGELOG)) as table:
        assert dict(table.items()) == {b"one": b"1"}
        assert table.progress == AT


def test_a_failed_write_leaves_entries_and_progress_as_they_were(path):
    with closing(SqliteTable(path, CHANGELOG)) as table:
        table.apply({b"one": b"1"}, AT)
        with pytest.raises(StoreError, match="cannot be used"):
            table.apply({b"one": b"2", b"two": "\ud800"}, Progress(position=9))
        assert dict(table.items()) == {b"one": b"1"}
        assert table.progress == AT
        table.apply({b"one": b"3"}, Progress(position=9))
        assert table.progress.position == 9


class InterruptedConnection:
    """A connection; an interrupt is raised when one of its calls, the `at`-th, is over."""

    def __init__(self, connection, at):
        self._connection, self._left = connection, at

    def __getattr__(self, name):
        found = getattr(self._connection, name)
        return partial(self._call, found) if callable(found) else found

    def _call(self, method, *args):
        found = method(*args)
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt
        return found


@pytest.mark.parametrize("at", range(1, 8))
def test_an_interrupt_in_a_transaction_leaves_a_store_that_works(path, at):
    with closing(SqliteTable(path, CHANGELOG)) as table:
        table.apply({b"one": b"1"}, AT)
        connection = table._connection
        table._connection = InterruptedConnection(connection, at)
        with pytest.raises(KeyboardInterrupt):
            table.apply({b"one": b"2"}, replace(AT, position=9))
        table._connection = connection
        is_committed = at == 7  # begin, two for writes, progress, two for unowned keys, commit
        assert dict(table.items()) == {b"one": b"2" if is_committed else b"1"}
        table.apply({b"one": b"3"}, replace(AT, position=9))
        assert dict(table.items()) == {b"one": b"3"}


def damaged_header(path):
    with path.open("r+b") as file:
        file.write(b"not a database")


def damaged_page(path):
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


def text_file(path):
    path.unlink()
    path.write_text("a text\n" * 1000, encoding="utf-8")


def foreign(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table items (name)")


def later_release(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 2")


def other_changelog(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update progress set partition = 2")
        connection.commit()


def no_progress(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("delete from progress")
        connection.commit()


def progress_with(column, value):
    def damage(path):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"update progress set {column} = ?", (value,))  # noqa: S608 no input
            connection.commit()

    return damage


def row_of(table, *values):
    def damage(path):
        with closing(sqlite3.connect(path)) as connection:
            names = ", ".join("?" * len(values))
            connection.execute(f"insert into {table} values ({names})", values)  # noqa: S608 no input
            connection.commit()

    return damage


def directory(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damaged_header, r"counts\.db is damaged, or no SQLite file; delete the file, and the"),
        (damaged_page, r"counts\.db is damaged; delete the file, and the state is restored"),
        (text_file, r"counts\.db is damaged, or no SQLite file"),
        (foreign, r"counts\.db is a SQLite file of another program; move it away"),
        (later_release, r"counts\.db has format 2, this release reads 1; start the release"),
        (other_changelog, r"is a copy of app-counts-changelog-2, not of app-counts-changelog-1"),
        (no_progress, r"counts\.db cannot be used; delete the file"),
        *(
            (
                progress_with(column, value),
                r"counts\.db cannot be used; delete .*its progress is \(",
            )
            for column, value in (
                ("position", "many"),
                ("position", -5),
                ("epoch", "one"),
                ("process", "text"),
                ("last_commit", 5),
                ("saved_ms", "now"),
            )
        ),
        (row_of("items", "key", b"value"), r"cannot be used; delete .*'key', which is not bytes"),
        (row_of("items", b"key", "value"), r"cannot be used; delete .*'value', which is not byt"),
        (row_of("items", b"key", 5), r"cannot be used; delete .* 5, which is not bytes"),
        (row_of("unowned", "key"), r"cannot be used; delete .*'key', which is not bytes"),
        (row_of("topic", "0123456789abcdef"), r"'0123456789abcdef', which is not bytes"),
        (row_of("claim", 1, "text"), r"cannot be used; delete .*its claim is \(1, 'text'"),
        (directory, r"counts\.db cannot be opened; check the directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(path, damage, message):
    with closing(SqliteTable(path, CHANGELOG)) as table:
        table.apply({f"{number}".encode(): bytes(100) for number in range(500)}, AT)
    damage(path)
    with pytest.raises(StoreError, match=message):
        list(SqliteTable(path, CHANGELOG).items())


def test_a_file_that_another_process_locks_is_one_sentence(path, monkeypatch):
    monkeypatch.setattr("assignor.embedding.state_stores.sqlite._WAIT_S", 0.0)
    with closing(SqliteTable(path, CHANGELOG)) as table, closing(sqlite3.connect(path)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreError, match=r"counts\.db is locked by another process; end that"):
            table.apply({}, AT)
        other.rollback()
        table.apply({b"one": b"1"}, AT)


def test_a_missing_directory_is_one_sentence(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened; check the directory and its rights"):
        SqliteTable(tmp_path / "gone/counts.db", CHANGELOG)


def test_other_programs_read_the_file_meanwhile(path):
    with closing(SqliteTable(path, CHANGELOG)) as table:
        table.apply({b"one": b"1"}, AT)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as other:
            rows = other.execute("select key, value from items")
            table.apply({b"one": b"2"}, AT)
            assert [*rows] == [(b"one", b"1")]


def test_a_process_without_file_descriptors_is_told_so(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(lowest_free := os.dup(1))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        with pytest.raises(StoreError, match="no file descriptors left; raise its limit"):
            SqliteTable(tmp_path / "counts.db", CHANGELOG)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_file_that_is_a_link_is_not_written_through(path, tmp_path, suffix):
    victim = tmp_path / "victim"
    victim.write_bytes(b"")  # SQLite takes an empty file for a new database
    path.with_name(path.name + suffix).symlink_to(victim)
    with pytest.raises(StoreError, match=rf"counts\.db{suffix} is a symbolic link to .*victim"):
        SqliteTable(path, CHANGELOG)
    assert victim.read_bytes() == b""


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
"""The tables of the releases before, where `saved_ms` was the time of the last write."""


def test_a_file_of_an_earlier_release_is_read_as_complete_at_its_last_write(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"{SCHEMA} pragma application_id = {0x53524253}; pragma user_version = 1;"
        )
        connection.execute("insert into items values (?, ?)", (b"one", b"1"))
        connection.execute("insert into unowned values (?)", (b"hidden",))
        connection.execute("insert into topic values (?)", (UUID(int=7).bytes,))
        row = (*CHANGELOG, 2, 3, b"12345678", b"commit", 12)
        connection.execute("insert into progress values (?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    with closing(SqliteTable(path, CHANGELOG)) as table:
        assert table.progress == replace(AT, position=2, topic_id=UUID(int=7))
        assert (table.unowned, table.get(b"one")) == ({b"hidden"}, b"1")


NEW = "create table claim (epoch integer not null, process blob not null)"


def test_an_earlier_release_reads_the_file_and_rebuilds_it_no_later_than_this_one(path):
    with closing(SqliteTable(path, CHANGELOG)) as table:
        table.apply({b"one": b"1"}, AT, {b"hidden": True, b"other": True})
        table.apply({}, AT, {b"other": False})
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("select sql from sqlite_master where sql is not null").fetchall()
        assert connection.execute("select saved_ms from progress").fetchall() == [(AT.complete_ms,)]
        assert connection.execute("select key from unowned").fetchall() == [(b"hidden",)]
    wanted = {" ".join(each.split()) for each in SCHEMA.split(";") if each.strip()} | {NEW}
    assert {" ".join(statement.lower().split()) for (statement,) in made} == wanted
