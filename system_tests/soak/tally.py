"""Counts the reports of the members of a soak, in memory that does not grow.

Records are runs of offsets, which become one run as gaps close. All other reports are kept from
one settled group to the next, checked then by the functions that check a live bounce, and dropped
except for what the next check begins with: the owners and the last generation of each member.
"""

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from system_tests.live import (
    AnswersDecided,
    AssignmentTaken,
    OffsetsCommitted,
    PartitionsAssigned,
    RecordsProcessed,
    Report,
)
from system_tests.live.evidence import (
    Coverage,
    DoubleOwnership,
    Incarnation,
    OwnershipInterval,
    count_rebalances,
    double_ownerships,
    ownership_intervals,
)
from system_tests.rebalances import Rebalances


class Written:
    """The end of each partition, and since when its unprocessed records wait.

    The producer's thread writes it, the main thread reads it. An acknowledgement may arrive after
    the record was processed; the record waited for no time then.
    """

    def __init__(self, partitions: int) -> None:
        self._lock = threading.Lock()
        self._ends = dict.fromkeys(range(partitions), 0)
        self._done = dict.fromkeys(range(partitions), 0)
        self._waiting: dict[int, deque[tuple[int, float]]] = {p: deque() for p in range(partitions)}
        self.acknowledged = 0

    def note(self, partition: int, offset: int, at_ms: float) -> None:
        """Note that a record was acknowledged."""
        with self._lock:
            self.acknowledged += 1
            self._ends[partition] = max(self._ends[partition], offset + 1)
            if offset >= self._done[partition]:
                self._waiting[partition].append((offset, at_ms))

    def take(self, partition: int, last_offset: int, began_ms: float) -> float:
        """Note that a batch was processed; return for how many ms its oldest record had waited."""
        oldest_ms = began_ms
        with self._lock:
            self._done[partition] = max(self._done[partition], last_offset + 1)
            waiting = self._waiting[partition]
            while waiting and waiting[0][0] <= last_offset:
                oldest_ms = min(oldest_ms, waiting.popleft()[1])
        return began_ms - oldest_ms

    def ends(self) -> dict[int, int]:
        """Return, per partition, the offset after the last acknowledged one.

        All lower offsets are records: a broker assigns offsets without gaps.
        """
        with self._lock:
            return dict(self._ends)

    def behind(self) -> int:
        """Return how many acknowledged records are unprocessed."""
        with self._lock:
            return sum(len(waiting) for waiting in self._waiting.values())


class OffsetRuns:
    """Processed offsets of one partition, as disjoint runs in order."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self.duplicates = 0

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, first: int, last: int) -> None:
        """Add one batch, both offsets included."""
        end = last + 1
        low = bisect_left(self._ends, first)
        high = low
        while high < len(self._firsts) and self._firsts[high] <= end:
            self.duplicates += max(0, min(end, self._ends[high]) - max(first, self._firsts[high]))
            high += 1
        if high > low:
            first, end = min(first, self._firsts[low]), max(end, self._ends[high - 1])
        self._firsts[low:high] = [first]
        self._ends[low:high] = [end]

    def following(self) -> int:
        """Return the first offset that was not processed."""
        return self._ends[0] if self._firsts and self._firsts[0] == 0 else 0

    def missing(self, produced: int) -> tuple[tuple[int, int], ...]:
        """Return the runs of unprocessed offsets below `produced`."""
        found, at = [], 0
        for first, end in zip(self._firsts, self._ends, strict=True):
            if first > at and at < produced:
                found.append((at, min(first, produced) - 1))
            at = end
        if at < produced:
            found.append((at, produced - 1))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """The process of a member was paused (SIGSTOP) and resumed; it noticed nothing meanwhile."""

    incarnation: Incarnation
    from_ms: float
    to_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What happened from one settled group to the next.

    Attributes:
        rebalances: by cause.
        doubles: two owners at a time; excused: how many more were caused by a stall.
        moves: tasks that have another owner than at the end of the window before.
        longest_wait_ms: of a written record.
    """

    rebalances: Rebalances
    doubles: tuple[DoubleOwnership, ...]
    excused: int
    moves: int
    longest_wait_ms: float


