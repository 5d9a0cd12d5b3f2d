"""A group's feature log in a directory: finalized levels that survive a power cut at any byte.

```
format.bin                       log id, creation time and initial levels
00000000000000000007.snapshot    the complete state after 7 batches
00000000000000000007.records     the 8th and later batches, one frame each
```
A batch is acknowledged when its frame is on the disk. A change of levels writes two snapshots, the
old state in the old format before it and the new state in the new format after it (KIP-778); the
older one is kept until the next change. A truncated frame at the end was never acknowledged and is
dropped. A damaged frame is an error, and nothing is changed (`frames.py`). Other files are ignored.
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
    store_errors,
    text,
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
"""Bytes of records after which a snapshot is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """The content of `format.bin`, which `assignor storage format` writes.

    Attributes:
        log_id: random hexadecimal digits that identify the log.
        levels: initial finalized levels (KIP-778).
        at_ms: creation time, in milliseconds since 1970.
    """

    log_id: str
    levels: Mapping[str, int]
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """An acknowledged change.

    Attributes:
        state: the state after the change.
        dropped: what a downgrade lost, one sentence each.
    """

    state: LogState
    dropped: tuple[str, ...] = ()


def format_log(disk: Disk, wanted: LogFormat, *, ignore_formatted: bool = False) -> bool:
    """Create a log; return whether it was created.

    Args:
        disk: an empty directory, or one with only a log.
        wanted: log id, initial levels and creation time.
        ignore_formatted: return False instead of raising an error if a log exists.

    Raises:
        StoreError: a log exists, or a level is unknown.
    """
    check_levels(wanted.levels)
    if FORMAT_NAME in disk.names():
        if ignore_formatted:
            return False
        found = read_format(disk)
        raise StoreError(
            f"the feature log {found.log_id} already exists; add --ignore-formatted to keep it"
        )
    body = {
        "log_id": wanted.log_id,
        "levels": sorted(wanted.levels.items()),
        "at_ms": wanted.at_ms,
    }
    disk.replace(FORMAT_NAME, seal(_FORMAT_MAGIC, msgpack.packb(body)))
    return True


def read_format(disk: Disk) -> LogFormat:
    """Return the content of a log's `format.bin`.

    Raises:
        StoreError: the directory is not formatted, or the file is damaged.
    """
    if FORMAT_NAME not in disk.names():
        raise StoreError("there is no feature log; create one with `assignor storage format`")
    problem, remedy = "has a valid checksum but invalid content", "restore the directory"
    with store_errors(FORMAT_NAME, problem=problem, remedy=f"{remedy} from a backup"):
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
    """An open log; only one process at a time may write.

    Args:
        disk: the log's directory.
        is_reader: whether to skip repairs, so that reading is possible at any time.

    Raises:
        StoreError: the directory is not formatted, the log is damaged, or a later release wrote it
            in a format that this release does not read.

    Attributes:
        state: the state after the last batch that is on the disk.
        batches: number of acknowledged batches.
        warnings: damage that was repaired or tolerated.
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
        """Finalize levels (0 disables a feature) and raise minimums: all of them or none.

        Raises:
            StoreError: a level is unknown, or the log cannot be written; in the latter case open
                the log again to read its state.
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
            # The change is acknowledged; the next reader gets it from the records.
            self.warnings += (f"the change is saved, but without a snapshot: {error}",)
        return Committed(state=after, dropped=dropped)

    def register(self, member: str, ranges: Mapping[str, LevelRange] | None) -> LogState:
        """Record what a member supports, or remove the member with None; return the new state.

        Raises:
            StoreError: the log cannot be written.
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
            raise StoreError("an earlier write to this feature log failed; open the log again")
        data = frame(self.batches, encode_batch(batch, log_format=log_format))
        try:
            self._disk.append(f"{self._base:020}.records", data)
        except StoreError:
            # A part of the frame may be on the disk; nothing may be appended to it.
            self._has_failed = True
            raise
        # The batch is acknowledged.
        self._segment_size += len(data)
        self.batches += 1
        self.state = replay(self.state, batch)

    def _write_snapshot(self) -> None:
        data = encode_batch(snapshot(self.state), log_format=self.state.format)
        self._disk.replace(f"{self.batches:020}.snapshot", seal(_SNAPSHOT_MAGIC, data))
        self._base, self._segment_size = self.batches, 0

    def _forget(self) -> None:
        """Remove files older than the snapshots that are kept; a failure only wastes disk space."""
        kept = _numbers(self._disk, "snapshot")[-_KEPT_SNAPSHOTS:]
        for kind in ("records", "snapshot"):
            for number in _numbers(self._disk, kind):
                if kept and number < kept[0]:
                    self._disk.remove(f"{number:020}.{kind}")

    # Reading

    def _recover(self) -> tuple[LogState, int, bytes | None]:
        """Return the state: the newest valid snapshot and all batches after it.

        Also return the number of batches, and the repaired content of the last records file; None
        if it needs no repair.
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
                also = "".join(f"; {sentence}" for sentence in broken)
                raise StoreError(f"the feature log lacks records {count} to {start}{also}")
            state, count, mended = self._read_segment(state, start)
            self._base = start
        if snapshots and count < snapshots[-1]:
            raise StoreError(
                f"the feature log lacks records {count} to {snapshots[-1]}, and no later snapshot "
                f"is valid: {'; '.join(broken)}"
            )
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
            end = f"{place} ends with {segment.dropped} bytes of a record"
            self.warnings += (f"{end} that a power cut interrupted; they are dropped",)
        return state, count, None if segment.data == data else segment.data

    def _tidy(self, mended: bytes | None) -> None:
        """Remove what a crash left behind: temporary files and a truncated frame."""
        for name in self._disk.names():
            if name.endswith(PARTIAL):
                self._disk.remove(name)
        if mended is not None:
            self._disk.replace(f"{self._base:020}.records", mended)
        if self._has_broken_snapshot:
            self._write_snapshot()


def _numbers(disk: Disk, kind: str) -> list[int]:
    """Return the numbers in the names of the log's files of one kind, ascending."""
    found = (_NAME.fullmatch(name) for name in disk.names())
    numbers = [int(name[1]) for name in found if name is not None and name[2] == kind]
    return sorted(number for number in numbers if number < _NUMBERS)


def look_at_log(disk: Disk) -> FeatureLog:
    """Return a log for reading; retry if a writer removes files meanwhile.

    Raises:
        StoreError: as in `FeatureLog`.
    """
    for _ in range(_LOOKS - 1):
        with suppress(StoreError):
            return FeatureLog(disk, is_reader=True)
    return FeatureLog(disk, is_reader=True)


@contextmanager
def opened_log(folder: str | Path) -> Iterator[FeatureLog]:
    """Yield a log for writing, with an exclusive lock.

    Raises:
        StoreError: another process is writing the log; and as in `FeatureLog`.
    """
    disk = FolderDisk(folder)
    read_format(disk)
    lock = FileLock(disk.folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise StoreError(f"another process is writing {folder}; try again later") from error
    except OSError as error:
        raise StoreError(f"{lock.lock_file} cannot be locked: {error.strerror}") from error
    try:
        yield FeatureLog(disk)
    finally:
        lock.release()
