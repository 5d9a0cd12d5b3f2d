"""A table in a SQLite file: entries and progress are committed in one transaction.

The file is a copy of the changelog, so that it can be deleted at any time. It is written in WAL
mode with `synchronous=NORMAL`: a killed process loses nothing, a power cut at most the last
transactions, with their progress.
"""

import errno
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from assignor.embedding.state_stores.records import NOBODY, Owner, Writes
from assignor.embedding.state_stores.tables import (
    NO_CHANGES,
    NO_PROGRESS,
    Progress,
    change_keys,
    not_held,
)
from assignor.stores import ForeignFile, StoreError, check_no_link
from encoding import TopicPartition, shown

SUFFIXES: Final = ("", "-wal", "-shm")
"""Endings of the files of one table, after its name."""

_PROGRAM: Final = 0x53524253
_FORMAT: Final = 1
_WAIT_S: Final = 2.0
_PAGE: Final = 1000
_LAST_BYTE: Final = b"\xff"
_RESTORED: Final = "delete the file, and the state is restored from its changelog"
_NOT_KEPT: Final = (
    "it cannot be written to its changelog; to begin with what the changelog has, delete the "
    "directory of its task, and set the offsets of the group back"
)
_REMEDIES: Final = MappingProxyType(
    {
        sqlite3.SQLITE_BUSY: "is locked by another process; end that process",
        sqlite3.SQLITE_LOCKED: "is locked by another process; end that process",
        sqlite3.SQLITE_NOTADB: f"is damaged, or no SQLite file; {_RESTORED}",
        sqlite3.SQLITE_CORRUPT: f"is damaged; {_RESTORED}",
        sqlite3.SQLITE_FULL: "cannot be written: the disk is full; free some space",
        sqlite3.SQLITE_IOERR: "cannot be read or written; check the disk",
        sqlite3.SQLITE_READONLY: "cannot be written; give this user the right to write",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened; check the directory and its rights",
    }
)
_NO_DESCRIPTOR: Final = (
    "cannot be opened: this process has no file descriptors left; raise its limit (ulimit -n): "
    "each task needs three for each SqliteStore"
)
_PROGRESS: Final = (str, int, int, int, bytes, bytes, int)  # types of its columns
_TOPIC: Final = "select id from topic"
_CLAIM: Final = "select epoch, process from claim"
_UNOWNED: Final = MappingProxyType(
    {
        "insert or ignore into unowned values (?)": True,
        "delete from unowned where key = ?": False,
    }
)
# `saved_ms` is `Progress.complete_ms`: releases that took it for the time of the last write rebuild
# such a file earlier than they need to.
_CREATE: Final = (
    "create table items (key blob primary key, value blob not null) without rowid",
    """create table progress (
        topic text not null, partition integer not null, position integer not null,
        epoch integer not null, process blob not null, last_commit blob not null,
        saved_ms integer not null
    )""",
    "create table unowned (key blob primary key) without rowid",
    f"pragma application_id = {_PROGRAM}",
    f"pragma user_version = {_FORMAT}",
)
# Tables of their own: earlier releases read the file, and leave them out.
_ADDED: Final = (
    "create table if not exists topic (id blob not null)",
    "create table if not exists claim (epoch integer not null, process blob not null)",
)


