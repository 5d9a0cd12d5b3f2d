"""A group's feature log in a folder: finalized levels that survive a power cut at any byte.

```
format.bin                       who formatted it, when, and the first levels
00000000000000000007.snapshot    the whole state after 7 batches
00000000000000000007.records     the batches from the 8th on, one frame each
```
A batch is acknowledged when its frame is on the disk. Around every change of a level stand two
snapshots, the old state in the old format and the new one in the new (KIP-778); the older one stays
until the next change. A frame that is cut off at the end was never acknowledged and is dropped; a
broken one is an error, and nothing is changed (`frames.py`). Files with other names are left alone.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgpack
from filelock import FileLock, Timeout

from assignor.levels.log.frames import frame, read_segment
from assignor.levels.log.records import (
    BATCH_LIMIT,
    NO_MINIMUMS,
    LogBatch,
    LogState,
    Note,
    check_levels,
    decode_batch,
    dropped_below,
    encode_batch,
    level_change,
    registration,
    replay,
    snapshot,
)
from assignor.stores import (
    LATEST_MS,
    PARTIAL,
    Disk,
    FolderDisk,
    StoreError,
    seal,
    text,
    understood,
    unseal,
    whole_number,
)
from probing.features import FinalizedLevels, LevelRange

FORMAT_NAME: Final = "format.bin"
_FORMAT_MAGIC: Final = b"SRBflog1"
_SNAPSHOT_MAGIC: Final = b"SRBfsna1"
_NAME: Final = re.compile(r"([0-9]{20})\.(snapshot|records)")
_NUMBERS: Final = 1 << 63
_KEPT_SNAPSHOTS: Final = 2
_LOOKS: Final = 3
SEGMENT_LIMIT: Final = 8 << 20
"""Bytes of records after which the state is written whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """What `assignor storage format` wrote.

    Attributes:
        log_id: random hexadecimal digits; tells one log from another.
        levels: what is finalized while no record says otherwise (KIP-778).
        at_ms: when, in milliseconds since 1970.
    """

    log_id: str
    levels: Mapping[str, int]
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """An acknowledged change.

    Attributes:
        state: after it.
        dropped: what the new level does not know and is gone, one sentence each.
    """

    state: LogState
    dropped: tuple[str, ...] = ()


def format_log(disk: Disk, wanted: LogFormat, *, ignore_formatted: bool = False) -> bool:
    """Make a log; tells whether one was made.

    Args:
        disk: an empty folder, or one that nothing but a log is in.
        wanted: the first levels.
        ignore_formatted: leave a formatted folder as it is.

    Raises:
        StoreError: it is formatted already, or an unknown level is asked for.
    """
    check_levels(wanted.levels)
    if FORMAT_NAME in disk.names():
        if ignore_formatted:
            return False
        found = read_format(disk)
        raise StoreError(
            f"the feature log {found.log_id} is formatted already; say --ignore-formatted to leave"
            " it as it is"
        )
    body = {
        "log_id": wanted.log_id,
        "levels": sorted(wanted.levels.items()),
        "at_ms": wanted.at_ms,
    }
    disk.replace(FORMAT_NAME, seal(_FORMAT_MAGIC, msgpack.packb(body)))
    return True


def read_format(disk: Disk) -> LogFormat:
    """Return what a log was formatted with.

    Raises:
        StoreError: the folder is not formatted, or the file is broken.
    """
    if FORMAT_NAME not in disk.names():
        raise StoreError("there is no feature log; make one with `assignor storage format`")
    remedy = "put the folder back from a copy"
    with understood(FORMAT_NAME, problem="is whole but makes no sense", remedy=remedy):
        body = unseal(_FORMAT_MAGIC, disk.read(FORMAT_NAME, BATCH_LIMIT), name=FORMAT_NAME)
        given: dict[str, Any] = msgpack.unpackb(body)
        levels = {text(name): whole_number(level, what=name) for name, level in given["levels"]}
        FinalizedLevels(levels=levels)
        return LogFormat(
            log_id=text(given["log_id"]),
            levels=levels,
            at_ms=whole_number(given["at_ms"], what="at_ms", most=LATEST_MS),
        )


