"""State stores as an application names and uses them.

`SqliteStore` and `DictStore` say what a store of the topology is: where its entries are kept, and
the types of its keys and values. A `Store` is such a store of one task: what the function that
processes records gets, and what queries read.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar, overload

from assignor.embedding.errors import StoreReadOnly
from assignor.embedding.state_stores.records import RESERVED
from assignor.embedding.state_stores.serdes import Serde
from assignor.embedding.state_stores.sqlite import SUFFIXES, SqliteTable
from assignor.embedding.state_stores.tables import DictTable, StateTable
from encoding import RebalanceError, TaskId, TopicPartition, shown

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Default = TypeVar("_Default")


@dataclass(frozen=True, slots=True)
class StateStore(Generic[_Key, _Value]):
    """A state store of the topology; use `SqliteStore` or `DictStore`.

    Attributes:
        name: as in `Topology.add_state_store`.
        key: serialiser of keys: `TEXT`, `JSON`, `BYTES` or a `Serde`.
        value: serialiser of values.
    """

    name: str
    key: Serde[_Key] = field(kw_only=True)
    value: Serde[_Value] = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(
                f"name={shown(repr(self.name), limit=80)} of a store is no text, or empty; give "
                "the name of a state store of the topology"
            )
        for name, serde in (("key", self.key), ("value", self.value)):
            if not isinstance(serde, Serde):
                raise TypeError(
                    f"{name}={shown(repr(serde), limit=80)} of store {shown(repr(self.name))} is "
                    "no serialiser; give TEXT, JSON, BYTES or a Serde"
                )

    def open_table(self, directory: Path | None, changelog: TopicPartition) -> StateTable:
        """Return the local copy of a changelog partition.

        Args:
            directory: of the task; None without a state directory.
            changelog: the partition.

        Raises:
            StoreError: the copy cannot be used; the message says why.
        """
        raise NotImplementedError

    def files(self, directory: Path) -> tuple[Path, ...]:
        """Return the files of a copy; the first one exists when the copy does."""
        del directory
        return ()


@dataclass(frozen=True, slots=True)
class SqliteStore(StateStore[_Key, _Value]):
    """A store in a SQLite file of the state directory: a restart continues where it ended."""

    def open_table(self, directory: Path | None, changelog: TopicPartition) -> StateTable:
        """Open the file, or create it."""
        if directory is None:
            raise ValueError(f"store {self.name} is kept in a file; give a state directory")
        return SqliteTable(self.files(directory)[0], changelog)

    def files(self, directory: Path) -> tuple[Path, ...]:
        """Return the database, its log and its index."""
        return tuple(directory / f"{self.name}.db{suffix}" for suffix in SUFFIXES)


@dataclass(frozen=True, slots=True)
class DictStore(StateStore[_Key, _Value]):
    """A store in memory, which is restored from its changelog whenever a process starts."""

    def open_table(self, directory: Path | None, changelog: TopicPartition) -> StateTable:
        """Return an empty table."""
        del directory
        return DictTable(f"store {self.name} of {changelog.topic}-{changelog.partition}")


_Writes = dict[str, dict[bytes, bytes | None]]

# Lengths of key and value in a commit record, and of their pair.
_WRITE_OVERHEAD: Final = 8


class Batch:
    """What the function that processes records has written to the stores of a task, so far.

    Attributes:
        task: the task.
        is_open: whether the function runs, so that it may write.
        writes: store -> key -> value.
        size: bytes of all keys and values that were put, with what surrounds them in a record.
        records: number of input records that have written to it.
        failed: why an output of the last input record was not written; None: all were.
    """

    def __init__(self, task: TaskId) -> None:
        self.task = task
        self.is_open = True
        self.writes: _Writes = {}
        self.size = self.records = 0
        self.begin_record()

    def write(self, store: str, key: bytes, value: bytes | None) -> None:
        """Record a write.

        Raises:
            StoreReadOnly: the batch is over.
        """
        if not self.is_open:
            raise StoreReadOnly(
                f"store {store} of task {self.task} cannot be written now: write only in the "
                "function that processes a record, while it runs"
            )
        self.records += not self._last
        written = self.writes.setdefault(store, {})
        last = self._last.setdefault(store, {})
        if key in written and key not in last:
            self._replaced.setdefault(store, {})[key] = written[key]
        written[key] = last[key] = value
        self.size += len(key) + len(value or b"") + _WRITE_OVERHEAD

    def begin(self) -> None:
        """Forget the writes."""
        self.writes, self.size, self.records = {}, 0, 0
        self.begin_record()

    def begin_record(self) -> None:
        """Take what is written from now on for that of one input record."""
        self._last: _Writes = {}
        self._replaced: _Writes = {}
        self.failed: RebalanceError | None = None
        self._earlier_size = self.size

    def check_sent(self) -> None:
        """Raise why an output of the last input record was not written, if so."""
        if self.failed is not None:
            raise self.failed

    @property
    def has_earlier(self) -> bool:
        """Whether input records before the last one have written something."""
        return self._earlier_size > 0

    def take_last(self) -> Callable[[], None]:
        """Remove the writes of the last input record; return what makes them all writes."""
        last, size = self._last, self.size - self._earlier_size
        kept = {
            store: {key: value for key, value in found.items() if key not in last.get(store, {})}
            | self._replaced.get(store, {})
            for store, found in self.writes.items()
        }
        self.writes = {store: found for store, found in kept.items() if found}
        self.size, self.records = self._earlier_size, self.records - bool(last)

        def resume() -> None:
            self.writes, self.size, self.records = last, size, int(bool(last))

        return resume


class Store(Generic[_Key, _Value]):
    """A state store of one task.

    The function that processes records reads what it has written; queries, on any thread, read what
    is committed. Every method raises `StoreNotHeld` once the task has moved away.

    Args:
        declared: names and serialisers.
        table: the committed entries.
        task: the task.
        batch: where writes go; None: the store is read-only.
    """

    def __init__(
        self,
        declared: StateStore[_Key, _Value],
        table: StateTable,
        task: TaskId,
        batch: Batch | None = None,
    ) -> None:
        self._declared = declared
        self._name = declared.name
        self._table = table
        self._task = task
        self._batch = batch

    @overload
    def get(self, key: _Key) -> _Value | None: ...

    @overload
    def get(self, key: _Key, default: _Default) -> _Value | _Default: ...

    def get(self, key: _Key, default: _Default | None = None) -> _Value | _Default | None:
        """Return the value of a key, or `default`.

        Raises:
            StoreNotHeld: the task has moved away.
            StoreError: the file cannot be read, or the value is none of its serialiser.
            TypeError, ValueError: the serialiser does not take the key.
        """
        encoded = self._key(key)
        written = self._written()
        found = written[encoded] if encoded in written else self._table.get(encoded)
        return default if found is None else self._value_of(encoded, found)

    def items(self, prefix: _Key | None = None) -> Iterator[tuple[_Key, _Value]]:
        """Yield keys and values, ordered by the bytes of the keys.

        Args:
            prefix: yield only keys whose bytes begin with those of this key, which suits `TEXT` and
                `BYTES`.

        Raises:
            StoreNotHeld: the task has moved away.
            StoreError: the file cannot be read, or an entry is none of its serialisers.
            TypeError, ValueError: the serialiser does not take the prefix.
        """
        first = b"" if prefix is None else self._key(prefix)
        for key, value in self._merged(first):
            decoded = self._declared.key.decoded(key, what=f"a key of store {self._name!r}")
            yield decoded, self._value_of(key, value)

    def put(self, key: _Key, value: _Value) -> None:
        """Set the value of a key.

        Raises:
            StoreReadOnly: this is a copy for queries, such as a standby, or the batch is over.
            ValueError: the key begins with bytes that are reserved, or it is empty.
            TypeError, ValueError: a serialiser does not take the key or the value.
        """
        what = f"the value of store {self._name!r}"
        self._write(key, self._declared.value.encoded(value, what=what))

    def delete(self, key: _Key) -> None:
        """Remove a key, if it exists.

        Raises:
            StoreReadOnly: this is a copy for queries, such as a standby, or the batch is over.
            ValueError: the key begins with bytes that are reserved, or it is empty.
            TypeError, ValueError: the serialiser does not take the key.
        """
        self._write(key, None)

    def _write(self, key: _Key, value: bytes | None) -> None:
        encoded = self._key(key)
        if not encoded or encoded.startswith(RESERVED):
            raise ValueError(
                f"key {key!r} of store {self._name} is empty, or begins with "
                f"{RESERVED!r}, which is reserved; choose another key"
            )
        if self._batch is None:
            raise StoreReadOnly(
                f"store {self._name} of task {self._task} is read-only here: only the "
                "function that processes records of the active task writes to it"
            )
        self._batch.write(self._name, encoded, value)

    def _key(self, key: _Key) -> bytes:
        return self._declared.key.encoded(key, what=f"the key of store {self._name!r}")

    def _value_of(self, key: bytes, data: bytes) -> _Value:
        what = f"the value of key {shown(repr(key), limit=80)} in store {self._name!r}"
        return self._declared.value.decoded(data, what=what)

    def _written(self) -> Mapping[bytes, bytes | None]:
        return {} if self._batch is None else self._batch.writes.get(self._name, {})

    def _merged(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield committed entries with the writes of the batch over them."""
        written = {k: v for k, v in self._written().items() if k.startswith(prefix)}
        kept = ((k, v) for k, v in self._table.items(prefix) if k not in written)
        own = ((k, v) for k, v in sorted(written.items()) if v is not None)
        return heapq.merge(kept, own)
