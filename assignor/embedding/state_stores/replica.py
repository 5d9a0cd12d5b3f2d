"""One store of one task: its local copy, and the changelog records that it is made of."""

import time
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final
from uuid import UUID

from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    NOBODY,
    OWNER_KEY,
    ChangelogRecord,
    Commit,
    NewRecord,
    Owner,
    Writes,
    is_plausible,
    owned_record,
    owner_of,
    read_commit,
)
from assignor.embedding.state_stores.tables import NO_PROGRESS, StateTable
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

REBUILD_AFTER_S: Final = 12 * 3600.0
"""Longest age at which a copy that is behind is not rebuilt.

Brokers remove tombstones after `delete.retention.ms`, 24 hours by default. A copy that misses one
would keep the key forever.
"""


def rebuild_after_s(delete_retention_ms: int) -> float:
    """Return the age from which a copy that is behind is rebuilt.

    Half of the time that tombstones are kept, because restoring takes time. A longer time than the
    default changes nothing: the setting is for new topics, and this one may be older.
    """
    return min(REBUILD_AFTER_S, delete_retention_ms / 2000)


# Clocks that are adjusted go back so far.
_CLOCK_STEP_S: Final = 60.0
_CHECKS: Final = 12
"""How often the age of a copy that is read is looked at, within the age at which it is rebuilt."""
_TOMBSTONES: Final = 2
"""How long tombstones are kept, in ages at which a copy is rebuilt."""


