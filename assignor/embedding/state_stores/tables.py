"""Local copies of a store's state: what a copy has to do, and one in memory."""

import math
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, Self
from uuid import UUID

from assignor.embedding.errors import StoreNotHeld
from assignor.embedding.state_stores.records import NOBODY, ChangelogRecord, Owner, Writes
from encoding import TaskId

# Clocks that are adjusted go back so far.
_CLOCK_STEP_S: Final = 60.0


class Moment(NamedTuple):
    """A time by two clocks: the first may be set, the second may stop with the machine.

    Attributes:
        wall_ms: ms since 1970.
        steady_s: of `time.monotonic`; infinite: noted by an earlier process.
    """

    wall_ms: int
    steady_s: float

    @classmethod
    def now(cls) -> Self:
        """Return this moment."""
        return cls(time.time_ns() // 1_000_000, time.monotonic())

    def before(self, seconds: float) -> Self:
        """Return the moment some seconds earlier."""
        return self._replace(
            wall_ms=self.wall_ms - round(seconds * 1000), steady_s=self.steady_s - seconds
        )

    def age_s(self) -> float:
        """Return the seconds since then, by the clock that has counted more."""
        now = self.now()
        return max((now.wall_ms - self.wall_ms) / 1000, now.steady_s - self.steady_s)

    def why_wrong(self, later: Sequence[ChangelogRecord], margin_s: float) -> str:
        """Return why this time may be wrong, if an earlier process noted it; "": it is not.

        If its clock was wrong, its time is ahead of now, or of a record that was written later; or
        the clock of this process is late, and records are ahead of it.

        Args:
            later: records that were written after this moment.
            margin_s: by which clocks may differ.
        """
        age_s, most_ms = self.age_s(), margin_s * 1000
        if self.steady_s != math.inf:
            return ""
        if age_s < -_CLOCK_STEP_S:
            return f"its time is {-age_s / 3600:.1f} hours from now, so that its age is unknown"
        first_ms, last_ms = self.wall_ms - most_ms, self.now().wall_ms + most_ms
        for record in later:
            at_ms = record.timestamp or 0
            if 0 < at_ms < first_ms or at_ms > last_ms:
                return (
                    f"it was complete at {self.wall_ms} ms, and the record at offset "
                    f"{record.offset} is of {at_ms} ms, so that a clock is or was wrong"
                )
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How much of the changelog a copy has.

    Attributes:
        position: offset of the next record to read.
        owner: of the last record that counted.
        commit: value of the last commit record that counted; empty without one.
        complete_ms: a time, in ms since 1970, at which the copy had all records of the changelog;
            of a copy that never had them, when it was begun; 0: nothing is read yet.
        topic_id: of the changelog's topic; None: not known.
        claim: owner whose process ran the task with this copy, which had all of its state then.
    """

    position: int = 0
    owner: Owner = NOBODY
    commit: bytes = b""
    complete_ms: int = 0
    topic_id: UUID | None = None
    claim: Owner = NOBODY


REBUILD_AFTER_S: Final = 12 * 3600.0
"""Longest age at which a copy that is behind is not rebuilt.

Brokers remove tombstones after `delete.retention.ms`, 24 hours by default. A copy that misses one
would keep the key forever. So the age is the time since the copy last had all records.
"""


def rebuild_after_s(delete_retention_ms: int) -> float:
    """Return the age from which a copy that is behind is rebuilt.

    Half of the time that tombstones are kept, because restoring takes time. A longer time than the
    default changes nothing: the setting is for new topics, and this one may be older.
    """
    return min(REBUILD_AFTER_S, delete_retention_ms / 2000)


NO_PROGRESS: Final = Progress()
NO_CHANGES: Final[Mapping[bytes, bool]] = MappingProxyType({})


class StateTable(Protocol):
    """Keys and values of one store of one task, as bytes; methods may be called on any thread."""

    @property
    def progress(self) -> Progress:
        """How much of the changelog is applied."""
        ...

    @property
    def unowned(self) -> AbstractSet[bytes]:
        """Keys of records below the position that do not count and are not written again yet."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None without one.

        Raises:
            StoreNotHeld: the table is closed.
            StoreError: it cannot be read.
        """
        ...

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose keys begin with `prefix`, by key.

        Raises:
            StoreNotHeld: the table is closed.
            StoreError: it cannot be read.
        """
        ...

    def apply(
        self, writes: Writes, progress: Progress, unowned: Mapping[bytes, bool] = NO_CHANGES
    ) -> None:
        """Store writes and progress, both or neither.

        Args:
            writes: key -> value; None deletes the key.
            progress: from now on.
            unowned: keys that join `unowned` (True) or leave it (False).

        Raises:
            StoreNotHeld: the table is closed.
            StoreError: it cannot be written; it has neither.
        """
        ...

    def clear(self) -> None:
        """Remove all entries, the progress and `unowned`.

        Raises:
            StoreNotHeld: the table is closed.
            StoreError: it cannot be written.
        """
        ...

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        ...

    @property
    def remedy(self) -> str:
        """What to do if it has state that its changelog has lost."""
        ...

    def close(self) -> None:
        """Close the table; twice is once."""
        ...


def has_whole_task(tables: Iterable[StateTable]) -> bool:
    """Return whether the copies of a task's stores had its whole state when they were last written.

    The last owner whose records they have ran the task with them, which each copy notes by itself.
    Copies of which nothing was written do not count.
    """
    found = tuple(tables)
    last = max((table.progress.owner for table in found), default=NOBODY)
    if last == NOBODY or all(table.progress.claim != last for table in found):
        return False
    return any(table.progress.commit or next(table.items(), None) for table in found)


def change_keys(keys: set[bytes], changes: Mapping[bytes, bool]) -> None:
    """Add the keys that are true, and remove the others."""
    keys.update(key for key, is_added in changes.items() if is_added)
    keys.difference_update(key for key, is_added in changes.items() if not is_added)


def not_held(name: str) -> StoreNotHeld:
    """Return the error of a closed table."""
    return StoreNotHeld(f"{name} is closed: its task is not on this member any more")


class DictTable:
    """A table in memory, which begins empty; its entries are lost with the process.

    Args:
        name: for messages.
    """

    remedy = (
        "read what you need of it with stores[task] before this process ends, which loses it; to "
        "compute the state again, set the offsets of the group back"
    )

    def __init__(self, name: str) -> None:
        self._name = name
        self.place = f"the memory of this process, {name},"
        self._lock = threading.Lock()
        self._entries: dict[bytes, bytes] | None = {}
        self._sorted: list[bytes] | None = []
        self.progress = NO_PROGRESS
        self.unowned: set[bytes] = set()

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None without one."""
        with self._lock:
            return self._open().get(key)

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose keys begin with `prefix`, by key, as of the call."""
        with self._lock:
            entries = self._open()
            if self._sorted is None:
                self._sorted = sorted(entries)
            after = islice(self._sorted, bisect_left(self._sorted, prefix), None)
            keys = takewhile(lambda key: key.startswith(prefix), after)
            return iter([(key, entries[key]) for key in keys])

    def apply(
        self, writes: Writes, progress: Progress, unowned: Mapping[bytes, bool] = NO_CHANGES
    ) -> None:
        """Store writes and progress."""
        with self._lock:
            entries = self._open()
            for key, value in writes.items():
                if value is None:
                    if entries.pop(key, None) is not None:
                        self._sorted = None
                else:
                    if key not in entries:
                        self._sorted = None
                    entries[key] = value
            self.progress = progress
            change_keys(self.unowned, unowned)

    def clear(self) -> None:
        """Remove all entries, and the progress."""
        with self._lock:
            self._open().clear()
            self._sorted = []
            self.progress = NO_PROGRESS
            self.unowned.clear()

    def close(self) -> None:
        """Release the memory."""
        with self._lock:
            self._entries = self._sorted = None

    def _open(self) -> dict[bytes, bytes]:
        if self._entries is None:
            raise not_held(self._name)
        return self._entries


def no_copy(task: TaskId, *, is_assigned: bool) -> StoreNotHeld:
    """Return the error of a task whose stores are not open: not here, or only just assigned."""
    if is_assigned:
        return StoreNotHeld(f"task {task} was assigned and is not restored yet; try again later")
    return StoreNotHeld(
        f"task {task} is not on this member; ask a host of `hosts_for_key` for its state"
    )
