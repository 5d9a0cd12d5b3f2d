"""Which member owned which partition when: functions over the reports.

An interval begins with `PartitionsAssigned` and ends with `PartitionsRevoked` or `PartitionsLost`
of the same member, or with the end of its process, whichever came first. Two intervals of one
partition that overlap are two owners at one time, whatever the records say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from system_tests.live.events import (
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    Report,
)

Incarnation = tuple[str, int]
"""An incarnation of a member: its name, and how often it had been started before."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OwnershipInterval:
    """One member owned one partition, from and to in monotonic milliseconds."""

    partition: int
    from_ms: float
    to_ms: float
    member: str
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleOwnership:
    """Two members owned one partition for `overlap_ms`."""

    partition: int
    first: OwnershipInterval
    second: OwnershipInterval
    overlap_ms: float


def ownership_intervals(
    reports: Iterable[Report],
    *,
    ended_ms: Mapping[Incarnation, float],
    until_ms: float,
) -> tuple[OwnershipInterval, ...]:
    """List every interval, sorted by partition and time.

    Args:
        reports: of all members; only the order within one incarnation matters.
        ended_ms: when a process was seen to be gone; a killed owner owns until then.
        until_ms: end of the experiment; ends open intervals.
    """
    since: dict[tuple[Incarnation, int], float] = {}
    intervals: list[OwnershipInterval] = []

    def close(incarnation: Incarnation, partition: int, at_ms: float) -> None:
        from_ms = since.pop((incarnation, partition), None)
        if from_ms is not None:
            intervals.append(
                OwnershipInterval(
                    partition=partition,
                    from_ms=from_ms,
                    to_ms=max(at_ms, from_ms),
                    member=incarnation[0],
                    incarnation=incarnation[1],
                )
            )

    for report in reports:
        incarnation = (report.member, report.incarnation)
        match report.event:
            case PartitionsAssigned(partitions=partitions):
                for partition in partitions:
                    since.setdefault((incarnation, partition), report.at_ms)
            case PartitionsRevoked(partitions=partitions) | PartitionsLost(partitions=partitions):
                for partition in partitions:
                    close(incarnation, partition, report.at_ms)
            case _:
                pass
    for incarnation, partition in sorted(since):
        close(incarnation, partition, ended_ms.get(incarnation, until_ms))
    return tuple(sorted(intervals))


def double_ownerships(intervals: Iterable[OwnershipInterval]) -> tuple[DoubleOwnership, ...]:
    """Return the times at which a partition had two owners; touching ends do not overlap."""
    by_partition: dict[int, list[OwnershipInterval]] = {}
    for interval in sorted(intervals):
        by_partition.setdefault(interval.partition, []).append(interval)
    found: list[DoubleOwnership] = []
    for partition, row in by_partition.items():
        longest = row[0]
        for _, later in pairwise(row):
            overlap_ms = min(longest.to_ms, later.to_ms) - later.from_ms
            if overlap_ms > 0:
                found.append(
                    DoubleOwnership(
                        partition=partition, first=longest, second=later, overlap_ms=overlap_ms
                    )
                )
            longest = max(longest, later, key=lambda interval: interval.to_ms)
    return tuple(found)