class Replica:
    """A copy of one changelog partition, for `ChangelogAccess.read`.

    Args:
        name: of the store.
        changelog: the partition.
        table: the local copy.
        rebuild_after_s: age from which the copy is rebuilt if it is behind.

    Attributes:
        name, changelog, table: as given.
        restored: entries that `restore` has written or deleted.
    """

    def __init__(
        self,
        name: str,
        changelog: TopicPartition,
        table: StateTable,
        rebuild_after_s: float = REBUILD_AFTER_S,
    ) -> None:
        self.name = name
        self.changelog = changelog
        self.table = table
        self._rebuild_after_s = rebuild_after_s
        self._checked_ms = 0
        # Offset behind the last record at a time that was looked at, and this time.
        self._end_at: tuple[int, int] | None = None
        # This process reads the changelog from its first record; how often that has begun.
        self._is_first_pass = False
        self._passes = 0
        self.restored = 0

    @property
    def position(self) -> int:
        """Offset of the next record to read."""
        return self.table.progress.position

    @property
    def owner(self) -> Owner:
        """Owner of the last record that counted."""
        return self.table.progress.owner

    @property
    def unowned(self) -> AbstractSet[bytes]:
        """Keys of records that were read and do not count, because their owner had lost the task.

        Compaction may remove the records that they follow, so that these keys have to be written
        again. They are stored with the position, which is behind these records.
        """
        return self.table.unowned

    @property
    def commit(self) -> Commit:
        """The last commit record that counted.

        Raises:
            StoreError: it is not valid.
        """
        name = f"a commit record of {self.changelog.topic}-{self.changelog.partition}"
        return read_commit(self.table.progress.commit, name=name)

    @property
    def needs_check(self) -> bool:
        """Whether `check_range` is due: the copy has not been known to be complete for a while."""
        known_ms = max(self._checked_ms, self.table.progress.complete_ms)
        return _now_ms() - known_ms > self._rebuild_after_s * 1000 / _CHECKS

    def check_range(self, start: int, end: int, topic_id: UUID | None = None) -> None:
        """Remove all entries if the changelog cannot complete them.

        Called before the changelog is read, and while it is read when `needs_check`.

        Args:
            start: offset of the first record of the changelog.
            end: offset behind its last record.
            topic_id: of its topic; None: not known.

        Raises:
            StoreError: the table cannot be written.
        """
        progress = self.table.progress
        self._checked_ms = _now_ms()
        age_s = (self._checked_ms - progress.complete_ms) / 1000
        if progress == NO_PROGRESS:
            why = ""
        elif None not in (progress.topic_id, topic_id) and progress.topic_id != topic_id:
            why = "the changelog was deleted and made anew"
        elif progress.position > end:
            why = f"the changelog ends at {end}: it was made anew, or has lost records"
        elif progress.position < start:
            why = f"the changelog begins at {start}"
        elif progress.position < end and self._may_lack_deletions(age_s):
            why = f"it was complete {age_s / 3600:.1f} hours ago, and may lack deletions"
        elif progress.position < end and age_s < -_CLOCK_STEP_S:
            why = f"its time is {-age_s / 3600:.1f} hours from now, so that its age is unknown"
        else:
            why = ""
        if why:
            changelog = f"{self.changelog.topic}-{self.changelog.partition}"
            _log.info(
                "state of %s up to offset %s is rebuilt: %s", changelog, progress.position, why
            )
            self.table.clear()
        self._take_range(start, end, topic_id)

    def _may_lack_deletions(self, age_s: float) -> bool:
        """Whether tombstones that the copy has not read may be gone already.

        One that this process reads from the first record on had no key before: it has as long as
        tombstones are kept. If that is not enough, it is not begun again and again.
        """
        if not self._is_first_pass:
            return age_s > self._rebuild_after_s
        if age_s <= self._rebuild_after_s * _TOMBSTONES:
            return False
        if self._passes == 1:
            return True
        _log.warning(
            "restoring %s-%s takes more than %.1f hours, longer than its deletions are kept: keys"
            " that are deleted meanwhile may stay; raise its delete.retention.ms",
            self.changelog.topic,
            self.changelog.partition,
            age_s / 3600,
        )
        return False

    def _take_range(self, start: int, end: int, topic_id: UUID | None) -> None:
        """Begin at the first record at the earliest, and note what the copy has at this time."""
        kept = self.table.progress
        if kept.complete_ms == 0:
            self._is_first_pass = True
            self._passes += 1
        position = max(kept.position, start)
        complete_ms = kept.complete_ms or self._checked_ms
        if position >= end:
            complete_ms = self._complete_at(self._checked_ms)
        else:
            self._end_at = (end, self._checked_ms)
        taken = replace(
            kept,
            position=position,
            topic_id=topic_id or kept.topic_id,
            complete_ms=complete_ms,
        )
        if taken != kept:
            self.table.apply({}, taken)

    def _complete_at(self, at_ms: int) -> int:
        """Note that the copy has all records of a time; return the time."""
        self._is_first_pass, self._passes, self._end_at = False, 0, None
        return at_ms

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Apply records of the changelog, in one transaction.

        Raises:
            StoreError: the table cannot be written.
        """
        progress, writes = self.table.progress, dict[bytes, bytes | None]()
        position, owner, commit = progress.position, progress.owner, progress.commit
        unowned = dict[bytes, bool]()
        for record in records:
            if record.offset < position or record.key is None:
                continue
            position = record.offset + 1
            found = self._fencing_owner(record, after=owner)
            if found < owner:
                unowned[record.key] = True
                continue
            owner = found
            if record.key in unowned or record.key in self.unowned:
                unowned[record.key] = False
            if record.key == COMMIT_KEY:
                commit = record.value or b""
            elif record.key != OWNER_KEY:
                writes[record.key] = record.value
        complete_ms = progress.complete_ms or _now_ms()
        if self._end_at is not None and position >= self._end_at[0]:
            complete_ms = self._complete_at(self._end_at[1])
        now = replace(
            progress, position=position, owner=owner, commit=commit, complete_ms=complete_ms
        )
        self.table.apply(writes, now, unowned)
        self.restored += len(writes)

    def missing(self, writes: Writes) -> dict[bytes, bytes | None]:
        """Return the writes that differ from the entries."""
        return {key: value for key, value in writes.items() if self.table.get(key) != value}

    def repairs(
        self, writes: Writes, *, commit: bytes = b""
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield `writes`, and the keys in `unowned` with their values after `writes`.

        The commit record is the first, if it is in `unowned` or differs. Values are read when they
        are asked for.

        Args:
            writes: that are written besides.
            commit: value of the task's last commit record.
        """
        keys = sorted((self.unowned | writes.keys()) - {COMMIT_KEY, OWNER_KEY})
        if COMMIT_KEY in self.unowned or commit != self.table.progress.commit:
            yield COMMIT_KEY, commit or None
        for key in keys:
            yield key, writes[key] if key in writes else self.table.get(key)

    def new_records(self, writes: Writes, owner: Owner) -> list[NewRecord]:
        """Return the records of writes."""
        return [owned_record(self.changelog, key, value, owner) for key, value in writes.items()]

    def is_next(self, offsets: Iterable[int], *, after: int = 0) -> bool:
        """Return whether these are the next offsets, so that no other member wrote in between.

        Args:
            offsets: where records were written.
            after: how many records of this process are between `position` and these.
        """
        found = sorted(offsets)
        first = self.position + after
        return found == list(range(first, first + len(found)))

    def written(self, writes: Writes, *, position: int, owner: Owner, commit: bytes = b"") -> None:
        """Apply what this process wrote to the changelog.

        Args:
            writes: that are records of the changelog now.
            position: offset behind the last of them.
            owner: of these records.
            commit: value of the commit record among them; empty without one.

        Raises:
            StoreError: the table cannot be written.
        """
        progress = self.table.progress
        entries = {key: value for key, value in writes.items() if key != COMMIT_KEY}
        now = replace(
            progress,
            position=position,
            owner=owner,
            commit=commit or progress.commit,
            complete_ms=self._complete_at(_now_ms()),
        )
        self.table.apply(entries, now, dict.fromkeys(self.unowned & writes.keys(), False))

    def _fencing_owner(self, record: ChangelogRecord, *, after: Owner) -> Owner:
        """The owner that wrote a record: it fences earlier ones; `NOBODY` if implausible."""
        found = owner_of(record.headers)
        if is_plausible(found, after=after):
            return found
        changelog = f"{self.changelog.topic}-{self.changelog.partition}"
        _log.warning(
            "the record at offset %s of %s names owner epoch %s, which no claim has; the header is "
            "ignored. Does another program write to this changelog?",
            record.offset,
            changelog,
            found.epoch,
        )
        return NOBODY


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
