"""One store of one task: its local copy, and the changelog records that it is made of."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from uuid import UUID

from assignor.embedding.input_rules import Held, InputFacts, LogRange, settle
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
from assignor.embedding.state_stores.tables import NO_PROGRESS, Progress, StateTable
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

REBUILD_AFTER_S: Final = 12 * 3600.0
"""Longest age at which a copy that is behind is not rebuilt.

Brokers remove tombstones after `delete.retention.ms`, 24 hours by default. A copy that misses one
would keep the key for ever.
"""


def rebuild_after_s(delete_retention_ms: int) -> float:
    """Return the age from which a copy that is behind is rebuilt.

    Half of the time that tombstones are kept, for restoring takes time, too. A longer time than the
    default changes nothing: the setting is for new topics, and this one may be older.
    """
    return min(REBUILD_AFTER_S, delete_retention_ms / 2000)


# Clocks that are adjusted go back so far.
_CLOCK_STEP_S: Final = 60.0


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
    def unowned(self) -> frozenset[bytes]:
        """Keys of records that were read and do not count, because their owner had lost the task.

        Compaction may remove the records that they follow, so that these keys have to be written
        again. They are stored with the position, which is behind these records.
        """
        return self.table.progress.unowned

    @property
    def commit(self) -> Commit:
        """The last commit record that counted.

        Raises:
            StoreError: it is not valid.
        """
        name = f"a commit record of {self.changelog.topic}-{self.changelog.partition}"
        return read_commit(self.table.progress.commit, name=name)

    def check_range(self, start: int, end: int, topic_id: UUID | None = None) -> None:
        """Remove all entries if the changelog cannot complete them; called before it is read.

        Args:
            start: offset of the first record of the changelog.
            end: offset behind its last record.
            topic_id: of its topic; None: not known.

        Raises:
            StoreError: the table cannot be written.
        """
        self._clear_if_lost(LogRange(start, end, topic_id))
        progress = self.table.progress
        age_s = time.time() - progress.saved_ms / 1000
        if progress == NO_PROGRESS:
            why = ""
        elif progress.position < end and age_s > self._rebuild_after_s:
            why = f"it is {age_s / 3600:.0f} hours old, and may lack deletions"
        elif progress.position < end and age_s < -_CLOCK_STEP_S:
            why = f"it was written {-age_s / 3600:.1f} hours from now, so that its age is unknown"
        else:
            why = ""
        if why:
            changelog = f"{self.changelog.topic}-{self.changelog.partition}"
            _log.info(
                "state of %s up to offset %s is rebuilt: %s", changelog, progress.position, why
            )
            self.table.clear()
        kept = self.table.progress
        topic_id = topic_id or kept.topic_id
        if kept.position < start or kept.topic_id != topic_id:
            # Not written anew otherwise: its age is still that of its last record.
            saved_ms = kept.saved_ms or _now_ms()
            position = max(kept.position, start)
            self.table.apply(
                {}, replace(kept, position=position, topic_id=topic_id, saved_ms=saved_ms)
            )

    def _clear_if_lost(self, log: LogRange) -> None:
        progress = self.table.progress
        facts = InputFacts(
            held=Held.CHANGELOG,
            partition=self.changelog,
            log=log,
            at=progress.position,
            known_id=progress.topic_id,
        )
        if progress != NO_PROGRESS and settle(facts) is None:
            self.table.clear()

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Apply records of the changelog, in one transaction.

        Raises:
            StoreError: the table cannot be written.
        """
        progress, writes = self.table.progress, dict[bytes, bytes | None]()
        position, owner, commit = progress.position, progress.owner, progress.commit
        unowned = set(progress.unowned)
        for record in records:
            if record.offset < position or record.key is None:
                continue
            position = record.offset + 1
            found = self._fencing_owner(record, after=owner)
            if found < owner:
                unowned.add(record.key)
                continue
            owner = found
            unowned.discard(record.key)
            if record.key == COMMIT_KEY:
                commit = record.value or b""
            elif record.key != OWNER_KEY:
                writes[record.key] = record.value
        self._apply(
            writes,
            replace(
                progress,
                position=position,
                owner=owner,
                commit=commit,
                unowned=frozenset(unowned),
            ),
        )
        self.restored += len(writes)

    def missing(self, writes: Writes) -> dict[bytes, bytes | None]:
        """Return the writes that differ from the entries."""
        return {key: value for key, value in writes.items() if self.table.get(key) != value}

    def repairs(self, writes: Writes, *, commit: bytes = b"") -> dict[bytes, bytes | None]:
        """Return values of the keys in `unowned`, as they are after `writes`.

        The commit record is among them, and the first, if it is in `unowned` or differs.

        Args:
            writes: that are written besides.
            commit: value of the task's last commit record.
        """
        values: dict[bytes, bytes | None] = {}
        if COMMIT_KEY in self.unowned or commit != self.table.progress.commit:
            values[COMMIT_KEY] = commit or None
        for key in sorted(self.unowned - {COMMIT_KEY, OWNER_KEY}):
            values[key] = writes[key] if key in writes else self.table.get(key)
        return values

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
        self._apply(
            entries,
            replace(
                progress,
                position=position,
                owner=owner,
                commit=commit or progress.commit,
                unowned=self.unowned - writes.keys(),
            ),
        )

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

    def _apply(self, writes: Writes, progress: Progress) -> None:
        self.table.apply(writes, replace(progress, saved_ms=_now_ms()))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