class FeatureLog:
    """An opened log; one process at a time writes.

    Args:
        disk: the folder.
        is_reader: nothing is put in order on the way, so that a reader may look at any time.

    Raises:
        StoreError: not formatted, broken, or written by a release that this one does not read.

    Attributes:
        state: what the log says; published when it is on the disk.
        batches: how many were acknowledged.
        warnings: what was found out of order.
    """

    def __init__(self, disk: Disk, *, is_reader: bool = False) -> None:
        self._disk = disk
        self._segment_size = 0
        self._has_failed = False
        self.format = read_format(disk)
        self.warnings: tuple[str, ...] = ()
        self.state, self.batches, mended = self._recover()
        if not is_reader:
            self._tidy(mended)

    def change(
        self,
        levels: Mapping[str, int],
        note: Note,
        *,
        minimums: Mapping[str, int] = NO_MINIMUMS,
    ) -> Committed:
        """Finalize levels; 0 takes a feature out. Raise minimums. All of them, or none.

        Raises:
            StoreError: a level is unknown, or the disk refused; then open the log again to learn
                what it says.
        """
        check_levels({name: level for name, level in levels.items() if level > 0})
        before = self.state
        batch = level_change(before, levels, note, minimums=minimums)
        after = replay(before, batch)
        dropped = dropped_below(before, after.persistent_version)
        self._write_snapshot()
        self._commit(batch, log_format=max(before.format, after.format))
        try:
            self._write_snapshot()
            self._forget()
        except StoreError as error:
            # It is acknowledged; whoever opens the log next reads it from the records.
            self.warnings += (f"the change is kept, but {error}",)
        return Committed(state=after, dropped=dropped)

    def register(self, member: str, ranges: Mapping[str, LevelRange] | None) -> LogState:
        """Remember what a member supports, or forget it with None; the state after it.

        Raises:
            StoreError: the disk refused.
        """
        batch = registration(self.state, member, ranges)
        if batch is not None:
            self._commit(batch, log_format=self.state.format)
            if self._segment_size > SEGMENT_LIMIT:
                self._write_snapshot()
                self._forget()
        return self.state

    # Writing

    def _commit(self, batch: LogBatch, *, log_format: int) -> None:
        if self._has_failed:
            raise StoreError("a write to the feature log failed before; open it again")
        data = frame(self.batches, encode_batch(batch, log_format=log_format))
        try:
            self._disk.append(f"{self._base:020}.records", data)
        except StoreError:
            # A part of the frame may be there, and nothing may follow it.
            self._has_failed = True
            raise
        # Now it is acknowledged.
        self._segment_size += len(data)
        self.batches += 1
        self.state = replay(self.state, batch)

    def _write_snapshot(self) -> None:
        data = encode_batch(snapshot(self.state), log_format=self.state.format)
        self._disk.replace(f"{self.batches:020}.snapshot", seal(_SNAPSHOT_MAGIC, data))
        self._base, self._segment_size = self.batches, 0

    def _forget(self) -> None:
        """Remove what lies before the snapshots that are kept; failing costs only room."""
        kept = _numbers(self._disk, "snapshot")[-_KEPT_SNAPSHOTS:]
        for kind in ("records", "snapshot"):
            for number in _numbers(self._disk, kind):
                if kept and number < kept[0]:
                    self._disk.remove(f"{number:020}.{kind}")

    # Reading

    def _recover(self) -> tuple[LogState, int, bytes | None]:
        """Find the state: the newest snapshot that is whole, and every batch after it.

        Returns it, the number of batches, and, where the last file of records has to be written
        anew, what belongs there.
        """
        snapshots = _numbers(self._disk, "snapshot")
        broken: list[str] = []
        for number in reversed(snapshots):
            name = f"{number:020}.snapshot"
            try:
                state = self._read_snapshot(name)
            except StoreError as error:
                broken.append(str(error))
                continue
            break
        else:
            number, state = 0, LogState(levels=FinalizedLevels(levels=dict(self.format.levels)))
        self._has_broken_snapshot = bool(broken)
        self.warnings = tuple(broken)
        segments = [start for start in _numbers(self._disk, "records") if start >= number]
        mended: bytes | None = None
        count = self._base = number
        for start in segments:
            if mended is not None or start != count:
                said = "".join(f"; {one}" for one in broken)
                raise StoreError(f"records {count} to {start} of the feature log are missing{said}")
            state, count, mended = self._read_segment(state, start)
            self._base = start
        if snapshots and count < snapshots[-1]:
            raise StoreError(f"the feature log has lost its state: {'; '.join(broken)}")
        return state, count, mended

    def _read_snapshot(self, name: str) -> LogState:
        body = unseal(_SNAPSHOT_MAGIC, self._disk.read(name, 2 * BATCH_LIMIT), name=name)
        return replay(LogState(), decode_batch(body, name=name))

    def _read_segment(self, state: LogState, start: int) -> tuple[LogState, int, bytes | None]:
        name = f"{start:020}.records"
        place = str(self._disk.folder / name) if isinstance(self._disk, FolderDisk) else name
        data = self._disk.read(name, 2 * SEGMENT_LIMIT)
        segment = read_segment(data, start, name=place)
        count = start
        for body in segment.bodies:
            state = replay(state, decode_batch(body, name=f"record {count} of {place}"))
            count += 1
        self._segment_size = len(segment.data)
        if segment.zeros:
            said = f"{segment.dropped} bytes that a power cut left at the end of {place}"
            self.warnings += (f"{said} hold zeros where a record belongs; they are dropped",)
        return state, count, None if segment.data == data else segment.data

    def _tidy(self, mended: bytes | None) -> None:
        """Take away what a crash left: unfinished files, a frame that was cut off."""
        for name in self._disk.names():
            if name.endswith(PARTIAL):
                self._disk.remove(name)
        if mended is not None:
            self._disk.replace(f"{self._base:020}.records", mended)
        if self._has_broken_snapshot:
            self._write_snapshot()


def _numbers(disk: Disk, kind: str) -> list[int]:
    """Return the numbers in the names of the log's own files of one kind, ascending."""
    found = (_NAME.fullmatch(name) for name in disk.names())
    numbers = [int(name[1]) for name in found if name is not None and name[2] == kind]
    return sorted(number for number in numbers if number < _NUMBERS)


def look_at_log(disk: Disk) -> FeatureLog:
    """Read a log that somebody else may be writing; what was removed in between is looked for anew.

    Raises:
        StoreError: as of `FeatureLog`.
    """
    for _ in range(_LOOKS - 1):
        with suppress(StoreError):
            return FeatureLog(disk, is_reader=True)
    return FeatureLog(disk, is_reader=True)


@contextmanager
def opened_log(folder: str | Path) -> Iterator[FeatureLog]:
    """Open a log for writing, alone.

    Raises:
        StoreError: another process writes it now, or as of `FeatureLog`.
    """
    disk = FolderDisk(folder)
    read_format(disk)
    lock = FileLock(disk.folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise StoreError(f"another process writes {folder}; try again when it is done") from error
    except OSError as error:
        raise StoreError(f"{lock.lock_file} cannot be locked: {error.strerror}") from error
    try:
        yield FeatureLog(disk)
    finally:
        lock.release()
