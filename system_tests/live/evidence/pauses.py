"""How long nobody owned a partition, and how long that may be: functions over the reports.

Wall clock on a busy machine varies, so the bound follows from what the members report. Terms:

- rebalance: less than a session timeout for everything that nobody reports - until the first member
  joins, and from the last join to the leader's answer - since a needless wait for a session takes
  nearly that long; and the observed time from the first to the last join, and from the first to the
  last assignment, of each generation that was taken meanwhile, each no more than a session timeout:
  that is how slow the living members were;
- session: of a member that ended without leaving the group (a crash, a static member), from its end
  until its session runs out; once more if it had asked to join, since a join that waits at the
  coordinator keeps it in the group for one generation more; and of a member that lost its place;
- faults: the time in which brokers were replaced, and a session timeout after it;
- nobody up: from the end of the last member to the join of the first one after it.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from system_tests.live.events import (
    AssignmentTaken,
    PartitionsLost,
    Report,
    SubscriptionWritten,
)
from system_tests.live.evidence.ownership import Incarnation, OwnershipInterval
from system_tests.pauses import PartitionPause, PauseBound, Stopped

EMPTY_GROUP_MS = 3_000
"""How long brokers wait for more members of a group that was empty (KIP-134), by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseTerms:
    """What bounds depend on beside the reports; times in ms.

    Attributes:
        session_ms, heartbeat_ms: session timeout and heartbeat interval of the members.
        ended_ms: when each process was seen to be gone.
        crashed: lives that ended without leaving; static: none leaves when it stops.
        disturbed: when brokers were replaced, from and to.
    """

    session_ms: float
    heartbeat_ms: float
    ended_ms: Mapping[Incarnation, float]
    crashed: AbstractSet[Incarnation]
    static: bool = False
    disturbed: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class _Life:
    """What one life reported: its joins, the generations it took, and when it was put out."""

    joins: tuple[float, ...]
    takes: tuple[tuple[int, float], ...]
    lost: tuple[float, ...]

    def join_of(self, taken_ms: float) -> float:
        """The last join before it took an assignment."""
        return max((at_ms for at_ms in self.joins if at_ms <= taken_ms), default=taken_ms)


def ownership_pauses(
    reports: Sequence[Report],
    intervals: Sequence[OwnershipInterval],
    *,
    terms: PauseTerms | None,
    from_ms: float,
) -> tuple[PartitionPause, ...]:
    """Find when nobody owned a partition between two owners, by partition and time.

    Args:
        reports: of all members, in the order of their time.
        intervals: of ownership, sorted.
        terms: for the bounds; None: downtime was asked for, and nothing is bounded.
        from_ms: pauses that began before are left out.
    """
    lives = _lives(reports)
    found: list[PartitionPause] = []
    last: OwnershipInterval | None = None
    for interval in intervals:
        if last is not None and last.partition == interval.partition:
            if interval.from_ms > last.to_ms >= from_ms:
                found.append(_pause(last, interval.from_ms, lives, terms))
            last = max(last, interval, key=lambda one: one.to_ms)
        else:
            last = interval
    return tuple(found)


def settled_ms(reports: Sequence[Report], generation: int) -> float:
    """When the last member took an assignment of this generation or of one before it; 0: never."""
    return max(
        (
            report.at_ms
            for report in reports
            if isinstance(report.event, AssignmentTaken) and report.event.generation <= generation
        ),
        default=0.0,
    )


def _lives(reports: Sequence[Report]) -> Mapping[Incarnation, _Life]:
    joins: dict[Incarnation, list[float]] = {}
    takes: dict[Incarnation, list[tuple[int, float]]] = {}
    lost: dict[Incarnation, list[float]] = {}
    for report in reports:
        life = (report.member, report.incarnation)
        match report.event:
            case SubscriptionWritten():
                joins.setdefault(life, []).append(report.at_ms)
            case AssignmentTaken(generation=generation):
                takes.setdefault(life, []).append((generation, report.at_ms))
            case PartitionsLost():
                lost.setdefault(life, []).append(report.at_ms)
            case _:
                pass
    return {
        life: _Life(
            tuple(joins.get(life, ())), tuple(takes.get(life, ())), tuple(lost.get(life, ()))
        )
        for life in sorted({*joins, *takes, *lost})
    }


