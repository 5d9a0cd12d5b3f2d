"""Pauses of partitions in a trace, each with the bound that follows from what happened.

A pause begins when the owner gives the partition up, ends, or stands still, and ends when another
owner, or the same one again, has restored the state. Terms of its bound:

- rebalance: each generation that was completed while the partition had no owner, at its limit;
- session: members that ended or stand still without leaving the group are waited for until their
  sessions run out (`silence`);
- restore: reading the state; no more than the nearest copy needs where a member has one that the
  leader has to prefer (`Took.restore_limit_ms`), and no thread was restoring the task before: a
  thread that restores an active task reports it as running;
- faults: a lost message costs what its sender needs to notice it, a late one its delay, a lost
  heartbeat the time until the next, a slow member its delay in each generation, and a coordinator
  that moves one more rebalance;
- no member up: all members were down or stood still, or the coordinator waited for more members of
  an empty group.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from encoding import TopicPartition
from system_tests.coordinator import EventKind, GroupEvent
from system_tests.engine import Broken
from system_tests.pauses import PartitionPause, PauseBound, Stopped
from system_tests.sim.events import (
    Answered,
    Ended,
    Gave,
    Happening,
    Hindered,
    Hindrance,
    Settled,
    Started,
    Took,
)
from system_tests.sim.silence import Silences
from system_tests.sim.world.behaviour import find_program

REBALANCE_LIMIT_MS: Final = 3_500
"""Longest rebalance: a heartbeat of 3 s, three polls of 100 ms, and up to ten messages of 20 ms: a
leave, a join for a member id, the join and the sync of the slowest member, with their answers."""
OFFSET_SUMS_SINCE: Final = 7
"""The first version whose subscriptions say how far each copy is (KIP-441)."""
EMPTY_GROUP_MS: Final = 3_000
"""How long a coordinator waits for more members of a group that was empty (KIP-134)."""


@dataclass(slots=True)
class _Pause:
    """A partition that is not processed.

    Attributes:
        from_ms, stopped, member: since when, by what, of which member.
        idle_ms: since when it has no owner; gaps: earlier times without an owner.
        restore_ms: how long earlier owners restored it without finishing.
        limit_ms: how much of that counts.
    """

    from_ms: int
    stopped: Stopped
    member: str
    idle_ms: int
    gaps: list[tuple[int, int]] = field(default_factory=list)
    restore_ms: int = 0
    limit_ms: int = 0


@dataclass(slots=True)
class _Restoring:
    """A partition whose owner restores until `ready_ms`, and is given `limit_ms` for it."""

    pause: _Pause
    at_ms: int
    ready_ms: int
    limit_ms: int


@dataclass(slots=True)
class _Slowness:
    """How late a member's answers are, until it is started again."""

    thread: str
    ms: int
    from_ms: int
    to_ms: float = inf


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Pauses of a trace up to a point."""

    silences: Silences
    is_bounded: bool
    counts: bool = False
    up: set[str] = field(default_factory=set)
    still: set[str] = field(default_factory=set)
    down_since: int | None = None
    down: list[tuple[int, int]] = field(default_factory=list)
    owner: dict[TopicPartition, str] = field(default_factory=dict)
    idle: dict[TopicPartition, _Pause] = field(default_factory=dict)
    restoring: dict[TopicPartition, _Restoring] = field(default_factory=dict)
    generations: list[int] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)
    emptied: list[int] = field(default_factory=list)
    faults: list[tuple[int, int]] = field(default_factory=list)
    slow: list[_Slowness] = field(default_factory=list)
    looks_at_lags: dict[str, bool] = field(default_factory=dict)
    prefers: dict[int, bool] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    found: list[PartitionPause] = field(default_factory=list)

    def started(self, event: Started) -> None:
        self.up.add(event.thread)
        self.still.discard(event.thread)
        self.note_who_is_up(event.at_ms)
        for slowness in self.slow:
            if slowness.thread == event.thread:
                slowness.to_ms = min(slowness.to_ms, event.at_ms)
        latest = find_program(event.release).latest_version
        self.looks_at_lags[event.thread] = event.is_native or latest >= OFFSET_SUMS_SINCE

    def ended(self, event: Ended) -> None:
        if self.silences.is_clean(event):
            stopped = Stopped.CLEAN_STOP
        else:
            stopped = Stopped.SILENT_STOP if event.how == "stop" else Stopped.CRASH
        self.release(event.at_ms, event.thread, tuple(self.owner), stopped)
        self.up.discard(event.thread)
        self.note_who_is_up(event.at_ms)

    def note_who_is_up(self, at_ms: int) -> None:
        """Note which threads are up; called when one starts, ends, or stands still."""
        is_down = self.up <= self.still
        if is_down and self.down_since is None:
            self.down_since = at_ms
        elif not is_down and self.down_since is not None:
            self.down.append((self.down_since, at_ms))
            self.down_since = None

    def hindered(self, event: Hindered) -> None:
        if event.kind is Hindrance.STANDSTILL:
            self.release(event.at_ms, event.thread, tuple(self.owner), Stopped.STANDSTILL)
            self.still.add(event.thread)
            self.note_who_is_up(event.at_ms)
        elif event.kind is Hindrance.SLOW:
            self.slow.append(_Slowness(event.thread, event.ms, event.at_ms))
        else:
            self.faults.append((event.at_ms, event.ms))

    def group_event(self, event: GroupEvent) -> None:
        match event.kind:
            case EventKind.GENERATION_COMPLETED:
                self.generations.append(event.at_ms)
                self.replaced.clear()
            case EventKind.MEMBER_REPLACED:
                self.replaced.add(event.member_id)
            case EventKind.GROUP_RELOADED:
                self.faults.append((event.at_ms, REBALANCE_LIMIT_MS))
            case EventKind.MEMBER_JOINED:
                self.joined.append(event.at_ms)
            case EventKind.GROUP_EMPTIED:
                self.emptied.append(event.at_ms)
            case _:
                pass

    def answered(self, event: Answered) -> None:
        is_new = self.looks_at_lags.get(event.thread, False)
        has_sums = min(event.used_versions) >= OFFSET_SUMS_SINCE
        # Members whose subscriptions the leader cannot read get nothing, whatever copies they have.
        self.prefers[event.generation] = is_new and has_sums and not event.future

    def took(self, event: Took) -> None:
        ready_ms = event.at_ms + event.restore_ms
        prefers = self.prefers.get(event.generation, False) and event.member_id not in self.replaced
        limit_ms = event.restore_limit_ms if prefers else event.restore_ms
        for partition in event.gained:
            self.resume(partition, event.at_ms, ready_ms, limit_ms)
            self.owner[partition] = event.thread
        for partition in event.partitions:
            if partition in self.idle:  # it was fenced, and had not noticed
                self.resume(partition, event.at_ms, event.at_ms, 0)
                self.owner[partition] = event.thread

    def gave(self, event: Gave) -> None:
        self.release(event.at_ms, event.thread, event.partitions, Stopped.REBALANCE)
        for partition in event.partitions:
            if self.owner.get(partition) == event.thread:
                del self.owner[partition]

    def settled(self, _: Settled) -> None:
        self.counts = True

    def release(
        self, at_ms: int, thread: str, partitions: Iterable[TopicPartition], stopped: Stopped
    ) -> None:
        """A thread stops processing partitions; those that it was restoring still pause."""
        for partition in partitions:
            if self.owner.get(partition) != thread:
                continue
            restoring = self.restoring.pop(partition, None)
            if restoring is not None and restoring.ready_ms > at_ms:
                pause, spent_ms = restoring.pause, at_ms - restoring.at_ms
                pause.idle_ms = at_ms
                pause.restore_ms += spent_ms
                pause.limit_ms += spent_ms
                self.idle[partition] = pause
            elif restoring is not None:
                self.close(partition, restoring)
            self.idle.setdefault(partition, _Pause(at_ms, stopped, thread, at_ms))

    def resume(self, partition: TopicPartition, at_ms: int, ready_ms: int, limit_ms: int) -> None:
        """A thread has the partition, and processes it once it is restored."""
        restoring = self.restoring.pop(partition, None)
        if restoring is not None:
            self.close(partition, restoring)
        pause = self.idle.pop(partition, None)
        if pause is not None:
            pause.gaps.append((pause.idle_ms, at_ms))
            limit_ms = ready_ms - at_ms if pause.restore_ms else limit_ms
            self.restoring[partition] = _Restoring(pause, at_ms, ready_ms, limit_ms)

    def wake(self, now_ms: int) -> None:
        """Threads that stood still continue with what they still own."""
        for thread, at_ms in self.silences.wake(now_ms):
            self.still.discard(thread)
            self.note_who_is_up(at_ms)
            for partition in [p for p, name in self.owner.items() if name == thread]:
                self.resume(partition, at_ms, at_ms, 0)

    def close(self, partition: TopicPartition, restoring: _Restoring) -> None:
        """End a pause."""
        pause = restoring.pause
        if not self.counts:
            return
        restore_ms = restoring.ready_ms - restoring.at_ms
        self.found.append(
            PartitionPause(
                partition=f"{partition.topic}-{partition.partition}",
                from_ms=pause.from_ms,
                pause_ms=restoring.ready_ms - pause.from_ms,
                stopped=pause.stopped,
                member=pause.member,
                restore_ms=pause.restore_ms + restore_ms,
                session_ms=sum(
                    min(to_ms - from_ms, self.silences.longest_wait_ms(from_ms, to_ms))
                    for from_ms, to_ms in pause.gaps
                ),
                bound=self.bound(pause, pause.limit_ms + min(restore_ms, restoring.limit_ms))
                if self.is_bounded
                else None,
            )
        )

    def finish(self, now_ms: int) -> None:
        """End the trace: pauses that are still open end now."""
        self.wake(now_ms)
        for partition in sorted(self.idle):
            self.resume(partition, now_ms, now_ms, 0)
        for partition in sorted(self.restoring):
            self.close(partition, self.restoring[partition])

    def bound(self, pause: _Pause, restore_ms: int) -> PauseBound:
        """Return the bound of a pause: the sum of what its gaps may take."""
        rebalance_ms = session_ms = fault_ms = down_ms = 0
        for from_ms, to_ms in pause.gaps:
            generations = max(1, _within(self.generations, from_ms, to_ms))
            rebalance_ms += generations * REBALANCE_LIMIT_MS
            session_ms += self.silences.longest_wait_ms(from_ms, to_ms)
            since_ms = (
                from_ms - REBALANCE_LIMIT_MS
            )  # who was late in the generation before is so now
            slow = (s.ms for s in self.slow if s.from_ms <= to_ms and s.to_ms >= since_ms)
            fault_ms += (generations + 1) * max(slow, default=0)
            fault_ms += sum(
                ms for at_ms, ms in self.faults if at_ms <= to_ms and at_ms + ms >= since_ms
            )
            down = [*self.down, *([] if self.down_since is None else [(self.down_since, to_ms)])]
            down_ms += sum(max(0, min(end, to_ms) - max(start, from_ms)) for start, end in down)
            if any(from_ms <= at_ms <= to_ms for at_ms in self.emptied):
                down_ms += EMPTY_GROUP_MS * (1 + _within(self.joined, from_ms, to_ms))
        return PauseBound(
            rebalance_ms=rebalance_ms,
            session_ms=session_ms,
            restore_ms=restore_ms,
            fault_ms=fault_ms,
            down_ms=down_ms,
        )


def _within(times: Iterable[int], from_ms: int, to_ms: int) -> int:
    return sum(from_ms < at_ms <= to_ms for at_ms in times)


_ADDERS: dict[type, Callable[[_Watch, Any], None]] = {
    Started: _Watch.started,
    Ended: _Watch.ended,
    Hindered: _Watch.hindered,
    Answered: _Watch.answered,
    Took: _Watch.took,
    Gave: _Watch.gave,
    Settled: _Watch.settled,
    GroupEvent: _Watch.group_event,
}


def pauses_of(
    trace: Iterable[Happening],
    *,
    static: bool = False,
    is_bounded: bool = True,
    session_timeout_ms: int | None = None,
) -> tuple[PartitionPause, ...]:
    """Find every pause from the first settled group on, in the order of their ends.

    Args:
        trace: of one simulation, from its beginning.
        static: members carry a group.instance.id, so that none leaves the group when it stops.
        is_bounded: no downtime was asked for.
        session_timeout_ms: of all members; None: the default of their release.
    """
    silences = Silences(static=static, session_timeout_ms=session_timeout_ms)
    watch = _Watch(silences=silences, is_bounded=is_bounded)
    now_ms = 0
    for event in trace:
        now_ms = event.at_ms
        watch.wake(now_ms)
        adder = _ADDERS.get(type(event))
        if adder is not None:
            adder(watch, event)
        watch.silences.add(event)
    watch.finish(now_ms)
    return tuple(watch.found)


def check_pauses(pauses: Iterable[PartitionPause]) -> list[Broken]:
    """No partition pauses longer than its bound."""
    return [
        Broken(rule="pauses within the bound", at_ms=int(pause.from_ms), sentence=str(pause))
        for pause in pauses
        if not pause.is_within
    ]
