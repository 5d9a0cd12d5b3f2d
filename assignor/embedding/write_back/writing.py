"""How the copies of a task are written to its changelogs, so that a kill at any moment is harmless.

1. An owner record in each changelog: what earlier owners write from now on does not count.
2. Entries that differ, tombstones for keys that only the changelog has, and a commit record with
   the input offsets of the copies.
3. The changelogs are restored into empty tables, and compared with the copies.
4. The committed offsets of the group are set to those of the copies.
5. A second owner record, with a higher `count_write_backs`: from now on the changelogs are ahead of
   copies that were kept before.
6. The copies get their place in the changelogs, and their notes are removed.

A run that ends before leaves the notes, and the next one does everything again: until 5, the copy
counts more than what members have written since.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

from assignor.embedding.kept import remove_notes
from assignor.embedding.state_stores.access import ChangelogAccess
from assignor.embedding.state_stores.copies import TaskCopy
from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    OWNER_KEY,
    PROCESS_BYTES,
    UNKNOWN_OFFSET,
    NewRecord,
    Owner,
    commit_bytes,
    next_owner,
    owned_record,
    write_back_owner,
)
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import Moment, Progress
from assignor.embedding.state_stores.takeover import ChangelogEnds
from assignor.embedding.write_back.copies import KeptStore, KeptTask
from assignor.embedding.write_back.plan import WriteBackPlan
from assignor.stores import StoreError
from encoding import TopicPartition

_MOST_RECORDS: Final = 1000
_MOST_BYTES: Final = 1 << 20
_WAIT_S: Final = 0.2
_OTHER: Final = "another process has written to it meanwhile; stop all members of the group"
_LOST: Final = (
    "records of it are lost again, or of a program that is not a member; check the brokers for an "
    "unclean leader election, and who may write to this topic"
)
_UNKNOWN: Final = "a request was repeated, and its broker has not said where its record is"

SetOffsets = Callable[[Mapping[TopicPartition, int]], None]
"""Sets committed offsets of the group; raises if it has members, or the offsets are not set."""


class TaskWriter:
    """Writes the copies of one task back.

    Args:
        kept: the copies, without a problem.
        access: to the changelogs.
        set_offsets: of the group.
    """

    def __init__(self, kept: KeptTask, access: ChangelogAccess, set_offsets: SetOffsets) -> None:
        self._kept, self._access, self._set_offsets = kept, access, set_offsets
        copied = {name: store.changelog for name, store in kept.stores.items()}
        self._changelogs = {**copied, **kept.missing}

    @contextmanager
    def restored(self) -> Iterator[TaskCopy]:
        """Yield what a restore of the changelogs has now, in temporary files.

        Raises:
            ClusterUnavailable: the changelogs cannot be read.
        """
        with tempfile.TemporaryDirectory(prefix="write-back-") as folder:
            tables = {
                name: SqliteTable(Path(folder) / f"{name}.db", changelog)
                for name, changelog in self._changelogs.items()
            }
            try:
                copy = TaskCopy(
                    self._kept.task,
                    {n: Replica(n, self._changelogs[n], table) for n, table in tables.items()},
                )
                self._read(copy)
                yield copy
            finally:
                for table in tables.values():
                    table.close()

    def differing(self, changelogs: TaskCopy) -> Mapping[str, int]:
        """Return store -> number of entries that are written or removed."""
        return {
            name: sum(1 for _ in differing(store, changelogs.replicas[name]))
            for name, store in self._kept.stores.items()
        }

    def execute(self, changelogs: TaskCopy, plan: WriteBackPlan) -> None:
        """Write the copies back, and remove their notes.

        Args:
            changelogs: what `restored` yields.
            plan: without refusals.

        Raises:
            ClusterUnavailable: changelogs or offsets cannot be read or written.
            StoreError: the changelogs do not have what was written, because another process writes
                for example, or a file cannot be used.
            MemberStopped, RecordTooLarge: as `ChangelogAccess.append`.
        """
        kept, process = self._kept, os.urandom(PROCESS_BYTES)
        for name in kept.missing:
            replica = changelogs.replicas[name]
            kept.stores[name] = KeptStore(replica.table, replica.changelog, None)
        kept.overlay()
        last = max([kept.owner, *(replica.owner for replica in changelogs.replicas.values())])
        owner = next_owner(last, process, name=f"task {kept.task}")
        commit = commit_bytes(replace(kept.commit, epoch=owner.epoch, writes={}))
        self._claim(changelogs, owner)
        for name, store in kept.stores.items():
            pairs = chain(differing(store, changelogs.replicas[name]), [(COMMIT_KEY, commit)])
            self._append(owned_record(store.changelog, k, v, owner) for k, v in pairs)
        begun = Moment.now()
        with self.restored() as found:
            for name, store in kept.stores.items():
                self._verify(store, found.replicas[name], owner, commit)
            self._set_offsets({m.partition: m.to for m in plan.moves if m.to is not None})
            final = write_back_owner(owner, process, name=f"task {kept.task}")
            self._claim(found, final)
            self._end(found, final, commit, begun)

    def _claim(self, read: TaskCopy, owner: Owner) -> None:
        """Write an owner record to each changelog, right behind what was read."""
        stores = self._kept.stores
        offsets = self._append(
            [owned_record(store.changelog, OWNER_KEY, b"", owner) for store in stores.values()]
        )
        for (name, store), offset in zip(stores.items(), offsets, strict=True):
            end = max(read.replicas[name].position, self._access.position(store.changelog))
            if offset != end:
                is_unknown = offset == UNKNOWN_OFFSET
                raise self._disturbed(
                    store, _UNKNOWN if is_unknown else _OTHER if offset > end else _LOST
                )

    def _end(self, found: TaskCopy, owner: Owner, commit: bytes, begun: Moment) -> None:
        """Give the copies their place in the changelogs, and remove the notes."""
        for name, store in self._kept.stores.items():
            if store.file is not None:
                now = Progress(
                    position=found.replicas[name].position + 1,
                    owner=owner,
                    commit=commit,
                    complete_ms=begun.wall_ms,
                    topic_id=found.replicas[name].table.progress.topic_id,
                    claim=owner,
                )
                table = store.table
                table.apply(store.writes, now, dict.fromkeys([*table.unowned], False))
        remove_notes(self._kept.directory)

    def _verify(self, store: KeptStore, found: Replica, owner: Owner, commit: bytes) -> None:
        progress = found.table.progress
        is_same = progress.owner == owner and progress.commit == commit
        if not is_same or next(differing(store, found), None) is not None:
            # What earlier owners had left in `unowned` was written again.
            has_other = progress.owner > owner or found.unowned
            raise self._disturbed(store, _OTHER if has_other else _LOST)

    def _disturbed(self, store: KeptStore, why: str) -> StoreError:
        return StoreError(
            f"{store.changelog.topic}-{store.changelog.partition} does not have what was written to"
            f" it: {why}; then run this command again: the copies of task {self._kept.task} are "
            "still kept"
        )

    def _append(self, records: Iterator[NewRecord] | list[NewRecord]) -> list[int]:
        """Write records, a part at a time; return their offsets."""
        offsets: list[int] = []
        part, size = list[NewRecord](), 0
        for record in records:
            part.append(record)
            size += len(record.key) + len(record.value or b"")
            if len(part) >= _MOST_RECORDS or size >= _MOST_BYTES:
                offsets += self._access.append(part)
                part, size = [], 0
        return [*offsets, *(self._access.append(part) if part else ())]

    def _read(self, copy: TaskCopy) -> None:
        """Read changelogs to their ends."""
        ends = ChangelogEnds(self._access)
        self._access.read([], wait_s=0)  # the next call begins with empty copies
        ends.begin([copy])
        while not ends.read([copy], wait_s=_WAIT_S):
            pass


def differing(store: KeptStore, found: Replica) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield keys and values to write, so that a restore has the entries of a copy; None: remove.

    Keys with records that do not count are among them: compaction may remove the others.
    """
    again = found.unowned - {COMMIT_KEY, OWNER_KEY}
    wanted, present = store.items(), found.table.items()
    kept, other = next(wanted, None), next(present, None)
    while kept is not None or other is not None:
        if other is None or (kept is not None and kept[0] < other[0]):
            if kept is not None:
                yield kept
            kept = next(wanted, None)
        elif kept is None or other[0] < kept[0]:
            yield other[0], None
            other = next(present, None)
        else:
            if kept[1] != other[1] or kept[0] in again:
                yield kept
            kept, other = next(wanted, None), next(present, None)
    for key in sorted(again):
        if store.get(key) is None and found.table.get(key) is None:
            yield key, None