class Tally:
    """The counts of a soak; used by the main thread only.

    Args:
        written: the records that the producer wrote.
        partitions: of the topic.
        zombie_ms: how long a stalled member may not know that the group has removed it.
    """

    def __init__(self, written: Written, *, partitions: int, zombie_ms: float) -> None:
        self.runs = {partition: OffsetRuns() for partition in range(partitions)}
        self.committed = dict.fromkeys(range(partitions), 0)
        self.records = 0
        self._written = written
        self._zombie_ms = zombie_ms
        self._carried: list[Report] = []
        self._reports: list[Report] = []
        self._stalls: list[Stall] = []
        self._owners: Mapping[int, str] = {}
        self._generation = 0
        self._longest_wait_ms = 0.0
        self._committed_before = dict(self.committed)

    def take(self, reports: Iterable[Report]) -> None:
        """Count the reports of members."""
        for report in reports:
            match report.event:
                case RecordsProcessed() as batch:
                    self.runs[batch.partition].add(batch.first_offset, batch.last_offset)
                    self.records += batch.last_offset - batch.first_offset + 1
                    waited_ms = self._written.take(
                        batch.partition, batch.last_offset, batch.began_ms
                    )
                    self._longest_wait_ms = max(self._longest_wait_ms, waited_ms)
                case OffsetsCommitted(offsets=offsets):
                    for partition, offset in offsets:
                        self.committed[partition] = max(self.committed[partition], offset)
                case _:
                    self._reports.append(report)

    def note_stall(self, stall: Stall) -> None:
        """Record that a process was paused for a while."""
        self._stalls.append(stall)

    def coverages(self) -> tuple[Coverage, ...]:
        """Compare what was processed with what was written, partition by partition."""
        return tuple(
            Coverage(
                partition=partition,
                produced=end,
                missing=self.runs[partition].missing(end),
                duplicates=self.runs[partition].duplicates,
            )
            for partition, end in sorted(self._written.ends().items())
        )

    def committed_unprocessed(self, *, at_end: bool = False) -> dict[int, tuple[int, int]]:
        """Find partitions whose committed offset is above an unprocessed record.

        Pipes of several processes are not read in order of time, so this checks what was committed
        at the previous call; at the end, all.

        Returns:
            Partition -> (first unprocessed offset, committed offset).
        """
        checked = self.committed if at_end else self._committed_before
        found = {
            partition: (self.runs[partition].following(), offset)
            for partition, offset in sorted(checked.items())
            if self.runs[partition].following() < offset
        }
        self._committed_before = dict(self.committed)
        return found

    def close(
        self,
        *,
        owners: Mapping[int, str],
        generation: int,
        ended_ms: Mapping[Incarnation, float],
        now_ms: float,
    ) -> Window:
        """Check what happened since the last settled group, and forget it.

        Args:
            owners: partition -> member, in the settled group.
            generation: of the settled group.
            ended_ms: incarnations that ended since.
            now_ms: monotonic.
        """
        reports = [*self._carried, *self._reports]
        intervals = ownership_intervals(reports, ended_ms=ended_ms, until_ms=now_ms)
        doubles = double_ownerships(intervals)
        unexcused = tuple(double for double in doubles if not self._is_excused(double, reports))
        window = Window(
            rebalances=count_rebalances(
                reports,
                after_generation=self._generation,
                until_generation=generation,
                gone=ended_ms,
            ),
            doubles=unexcused,
            excused=len(doubles) - len(unexcused),
            moves=sum(
                1
                for partition, member in owners.items()
                if self._owners.get(partition, member) != member
            ),
            longest_wait_ms=self._longest_wait_ms,
        )
        self._carried = _carried(reports, intervals, ended_ms=ended_ms, now_ms=now_ms)
        self._reports, self._stalls = [], []
        self._owners, self._generation = dict(owners), generation
        self._longest_wait_ms = 0.0
        return window

    def _is_excused(self, double: DoubleOwnership, reports: Sequence[Report]) -> bool:
        """Return whether one of the two owners was stalled, and owned by an older generation.

        Two owners of one generation are never excused.
        """
        first, second = (
            _generation_of(interval, reports) for interval in (double.first, double.second)
        )
        if first == second:
            return False
        incarnations = {_incarnation(double.first), _incarnation(double.second)}
        return any(
            stall.incarnation in incarnations
            and stall.from_ms <= double.second.from_ms <= stall.to_ms + self._zombie_ms
            for stall in self._stalls
        )


def _incarnation(interval: OwnershipInterval) -> Incarnation:
    return interval.member, interval.incarnation


def _generation_of(interval: OwnershipInterval, reports: Iterable[Report]) -> int | None:
    """Return the generation whose assignment began the interval."""
    found = None
    for report in reports:
        if (report.member, report.incarnation) != _incarnation(interval):
            continue
        if report.at_ms > interval.from_ms:
            break
        if isinstance(report.event, AssignmentTaken):
            found = report.event.generation
    return found


def _carried(
    reports: Sequence[Report],
    intervals: Iterable[OwnershipInterval],
    *,
    ended_ms: Mapping[Incarnation, float],
    now_ms: float,
) -> list[Report]:
    """Return what the next check begins with: of each incarnation its generation and partitions."""
    last: dict[Incarnation, Report] = {}
    decided: dict[Incarnation, Report] = {}
    leader: tuple[Report, Incarnation] | None = None
    for report in reports:
        incarnation = (report.member, report.incarnation)
        if incarnation in ended_ms:
            continue
        if isinstance(report.event, AnswersDecided):
            decided[incarnation] = report
        elif isinstance(report.event, AssignmentTaken):
            last[incarnation] = report
            if incarnation in decided:
                leader = (decided.pop(incarnation), incarnation)
    carried = [
        report
        for incarnation, report in sorted(last.items())
        if not leader or incarnation != leader[1]
    ]
    if leader is not None:
        carried = [leader[0], last[leader[1]], *carried]
    for interval in intervals:
        incarnation = _incarnation(interval)
        if interval.to_ms >= now_ms and incarnation in last:
            owned = PartitionsAssigned(partitions=(interval.partition,))
            carried.append(replace(last[incarnation], at_ms=interval.from_ms, event=owned))
    return carried
