"""How long a partition had no owner, and its bound: functions over the reports.

Wall-clock time on a busy machine varies, so the bound follows from what the members report. Terms:

- rebalance: less than one session timeout for what no member reports (the time until the first
  member joins, and from the last join to the leader's assignment); and the observed time from the
  first to the last join, and from the first to the last assignment, of each generation that was
  taken meanwhile, each at most a session timeout: so slow were the members;
- session: of a member that ended without leaving the group (a crash, a static member), from its end
  until its session expires; twice if it had sent a JoinGroup, since a join that waits at the
  coordinator keeps the member for one more generation; and of a member that lost its place;
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
    """What the bounds depend on besides the reports; times in ms.

    Attributes:
        session_ms: session timeout of the members.
        heartbeat_ms: their heartbeat interval.
        ended_ms: when each process was seen to be gone.
        crashed: incarnations that ended without leaving the group.
        static: no member leaves the group when it stops.
        disturbed: when brokers were replaced, from and to.
    """

    session_ms: float
    heartbeat_ms: float
    ended_ms: Mapping[Incarnation, float]
    crashed: AbstractSet[Incarnation]
    static: bool = False
    disturbed: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class _History:
    """What one incarnation reported: its joins, assignments and losses."""

    joins: tuple[float, ...]
    takes: tuple[tuple[int, float], ...]
    lost: tuple[float, ...]

    def join_of(self, taken_ms: float) -> float:
        """Return the last join before it took an assignment."""
        return max((at_ms for at_ms in self.joins if at_ms <= taken_ms), default=taken_ms)


def ownership_pauses(
    reports: Sequence[Report],
    intervals: Sequence[OwnershipInterval],
    *,
    terms: PauseTerms | None,
    from_ms: float,
) -> tuple[PartitionPause, ...]:
    """Return the times at which a partition had no owner, by partition and time.

    Args:
        reports: of all members, in the order of their time.
        intervals: of ownership, sorted.
        terms: for the bounds; None: downtime is intended, there is no bound.
        from_ms: earlier pauses are left out.
    """
    histories = _histories(reports)
    found: list[PartitionPause] = []
    last: OwnershipInterval | None = None
    for interval in intervals:
        if last is not None and last.partition == interval.partition:
            if interval.from_ms > last.to_ms >= from_ms:
                found.append(_pause(last, interval.from_ms, histories, terms))
            last = max(last, interval, key=lambda owned: owned.to_ms)
        else:
            last = interval
    return tuple(found)


def expired_sessions(reports: Sequence[Report], terms: PauseTerms) -> dict[str, float]:
    """Return static members whose sessions expired in a restart -> ms without them, longest first.

    Of a member that this happened to more than once, the longest time counts.
    """
    joins = {who: seen.joins for who, seen in _histories(reports).items() if seen.joins}
    found: dict[str, float] = {}
    for (member, incarnation), ended_ms in terms.ended_ms.items():
        back_ms = joins.get((member, incarnation + 1), (ended_ms,))[0]
        if terms.static and back_ms - ended_ms > terms.session_ms:
            found[member] = max(back_ms - ended_ms, found.get(member, 0.0))
    return dict(sorted(found.items(), key=lambda row: -row[1]))


def settled_ms(reports: Sequence[Report], generation: int) -> float:
    """Return when the last member first took its assignment of a generation; 0: none did.

    A static member that restarts takes it again, as its return starts no rebalance.
    """
    first_ms: dict[str, float] = {}
    for report in reports:
        event = report.event
        if isinstance(event, AssignmentTaken) and event.generation == generation:
            first_ms.setdefault(report.member, report.at_ms)
    return max(first_ms.values(), default=0.0)


def _histories(reports: Sequence[Report]) -> Mapping[Incarnation, _History]:
    joins: dict[Incarnation, list[float]] = {}
    takes: dict[Incarnation, list[tuple[int, float]]] = {}
    lost: dict[Incarnation, list[float]] = {}
    for report in reports:
        incarnation = (report.member, report.incarnation)
        match report.event:
            case SubscriptionWritten():
                joins.setdefault(incarnation, []).append(report.at_ms)
            case AssignmentTaken(generation=generation):
                takes.setdefault(incarnation, []).append((generation, report.at_ms))
            case PartitionsLost():
                lost.setdefault(incarnation, []).append(report.at_ms)
            case _:
                pass
    return {
        incarnation: _History(
            tuple(joins.get(incarnation, ())),
            tuple(takes.get(incarnation, ())),
            tuple(lost.get(incarnation, ())),
        )
        for incarnation in sorted({*joins, *takes, *lost})
    }


def _pause(
    owned: OwnershipInterval,
    to_ms: float,
    histories: Mapping[Incarnation, _History],
    terms: PauseTerms | None,
) -> PartitionPause:
    from_ms = owned.to_ms
    return PartitionPause(
        partition=f"partition {owned.partition}",
        from_ms=from_ms,
        pause_ms=to_ms - from_ms,
        stopped=Stopped.REBALANCE if terms is None else _stopped(owned, to_ms, histories, terms),
        member=owned.member,
        bound=None if terms is None else _bound(from_ms, to_ms, histories, terms),
    )


def _stopped(
    owned: OwnershipInterval,
    to_ms: float,
    histories: Mapping[Incarnation, _History],
    terms: PauseTerms,
) -> Stopped:
    """Return what stopped a partition: the end of its owner, or a rebalance."""
    incarnation = (owned.member, owned.incarnation)
    seen = histories.get(incarnation, _History((), (), ()))
    if owned.to_ms in seen.lost:
        return Stopped.STANDSTILL
    if terms.ended_ms.get(incarnation, to_ms) >= to_ms or any(
        at_ms > owned.to_ms for _, at_ms in seen.takes
    ):
        return Stopped.REBALANCE
    if incarnation in terms.crashed:
        return Stopped.CRASH
    return Stopped.SILENT_STOP if terms.static else Stopped.CLEAN_STOP


def _bound(
    from_ms: float, to_ms: float, histories: Mapping[Incarnation, _History], terms: PauseTerms
) -> PauseBound:
    down_ms = _down_ms(from_ms, to_ms, histories, terms)
    fault_ms = sum(
        end - start + terms.session_ms
        for start, end in terms.disturbed
        if start <= to_ms and end + terms.session_ms >= from_ms
    )
    return PauseBound(
        rebalance_ms=terms.session_ms
        - 2 * terms.heartbeat_ms
        + _observed_ms(from_ms, to_ms, histories, terms.session_ms),
        session_ms=max(
            0.0, *(end - from_ms for end in _waits(from_ms, to_ms, histories, terms)), 0.0
        ),
        fault_ms=fault_ms,
        down_ms=down_ms + EMPTY_GROUP_MS if down_ms else 0.0,
    )


def _observed_ms(
    from_ms: float, to_ms: float, histories: Mapping[Incarnation, _History], most_ms: float
) -> float:
    """Return how long members took to join and take assignments in the generations of a pause."""
    joined: dict[int, list[float]] = {}
    taken: dict[int, list[float]] = {}
    for seen in histories.values():
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
    from_ms: float, to_ms: float, histories: Mapping[Incarnation, _History], terms: PauseTerms
) -> list[float]:
    """Return when the sessions expire that a rebalance may have waited for."""
    found = []
    for incarnation, ended_ms in terms.ended_ms.items():
        if incarnation not in terms.crashed and not terms.static:
            continue
        seen = histories.get(incarnation, _History((), (), ()))
        has_asked = max(seen.joins, default=0) > max((at for _, at in seen.takes), default=0)
        end_ms = ended_ms + terms.session_ms * (2 if has_asked else 1)
        if ended_ms <= to_ms and end_ms >= from_ms:
            found.append(end_ms)
    for seen in histories.values():
        found += [
            from_ms + terms.session_ms
            for at_ms in seen.lost
            if from_ms - terms.session_ms <= at_ms <= to_ms + terms.session_ms
        ]
    return found


def _down_ms(
    from_ms: float, to_ms: float, histories: Mapping[Incarnation, _History], terms: PauseTerms
) -> float:
    """Return for how long no member was between its first join and its end."""
    up = sorted(
        (seen.joins[0], terms.ended_ms.get(incarnation, to_ms))
        for incarnation, seen in histories.items()
        if seen.joins
    )
    down_ms, since_ms = 0.0, from_ms
    for start, end in up:
        down_ms += max(0.0, min(start, to_ms) - since_ms)
        since_ms = max(since_ms, end)
    return down_ms
