"""One store of one task: its local copy, and the changelog records that it is made of."""

import math
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final
from uuid import UUID

from assignor.embedding.errors import ChangelogLost, MemberStopped
from assignor.embedding.input_facts import Held, InputFacts, LogRange
from assignor.embedding.input_rules import settle
from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    NOBODY,
    OWNER_KEY,
    UNKNOWN_OFFSET,
    ChangelogRecord,
    Commit,
    NewRecord,
    Owner,
    Writes,
    fencing_owner,
    owned_record,
    read_commit,
)
from assignor.embedding.state_stores.tables import (
    NO_PROGRESS,
    REBUILD_AFTER_S,
    Moment,
    StateTable,
    has_whole_task,
)
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

# Parts of the age at which a copy is rebuilt:
_FIRST_PASS: Final = 1.5  # one that this process has begun may be older: it misses fewer tombstones
_BETWEEN_CHECKS: Final = 1 / 12
_CLOCKS_DIFFER: Final = 1 / 4  # the age may be wrong by this at both ends, and is below 2 in all


class Replica:
    """A copy of one changelog partition, for `ChangelogAccess.read`.

    Args:
        name: of the store.
        changelog: the partition.
        table: the local copy.
        rebuild_after_s: age from which the copy is rebuilt if it is behind.
        is_only_compacted: brokers delete no record of the changelog, whatever its age.

    Attributes:
        name, changelog, table: as given.
        restored: entries that `restore` has written or deleted since the last takeover began.
        hidden: value of the last commit record that was read and does not count.
        peers: the copies of all stores of its task, this one among them.
    """

    def __init__(
        self,
        name: str,
        changelog: TopicPartition,
        table: StateTable,
        rebuild_after_s: float = REBUILD_AFTER_S,
        *,
        is_only_compacted: bool = False,
    ) -> None:
        self.name = name
        self._is_only_compacted = is_only_compacted
        self.changelog = changelog
        self._name = f"{changelog.topic}-{changelog.partition}"
        self.table = table
        self._rebuild_after_s = rebuild_after_s
        # When the copy last had all records; of one that never had them, when it was begun.
        self._is_first_pass = not table.progress.complete_ms
        noted = Moment(table.progress.complete_ms, math.inf)
        self._complete = Moment.now() if self._is_first_pass else noted
        self._checked: Moment | None = None  # when `check_range` was last called; None: it is due
        # Offset behind the last record at a moment that was looked at.
        self._end_at: tuple[int, Moment] | None = None
        # A first pass took too long, and this is the next; a warning says that it does, too.
        self._is_second_try = self._is_slow = False
        # Why the copy is rebuilt with the next check, if it still lacks records.
        self._doubt = ""
        # End of what the copy has of the changelog, and a lower one where it was written on.
        self._overwritten: tuple[int, int] | None = None
        self.restored = 0
        self.hidden = b""
        self.peers: tuple[Replica, ...] = (self,)

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
        return read_commit(self.table.progress.commit, name=f"a commit record of {self._name}")

    @property
    def needs_check(self) -> bool:
        """Whether `check_range` is due, as its last call is a while ago."""
        interval_s = self._rebuild_after_s * _BETWEEN_CHECKS
        return self._checked is None or self._checked.age_s() > interval_s

    def check_range(
        self, start: int, end: int, topic_id: UUID | None = None, asked_ms: int | None = None
    ) -> None:
        """Remove all entries if the changelog cannot complete them.

        Called before the changelog is read, and while it is read when `needs_check`.

        Args:
            start: offset of the first record of the changelog.
            end: offset behind its last record.
            topic_id: of its topic; None: not known.
            asked_ms: when the offsets were asked for, in ms since 1970; None: now.

        Raises:
            ChangelogLost: the changelog has lost what this copy has, which stays as it is.
            StoreError: the table cannot be written.
        """
        at, ended = self._overwritten or (self.position, end)
        self._clear_if_lost(LogRange(start, min(end, ended), topic_id), at)
        self._overwritten = None
        progress, now = self.table.progress, Moment.now()
        checked = now if asked_ms is None else now.before(max(0, now.wall_ms - asked_ms) / 1000)
        why = "" if progress == NO_PROGRESS or progress.position >= end else self._doubt
        self._is_second_try |= bool(why) and self._is_first_pass
        if why:
            _log.info("state of %s up to offset %s is rebuilt: %s", self._name, self.position, why)
            self._clear()
        self._take_range(start, end, topic_id, checked)

    def _take_range(self, start: int, end: int, topic_id: UUID | None, checked: Moment) -> None:
        """Begin at the first record at the earliest, and note what the copy has at this time."""
        kept = self.table.progress
        self._checked, self._doubt = checked, ""
        if not kept.complete_ms:
            self._complete, self._is_first_pass = checked, True
        position = max(kept.position, start)
        if position >= end:
            self._note_complete(checked)
        else:
            self._end_at = (end, checked)
        known_id, complete_ms = topic_id or kept.topic_id, self._complete.wall_ms
        taken = replace(kept, position=position, topic_id=known_id, complete_ms=complete_ms)
        if taken != kept:
            self.table.apply({}, taken)

    def _note_complete(self, at: Moment) -> None:
        """Note that the copy has all records of a moment."""
        self._complete, self._end_at = at, None
        self._is_first_pass = self._is_second_try = self._is_slow = False

    def _why_too_old(self, new: Sequence[ChangelogRecord]) -> str:
        """Return why tombstones before these records may be gone already; "": none is.

        A first pass that took too long is not begun a third time: that would take as long again.
        """
        age_s, hour_s = self._complete.age_s(), 3600
        if age_s > self._rebuild_after_s * (_FIRST_PASS if self._is_first_pass else 1):
            if not self._is_second_try:
                return f"it was complete {age_s / hour_s:.1f} hours ago, and may lack deletions"
            if not self._is_slow:
                self._is_slow = True
                _log.warning(
                    "restoring %s takes %.1f hours so far, about as long as its deletions are kept:"
                    " keys that are deleted meanwhile may stay; raise its delete.retention.ms",
                    self._name,
                    age_s / hour_s,
                )
        return self._complete.why_wrong(new, self._rebuild_after_s * _CLOCKS_DIFFER)

    def _clear_if_lost(self, log: LogRange, at: int) -> None:
        table = self.table
        facts = InputFacts(
            held=Held.CHANGELOG,
            partition=self.changelog,
            log=log,
            at=at,
            known_id=table.progress.topic_id,
            is_only_compacted=self._is_only_compacted,
            copy=table.place if has_whole_task(peer.table for peer in self.peers) else "",
            remedy=table.remedy,
        )
        try:
            if settle(facts) is None:
                self._clear()
        except MemberStopped as error:
            raise ChangelogLost(str(error), [self.changelog.topic]) from None

    def _clear(self) -> None:
        """Remove all entries: the other copies of the task do not have its whole state any more."""
        self.table.clear()
        for peer in self.peers:
            if peer.table.progress.claim != NOBODY:
                peer.table.apply({}, replace(peer.table.progress, claim=NOBODY))

    def note_complete(self, owner: Owner) -> None:
        """Note that the copy has all of its task's state, which this owner runs from now on.

        Until it reads a record of another owner, `check_range` does not clear it (KIP-698).

        Raises:
            StoreError: the table cannot be written.
        """
        self.table.apply({}, replace(self.table.progress, claim=owner))

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Apply records of the changelog, in one transaction.

        `position` stays the same if the copy has become too old meanwhile: `needs_check` then.

        Raises:
            StoreError: the table cannot be written.
        """
        new = [record for record in records if record.offset >= self.position]
        self._doubt = self._why_too_old(new) if new else ""
        if self._doubt:
            self._checked = None
        elif new:
            self._apply(new)

    def _apply(self, new: Sequence[ChangelogRecord]) -> None:
        """Apply records behind the position."""
        progress, writes = self.table.progress, dict[bytes, bytes | None]()
        position, owner, commit = progress.position, progress.owner, progress.commit
        unowned = dict[bytes, bool]()
        for record in new:
            position = record.offset + 1
            if record.key is None:
                continue
            found = fencing_owner(record, after=owner, name=self._name)
            if found < owner:
                unowned[record.key] = True
                if record.key == COMMIT_KEY:
                    self.hidden = record.value or b""
                continue
            owner = found
            if record.key in unowned or record.key in self.unowned:
                unowned[record.key] = False
            if record.key == COMMIT_KEY:
                commit = record.value or b""
            elif record.key != OWNER_KEY:
                writes[record.key] = record.value
        complete = self._complete
        if self._end_at is not None and position >= self._end_at[0]:
            complete = self._end_at[1]
        now = replace(
            progress, position=position, owner=owner, commit=commit, complete_ms=complete.wall_ms
        )
        self.table.apply(writes, now, unowned)
        if complete is not self._complete:
            self._note_complete(complete)
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
            commit: value of the task's last commit record. Empty: none is left, and one that
                does not count stays, as it says that there was one.
        """
        keys = sorted((self.unowned | writes.keys()) - {COMMIT_KEY, OWNER_KEY})
        if commit and (COMMIT_KEY in self.unowned or commit != self.table.progress.commit):
            yield COMMIT_KEY, commit
        for key in keys:
            yield key, writes[key] if key in writes else self.table.get(key)

    def new_records(self, writes: Writes, owner: Owner) -> list[NewRecord]:
        """Return the records of writes."""
        return [owned_record(self.changelog, key, value, owner) for key, value in writes.items()]

    def is_next(self, offsets: Iterable[int], *, after: int = 0) -> bool:
        """Return whether these are the next offsets: no other member wrote in between.

        If they are lower ones, the changelog has lost records: `check_range` is due.

        Args:
            offsets: where records were written.
            after: how many records of this process are between `position` and these.
        """
        found = sorted(offsets)
        first = self.position + after
        if found and UNKNOWN_OFFSET < found[0] < first:
            self._overwritten, self._checked = (first, found[0]), None
        return found == list(range(first, first + len(found)))

    def written(
        self, writes: Writes, *, position: int, owner: Owner, begun: Moment, commit: bytes = b""
    ) -> None:
        """Apply what this process wrote to the changelog.

        Args:
            writes: that are records of the changelog now.
            position: offset behind the last of them.
            owner: of these records.
            begun: when they began to be written; the copy had all records of that moment.
            commit: value of the commit record among them; empty without one.

        Raises:
            StoreError: the table cannot be written.
        """
        entries = {key: value for key, value in writes.items() if key != COMMIT_KEY}
        self._note_complete(begun)
        now = replace(
            self.table.progress,
            position=position,
            owner=owner,
            commit=commit or self.table.progress.commit,
            complete_ms=begun.wall_ms,
        )
        self.table.apply(entries, now, dict.fromkeys(self.unowned & writes.keys(), False))
