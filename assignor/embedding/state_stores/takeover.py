"""How a task becomes active here: restore its stores, claim it, and complete the last commit.

1. Read the changelogs up to their ends.
2. Write an owner record to each, with an epoch above all that were read. Records that an earlier
   owner writes behind it, because it was paused and does not know yet, do not count.
3. Read on up to these owner records. What is before them counts, what is behind does not, so this
   is the whole state. If another process claimed the task meanwhile, the later epoch wins.
4. Write the last commit record to changelogs that do not have it, and those of its writes that are
   missing as records of their own: the owner ended in between. Write values again that records of
   an earlier owner have hidden. These may be many: they are written a part at a time.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assignor.embedding.errors import ClusterUnavailable
from assignor.embedding.state_stores.access import ChangelogAccess
from assignor.embedding.state_stores.copies import Phase, TaskCopy
from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    OWNER_KEY,
    UNKNOWN_OFFSET,
    Commit,
    NewRecord,
    Writes,
    next_owner,
    owned_record,
)
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.tables import Moment
from assignor.logs import line_logger
from encoding import TaskId, TopicPartition

_log = line_logger(__name__)

_WAIT_S: Final = 0.1
# Without records for so long, the ends are asked for again, and the brokers do not send them.
_ASK_S: Final = 5.0
_SILENT_S: Final = 60.0
_LOOK_S: Final = 10.0
_MOST_RECORDS: Final = 1000
_MOST_BYTES: Final = 1 << 20
"""Of one append that completes tasks."""


class ChangelogEnds:
    """Reads the changelogs of tasks up to their ends.

    Args:
        access: to the changelogs.
    """

    def __init__(self, access: ChangelogAccess) -> None:
        self._access = access
        # How long calls have waited since a record came.
        self._silent_s = 0.0

    def begin(self, copies: Sequence[TaskCopy]) -> None:
        """Find out up to where to read; the copies are `RESTORING` then.

        Raises:
            ClusterUnavailable: a broker does not answer.
        """
        wanted = [replica.changelog for copy in copies for replica in copy.replicas.values()]
        ends = self._access.end_offsets(wanted) if wanted else {}
        for copy in copies:
            copy.targets = {
                name: ends[replica.changelog] for name, replica in copy.replicas.items()
            }
            copy.phase = Phase.RESTORING

    def read(self, copies: Sequence[TaskCopy], *, wait_s: float) -> list[TaskCopy]:
        """Read what has arrived; return the copies that have all records up to their targets.

        Raises:
            ClusterUnavailable: a broker does not answer, or sends no records though it has some.
        """
        begun_s = time.monotonic()
        replicas = [replica for copy in copies for replica in copy.replicas.values()]
        count = self._access.read(replicas, wait_s=wait_s)
        lacking = {copy.task: self._lacking(copy) for copy in copies}
        behind = [replica for found in lacking.values() for replica in found]
        if count or not behind:
            self._silent_s = 0.0
        else:
            waiting = [copy for copy in copies if lacking[copy.task]]
            self._wait(waiting, behind[0], time.monotonic() - begun_s)
        return [copy for copy in copies if not lacking[copy.task]]

    def _lacking(self, copy: TaskCopy) -> list[Replica]:
        """Return the copies that lack records.

        The last offsets may have none, such as those of a transaction's markers.
        """
        read_to = self._access.position
        return [
            replica
            for replica in copy.replicas.values()
            if max(replica.position, read_to(replica.changelog)) < copy.targets[replica.name]
        ]

    def _wait(self, copies: Sequence[TaskCopy], behind: Replica, seconds: float) -> None:
        before_s, self._silent_s = self._silent_s, self._silent_s + seconds
        if self._silent_s // _ASK_S > before_s // _ASK_S:
            self.begin(copies)  # the records that they wait for may be lost, also of a claim
        if self._silent_s > _SILENT_S:
            self._silent_s = 0.0
            raise ClusterUnavailable(
                f"{behind.changelog.topic}-{behind.changelog.partition} cannot be read: its broker "
                f"has sent no record from offset {behind.position} on for {_SILENT_S:.0f} s, and "
                "has more; look for a broker that is overloaded, or a quota of this user"
            )


class Takeovers:
    """Takes tasks over, a bit at each call of `advance`.

    Args:
        access: to the changelogs.
        process: of this process, in owner records.

    Attributes:
        has_more: whether the last call of `advance` has got further and left something.
    """

    def __init__(self, access: ChangelogAccess, process: bytes) -> None:
        self._access = access
        self._ends = ChangelogEnds(access)
        self._process = process
        self.has_more = False
        # Task -> positions in its changelogs at the last look, and when the next one is due.
        self._seen: dict[TaskId, Mapping[TopicPartition, int]] = {}
        self._next_look_s = 0.0

    def look_at_idle(self, copies: Iterable[TaskCopy]) -> None:
        """Begin to take over again what is `RUNNING`, and has changelogs that others write to.

        A former owner that was paused writes records that do not count and hide those of the owner:
        compaction removes these. An owner that writes finds them, and repairs what they hide. So
        this looks at changelogs of owners that have written nothing since the last look.
        """
        if time.monotonic() < self._next_look_s:
            return
        running = [copy for copy in copies if copy.phase is Phase.RUNNING and copy.replicas]
        before, self._seen = self._seen, {copy.task: copy.positions for copy in running}
        idle = [copy for copy in running if before.get(copy.task) == copy.positions]
        try:
            asked = [each for copy in idle for each in copy.positions]
            ends = self._access.end_offsets(asked) if asked else {}
        except ClusterUnavailable as error:
            _log.info("changelogs of idle tasks are looked at later: %s", error)
            ends = {}
        self._next_look_s = time.monotonic() + _LOOK_S
        for copy in idle:
            if any(ends.get(each, 0) > at for each, at in copy.positions.items()):
                _log.info("task %s is claimed again: others have written", copy.task)
                copy.look_again()

    def advance(self, copies: Iterable[TaskCopy], *, limit_s: float) -> None:
        """Take tasks over, until all are `RUNNING` or the time is over.

        Raises:
            ClusterUnavailable: the changelogs cannot be read or written; call it again.
            StoreError: a copy or a commit record cannot be used.
        """
        until_s = time.monotonic() + limit_s
        pending = [copy for copy in copies if copy.phase is not Phase.RUNNING]
        begun = {copy.task: (copy.phase, copy.offset_sum) for copy in pending}
        self.has_more = False
        while pending:
            self._ends.begin([copy for copy in pending if copy.phase is Phase.BEHIND])
            left_s = max(0.0, until_s - time.monotonic())
            reading = [copy for copy in pending if copy.phase is not Phase.COMPLETING]
            waits = len(reading) == len(pending) and not all(copy.has_reached for copy in reading)
            reached = self._ends.read(reading, wait_s=min(_WAIT_S, left_s) if waits else 0.0)
            restored = [copy for copy in reached if copy.phase is Phase.RESTORING]
            self._finish([copy for copy in reached if copy.phase is Phase.CLAIMED])
            self._claim(restored)
            self._complete([copy for copy in pending if copy.phase is Phase.COMPLETING])
            pending = [copy for copy in pending if copy.phase is not Phase.RUNNING]
            if time.monotonic() >= until_s:
                left = {copy.task: (copy.phase, copy.offset_sum) for copy in pending}
                self.has_more = bool(left.items() - begun.items())
                return

    def _claim(self, copies: Sequence[TaskCopy]) -> None:
        """Write owner records, with an epoch above those that were read."""
        for copy in copies:
            latest = max(copy.replicas.values(), key=lambda replica: replica.owner)
            name = f"{latest.changelog.topic}-{latest.changelog.partition}"
            copy.owner = next_owner(latest.owner, self._process, name=name)
        claims = [(copy, replica) for copy in copies for replica in copy.replicas.values()]
        offsets = self._access.append(
            [owned_record(r.changelog, OWNER_KEY, b"", copy.owner) for copy, r in claims]
        )
        for (_, replica), offset in zip(claims, offsets, strict=True):
            replica.is_next([offset])  # or the changelog has lost records, which it notes
        for copy in copies:
            found = {
                replica.name: offset + 1
                for (claimed, replica), offset in zip(claims, offsets, strict=True)
                if claimed is copy
            }
            is_known = UNKNOWN_OFFSET + 1 not in found.values()
            copy.targets = found if is_known else {}
            copy.phase = Phase.CLAIMED if is_known else Phase.BEHIND

    def _finish(self, copies: Sequence[TaskCopy]) -> None:
        """Find out what completes the last commits of tasks that are claimed."""
        for copy in copies:
            replicas = copy.replicas.values()
            if any(replica.owner != copy.owner for replica in replicas):
                _log.info("task %s was claimed by another process meanwhile", copy.task)
                copy.phase = Phase.BEHIND
                continue
            copy.phase, copy.repairs = Phase.COMPLETING, iter(())
            # Each changelog gets each commit record. So one without the last commit has nothing
            # later than that either, and one that was not the task's has an earlier commit.
            last = max(replicas, key=lambda replica: replica.commit.order, default=None)
            if last is None:
                continue
            commit, last_value = last.commit, last.table.progress.commit
            copy.commit = replace(commit, writes={})
            copy.repairs = _repairs(list(replicas), commit, last_value)

    def _complete(self, copies: Sequence[TaskCopy]) -> None:
        """Write the next part of what completes these tasks; those with no more are `RUNNING`."""
        try:
            work, ended = _next_part(copies)
            if work:
                self._write(work)
            ended = [copy for copy in ended if copy.phase is Phase.COMPLETING]
            for replica in (each for copy in ended for each in copy.replicas.values()):
                replica.note_complete(replica.owner)
        except BaseException:
            # A generator that has raised has ended, too.
            for copy in copies:
                copy.look_again()
            raise
        for copy in ended:
            copy.phase = Phase.RUNNING

    def _write(self, work: Sequence[tuple[TaskCopy, Replica, Writes]]) -> None:
        """Write missing records; a task is read again if another member writes meanwhile."""
        begun = Moment.now()
        records = [replica.new_records(writes, copy.owner) for copy, replica, writes in work]
        try:
            found = appended(self._access, records)
            for (copy, replica, writes), offsets in zip(work, found, strict=True):
                if not replica.is_next(offsets):
                    copy.look_again()
                    continue
                position = replica.position + len(offsets)
                commit = writes.get(COMMIT_KEY) or b""
                replica.written(
                    writes, position=position, owner=copy.owner, begun=begun, commit=commit
                )
        except BaseException:
            for copy, _, _ in work:
                copy.look_again()
            raise


_Part = tuple[TaskCopy, Replica, dict[bytes, bytes | None]]


def _next_part(copies: Sequence[TaskCopy]) -> tuple[list[_Part], list[TaskCopy]]:
    """Return the next writes that complete tasks, and those for which they are the last."""
    parts: dict[tuple[TaskId, str], _Part] = {}
    ended: list[TaskCopy] = []
    records, size = 0, 0
    for copy in copies:
        for replica, key, value in copy.repairs:
            parts.setdefault((copy.task, replica.name), (copy, replica, {}))[2][key] = value
            records, size = records + 1, size + len(key) + len(value or b"")
            if records >= _MOST_RECORDS or size >= _MOST_BYTES:
                return [*parts.values()], ended
        ended.append(copy)
    return [*parts.values()], ended


def _repairs(
    replicas: Sequence[Replica], commit: Commit, value: bytes
) -> Iterator[tuple[Replica, bytes, bytes | None]]:
    """Yield what completes a commit in each changelog.

    The commit record is the first: with it, the changelog suffices for the rest.
    """
    for replica in replicas:
        missing = replica.missing(commit.writes.get(replica.name, {}))
        for key, written in replica.repairs(missing, commit=value):
            yield replica, key, written


def appended(access: ChangelogAccess, groups: Sequence[Sequence[NewRecord]]) -> list[list[int]]:
    """Append groups of records with one call; return the offsets of each group."""
    offsets = iter(access.append([record for group in groups for record in group]))
    return [[next(offsets) for _ in group] for group in groups]