def _pause(
    owned: OwnershipInterval,
    to_ms: float,
    lives: Mapping[Incarnation, _Life],
    terms: PauseTerms | None,
) -> PartitionPause:
    from_ms = owned.to_ms
    return PartitionPause(
        partition=f"partition {owned.partition}",
        from_ms=from_ms,
        pause_ms=to_ms - from_ms,
        stopped=Stopped.REBALANCE if terms is None else _stopped(owned, to_ms, lives, terms),
        member=owned.member,
        bound=None if terms is None else _bound(from_ms, to_ms, lives, terms),
    )


def _stopped(
    owned: OwnershipInterval,
    to_ms: float,
    lives: Mapping[Incarnation, _Life],
    terms: PauseTerms,
) -> Stopped:
    """What stopped a partition: the end of its owner, or else a rebalance."""
    life = (owned.member, owned.incarnation)
    seen = lives.get(life, _Life((), (), ()))
    if owned.to_ms in seen.lost:
        return Stopped.STANDSTILL
    if terms.ended_ms.get(life, to_ms) >= to_ms or any(
        at_ms > owned.to_ms for _, at_ms in seen.takes
    ):
        return Stopped.REBALANCE
    if life in terms.crashed:
        return Stopped.CRASH
    return Stopped.SILENT_STOP if terms.static else Stopped.CLEAN_STOP


def _bound(
    from_ms: float, to_ms: float, lives: Mapping[Incarnation, _Life], terms: PauseTerms
) -> PauseBound:
    down_ms = _down_ms(from_ms, to_ms, lives, terms)
    fault_ms = sum(
        end - start + terms.session_ms
        for start, end in terms.disturbed
        if start <= to_ms and end + terms.session_ms >= from_ms
    )
    return PauseBound(
        rebalance_ms=terms.session_ms
        - 2 * terms.heartbeat_ms
        + _observed_ms(from_ms, to_ms, lives, terms.session_ms),
        session_ms=max(0.0, *(end - from_ms for end in _waits(from_ms, to_ms, lives, terms)), 0.0),
        fault_ms=fault_ms,
        down_ms=down_ms + EMPTY_GROUP_MS if down_ms else 0.0,
    )


def _observed_ms(
    from_ms: float, to_ms: float, lives: Mapping[Incarnation, _Life], most_ms: float
) -> float:
    """How long members took to join, and to take their answers, in the generations of a pause."""
    joined: dict[int, list[float]] = {}
    taken: dict[int, list[float]] = {}
    for seen in lives.values():
        for generation, at_ms in seen.takes:
            joined.setdefault(generation, []).append(max(from_ms, seen.join_of(at_ms)))
            taken.setdefault(generation, []).append(at_ms)
    return sum(
        min(max(times) - min(times), most_ms)
        for generation, at in taken.items()
        if from_ms < min(at) <= to_ms
        for times in (joined[generation], [min(moment, to_ms) for moment in at])
    )


def _waits(
    from_ms: float, to_ms: float, lives: Mapping[Incarnation, _Life], terms: PauseTerms
) -> list[float]:
    """When the sessions run out for which a rebalance may have waited."""
    found = []
    for life, ended_ms in terms.ended_ms.items():
        if life not in terms.crashed and not terms.static:
            continue
        seen = lives.get(life, _Life((), (), ()))
        has_asked = max(seen.joins, default=0) > max((at for _, at in seen.takes), default=0)
        end_ms = ended_ms + terms.session_ms * (2 if has_asked else 1)
        if ended_ms <= to_ms and end_ms >= from_ms:
            found.append(end_ms)
    for seen in lives.values():
        found += [
            from_ms + terms.session_ms
            for at_ms in seen.lost
            if from_ms - terms.session_ms <= at_ms <= to_ms + terms.session_ms
        ]
    return found


def _down_ms(
    from_ms: float, to_ms: float, lives: Mapping[Incarnation, _Life], terms: PauseTerms
) -> float:
    """How long no member was between its first join and its end."""
    up = sorted(
        (seen.joins[0], terms.ended_ms.get(life, to_ms))
        for life, seen in lives.items()
        if seen.joins
    )
    down_ms, since_ms = 0.0, from_ms
    for start, end in up:
        down_ms += max(0.0, min(start, to_ms) - since_ms)
        since_ms = max(since_ms, end)
    return down_ms
