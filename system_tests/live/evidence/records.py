"""Coverage and waiting times of records: functions over the reports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from system_tests.live.events import RecordsProcessed, Report
from system_tests.live.evidence.ownership import OwnershipInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What was processed of one partition.

    Attributes:
        produced: number of records written; their offsets are 0 to produced - 1.
        missing: runs of unprocessed offsets (first, last).
        duplicates: how many times a record was processed again.
    """

    partition: int
    produced: int
    missing: tuple[tuple[int, int], ...]
    duplicates: int

    @property
    def missing_records(self) -> int:
        """How many records are unprocessed."""
        return sum(last - first + 1 for first, last in self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The longest time that a written record of one partition waited until its batch began.

    Attributes:
        offset: the record that waited.
        pause_ms: from the acknowledgement of the record or the end of the batch before, whichever
            is later, to the start of its batch. A partition without traffic does not pause.
        owned_ms: the longest part of a record's wait in which a member owned the partition.
    """

    partition: int
    offset: int
    pause_ms: float
    owned_ms: float = 0.0


def processed_batches(reports: Iterable[Report]) -> dict[int, list[tuple[RecordsProcessed, float]]]:
    """Group batches by partition, each with the time at which it was done, sorted by its start."""
    batches: dict[int, list[tuple[RecordsProcessed, float]]] = {}
    for report in reports:
        if isinstance(report.event, RecordsProcessed):
            batches.setdefault(report.event.partition, []).append((report.event, report.at_ms))
    for row in batches.values():
        row.sort(key=lambda item: (item[0].began_ms, item[0].first_offset))
    return batches


def processed_counts(reports: Iterable[Report]) -> dict[int, int]:
    """Return, per partition, the offset after the last processed one."""
    counts: dict[int, int] = {}
    for report in reports:
        if isinstance(report.event, RecordsProcessed):
            batch = report.event
            counts[batch.partition] = max(counts.get(batch.partition, 0), batch.last_offset + 1)
    return counts


def coverages(reports: Iterable[Report], *, produced: Mapping[int, int]) -> tuple[Coverage, ...]:
    """Compare what was processed with what was written, partition by partition.

    Args:
        reports: of all members.
        produced: partition -> number of records written to it, from offset 0.
    """
    batches = processed_batches(reports)
    found: list[Coverage] = []
    for partition in sorted(produced):
        ranges = sorted(
            (batch.first_offset, batch.last_offset) for batch, _ in batches.get(partition, [])
        )
        missing: list[tuple[int, int]] = []
        duplicates = 0
        following = 0
        for first, last in ranges:
            if first > following:
                missing.append((following, first - 1))
            duplicates += max(0, min(last + 1, following) - first)
            following = max(following, last + 1)
        if following < produced[partition]:
            missing.append((following, produced[partition] - 1))
        found.append(
            Coverage(
                partition=partition,
                produced=produced[partition],
                missing=tuple(missing),
                duplicates=duplicates,
            )
        )
    return tuple(found)


def pauses(
    reports: Iterable[Report],
    *,
    written_ms: Mapping[int, Sequence[float]],
    intervals: Sequence[OwnershipInterval] = (),
) -> tuple[Pause, ...]:
    """Find the longest pause of each partition, from its first batch on.

    Args:
        reports: of all members.
        written_ms: partition -> when each of its records was acknowledged, by offset.
        intervals: of ownership.
    """
    found: list[Pause] = []
    for partition, row in sorted(processed_batches(reports).items()):
        written = written_ms.get(partition, ())
        owned = [interval for interval in intervals if interval.partition == partition]
        owned_ms = 0.0
        longest = Pause(partition=partition, offset=row[0][0].first_offset, pause_ms=0.0)
        done_ms = row[0][1]
        following = row[0][0].last_offset + 1
        for batch, batch_done_ms in row[1:]:
            if batch.last_offset >= following:
                at_ms = written[following] if following < len(written) else done_ms
                from_ms = max(done_ms, at_ms)
                pause_ms = batch.began_ms - from_ms
                owned_ms = max(owned_ms, _overlap_ms(from_ms, batch.began_ms, owned))
                if pause_ms > longest.pause_ms:
                    longest = Pause(partition=partition, offset=following, pause_ms=pause_ms)
                following = batch.last_offset + 1
            done_ms = max(done_ms, batch_done_ms)
        found.append(replace(longest, owned_ms=owned_ms))
    return tuple(found)


def _overlap_ms(from_ms: float, to_ms: float, owned: Sequence[OwnershipInterval]) -> float:
    """Return for how long one of some members owned a partition between two times."""
    return sum(max(0.0, min(to_ms, row.to_ms) - max(from_ms, row.from_ms)) for row in owned)