class SqliteTable:
    """A table in a file.

    Args:
        path: of the file, which is created if it is missing.
        changelog: the partition that the table is a copy of; None: that of the file, which exists.
        is_read_only: the file is not written; no other process uses it.

    Attributes:
        changelog: the partition.
        place: the path.
        remedy: what to do if it has state that its changelog has lost.

    Raises:
        StoreError: the file is damaged, locked, of another program, of a later release or of
            another changelog, is a symbolic link, or cannot be opened.
    """

    def __init__(
        self, path: Path, changelog: TopicPartition | None, *, is_read_only: bool = False
    ) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.unowned: set[bytes] = set()
        for suffix in (*SUFFIXES, "-journal"):
            check_no_link(path.with_name(path.name + suffix))
        self.place = str(path)
        # What to do with a file that cannot be used.
        self._unusable = _RESTORED if changelog is not None else _NOT_KEPT
        self.remedy = (
            "stop all members, then write what is kept to the changelogs: assignor write-back "
            f"--state-dir {path.parent.parent} --bootstrap-server HOST:PORT"
        )
        if changelog is None and not path.is_file():
            raise StoreError(f"{path} is no file; {_NOT_KEPT}")
        try:
            with self._errors():
                self._connection = sqlite3.connect(
                    _read_only(path) if is_read_only else path,
                    uri=is_read_only,
                    timeout=_WAIT_S,
                    isolation_level=None,
                    check_same_thread=False,
                )
                self.changelog, self.progress = self._opened(self._connection, changelog)
        except BaseException:
            self.close()
            raise

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None without one."""
        rows = self._rows("select value from items where key = ?", (key,))
        return rows[0][0] if rows else None

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose keys begin with `prefix`, by key, read in pages of 1,000."""
        bound = _successor(prefix)
        ends = "" if bound is None else "and key < ?"
        bounds = () if bound is None else (bound,)
        first, since = prefix, ">="
        while True:
            page = self._rows(
                f"select key, value from items where key {since} ? {ends} "  # noqa: S608 no input
                f"order by key limit {_PAGE}",
                (first, *bounds),
            )
            yield from page
            if len(page) < _PAGE:
                return
            first, since = page[-1][0], ">"

    def apply(
        self, writes: Writes, progress: Progress, unowned: Mapping[bytes, bool] = NO_CHANGES
    ) -> None:
        """Store writes and progress in one transaction."""
        with self._transaction() as connection:
            self._write(connection, writes)
            self._write_progress(connection, progress)
            for statement, is_added in _UNOWNED.items():
                keys = ((key,) for key, added in unowned.items() if added == is_added)
                connection.executemany(statement, keys)
        self.progress = progress
        change_keys(self.unowned, unowned)

    def clear(self) -> None:
        """Remove all entries, the progress and `unowned`, in one transaction."""
        with self._transaction() as connection:
            connection.execute("delete from items")
            connection.execute("delete from unowned")
            self._write_progress(connection, NO_PROGRESS)
        self.progress = NO_PROGRESS
        self.unowned.clear()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):  # what is committed is in the file whatever happens here
                connection.close()

    def _opened(
        self, connection: sqlite3.Connection, changelog: TopicPartition | None
    ) -> tuple[TopicPartition, Progress]:
        """Check or create the tables, and return the changelog and the progress."""
        [(program,)] = connection.execute("pragma application_id")
        [(version,)] = connection.execute("pragma user_version")
        [(tables,)] = connection.execute("select count(*) from sqlite_master")
        if (program, tables) == (0, 0) and changelog is not None:
            connection.execute("pragma journal_mode = wal")
            connection.execute("begin immediate")
            for statement in _CREATE:
                connection.execute(statement)
            connection.execute(
                "insert into progress values (?, ?, 0, ?, ?, x'', 0)", (*changelog, *NOBODY)
            )
            connection.execute("commit")
        elif program != _PROGRAM:
            raise ForeignFile(
                f"{self._path} is a SQLite file of another program; move it away, or choose "
                "another state directory"
            )
        elif version != _FORMAT:
            raise ForeignFile(
                f"{self._path} has format {version}, this release reads {_FORMAT}; start the "
                f"release that wrote it, or {self._unusable}"
            )
        connection.execute("pragma synchronous = normal")
        if changelog is not None:
            for statement in _ADDED:
                connection.execute(statement)
        [row] = connection.execute(
            "select topic, partition, position, epoch, process, last_commit, saved_ms from progress"
        )
        if tuple(map(type, row)) != _PROGRESS or row[2] < 0:
            raise ValueError(f"its progress is {shown(repr(row))}")
        found = TopicPartition(row[0], row[1])
        if found != (changelog or found):
            raise StoreError(
                f"{self._path} is a copy of {'{}-{}'.format(*found)}, not of "
                f"{'{}-{}'.format(*(changelog or found))}; {self._unusable}"
            )
        unowned = connection.execute("select key from unowned").fetchall()
        ids = connection.execute(_TOPIC).fetchall()
        claims = connection.execute(_CLAIM).fetchall()
        # Other values than bytes come before all bytes.
        others = connection.execute("select key from items where key < x'' limit 1").fetchall()
        _check_bytes([*others, *unowned, *ids])
        if any(tuple(map(type, claim)) != _PROGRESS[3:5] for claim in claims):
            raise ValueError(f"its claim is {shown(repr(claims[0]))}")
        self.unowned.update(key for (key,) in unowned)
        return found, Progress(
            position=row[2],
            owner=Owner(row[3], row[4]),
            commit=row[5],
            complete_ms=row[6],
            topic_id=next((UUID(bytes=id_) for (id_,) in ids), None),
            claim=next((Owner(*claim) for claim in claims), NOBODY),
        )

    @staticmethod
    def _write(connection: sqlite3.Connection, writes: Writes) -> None:
        connection.executemany(
            "insert into items values (?, ?)"
            " on conflict (key) do update set value = excluded.value",
            ((key, value) for key, value in writes.items() if value is not None),
        )
        connection.executemany(
            "delete from items where key = ?",
            ((key,) for key, value in writes.items() if value is None),
        )

    def _write_progress(self, connection: sqlite3.Connection, progress: Progress) -> None:
        connection.execute(
            "update progress set position = ?, epoch = ?, process = ?, last_commit = ?,"
            " saved_ms = ?",
            (progress.position, *progress.owner, progress.commit, progress.complete_ms),
        )
        if progress.topic_id != self.progress.topic_id:
            connection.execute("delete from topic")
            if progress.topic_id is not None:
                connection.execute("insert into topic values (?)", (progress.topic_id.bytes,))
        if progress.claim != self.progress.claim:
            connection.execute("delete from claim")
            connection.execute("insert into claim values (?, ?)", progress.claim)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors():
            connection = self._open()
            try:  # an interrupt can be raised after `begin` was executed
                connection.execute("begin immediate")
                yield connection
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    def _rows(self, query: str, values: Iterable[Any]) -> list[Any]:
        with self._lock:
            try:
                rows = self._open().execute(query, tuple(values)).fetchall()
            except sqlite3.Error as error:
                raise self._error(error) from error
        with self._errors():
            _check_bytes(rows)
        return rows

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise not_held(str(self._path))
        return self._connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> StoreError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        remedy = _REMEDIES.get(code, f"cannot be used; {_RESTORED}")
        remedy = remedy.replace(_RESTORED, self._unusable)
        if code == sqlite3.SQLITE_CANTOPEN and _has_no_descriptor():
            remedy = _NO_DESCRIPTOR
        return StoreError(f"state file {self._path} {remedy} ({error})")


def _check_bytes(rows: Iterable[tuple[Any, ...]]) -> None:
    """Check that a file has the bytes that this program writes: columns of SQLite have no type.

    Raises:
        ValueError: a row has something else.
    """
    for row in rows:
        for value in row:
            if type(value) is not bytes:
                raise ValueError(f"a row has {shown(repr(value), limit=80)}, which is not bytes")


def _read_only(path: Path) -> str:
    """Return the URI of a file for reading; its -wal file stays as it is."""
    log = path.with_name(path.name + "-wal")
    is_whole = not (log.exists() and log.stat().st_size)
    return f"{path.absolute().as_uri()}?{'immutable=1' if is_whole else 'mode=ro'}"


def _has_no_descriptor() -> bool:
    """Whether this process, or the machine, has no file descriptor left."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def _successor(prefix: bytes) -> bytes | None:
    """Return the first key after all that begin with a prefix; None if there is no such key."""
    stem = prefix.rstrip(_LAST_BYTE)
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
