"""Silent members: those that ended or stand still, and that the coordinator still counts.

A rebalance waits for such a member until its session runs out. Its session is counted from its last
request, and again whenever the coordinator counts it again: when a generation is completed in
which a join of it was waiting, when a rebalance starts while a sync of it was waiting, and when
another broker loads the group.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from system_tests.coordinator import EventKind, GroupEvent
from system_tests.sim.events import Ended, Happening, Hindered, Hindrance, Started
from system_tests.sim.world.behaviour import behaviour_of
from system_tests.sim.world.setup import INSTANCE


@dataclass(slots=True)
class Silence:
    """One member that sends nothing any more, while the coordinator still counts it.

    Attributes:
        from_ms: when; session_ms: its session timeout; deadline_ms: when its session runs out.
        to_ms: when the coordinator forgot it, or heard of it again; None: not yet.
    """

    from_ms: int
    session_ms: int
    deadline_ms: int
    to_ms: int | None = None

    @property
    def waited_until_ms(self) -> int:
        """How long a rebalance may wait for it."""
        return self.deadline_ms if self.to_ms is None else min(self.to_ms, self.deadline_ms)


@dataclass(slots=True, kw_only=True)
class Silences:
    """The silent members of a trace up to a point.

    Attributes:
        static: members carry a group.instance.id, so that none leaves the group when it stops.
        session_timeout_ms: of all members; None: the default of their release.
        found: every silence so far.
        sessions: thread -> session timeout of its program; leaving: threads that leave when they
            are stopped.
        members, pending: member ids that the coordinator counts -> their threads; pending ones
            were handed out and have not joined (KIP-394).
        threads: every member id -> its thread; timeouts: -> its session timeout.
        current: thread -> its member id.
        silent: member id -> its silence.
        still_until: threads that stand still -> until when.
        is_completing: a generation is complete, and its leader has not answered.
    """

    static: bool
    session_timeout_ms: int | None = None
    found: list[Silence] = field(default_factory=list)
    sessions: dict[str, int] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    members: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)
    timeouts: dict[str, int] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    silent: dict[str, Silence] = field(default_factory=dict)
    still_until: dict[str, int] = field(default_factory=dict)
    is_completing: bool = False

    def add(self, event: Happening) -> None:
        """Add the next event."""
        adder = _ADDERS.get(type(event))
        if adder is not None:
            adder(self, event)

    def longest_wait_ms(self, from_ms: int, to_ms: int) -> int:
        """How long, from a time on, a rebalance may wait for members that are silent until then."""
        waits = (
            silence.waited_until_ms - from_ms
            for silence in self.found
            if silence.from_ms <= to_ms and (silence.to_ms is None or silence.to_ms >= from_ms)
        )
        return max(0, max(waits, default=0))

    def is_clean(self, event: Ended) -> bool:
        """Whether a thread ended so that it left the group."""
        return event.how == "stop" and event.thread in self.leaving

    def wake(self, now_ms: int) -> list[tuple[str, int]]:
        """End the standstills that are over; returns (thread, since when it runs again)."""
        awake = [(name, at_ms) for name, at_ms in self.still_until.items() if at_ms <= now_ms]
        for thread, at_ms in awake:
            del self.still_until[thread]
            self._end_silence(self.current.get(thread, ""), at_ms)
        return awake

    def _started(self, event: Started) -> None:
        behaviour = behaviour_of(event.release, event.upgrade_from)
        self.sessions[event.thread] = self.session_timeout_ms or behaviour.session_timeout_ms
        leaves = behaviour.leaves_on_close and not self.static
        (self.leaving.add if leaves else self.leaving.discard)(event.thread)

    def _ended(self, event: Ended) -> None:
        if not self.is_clean(event):
            self._fall_silent(event.thread, event.at_ms)
        self.still_until.pop(event.thread, None)
        self.current.pop(event.thread, None)

    def _hindered(self, event: Hindered) -> None:
        if event.kind is Hindrance.STANDSTILL:
            self.still_until[event.thread] = event.at_ms + event.ms
            self._fall_silent(event.thread, event.at_ms)

    def _group_event(self, event: GroupEvent) -> None:
        now_ms, member_id = event.at_ms, event.member_id
        match event.kind:
            case EventKind.GENERATION_COMPLETED | EventKind.GROUP_RELOADED:
                self._load(event)
            case EventKind.ASSIGNMENT_STORED | EventKind.REBALANCE_STARTED:
                if self.is_completing and event.kind is EventKind.REBALANCE_STARTED:
                    # Whose sync was waiting is answered, and counted again.
                    self._count_again(tuple(self.members), now_ms)
                self.is_completing = False
            case EventKind.MEMBER_ID_HANDED_OUT:
                self._named(self.pending, event.reason, now_ms)
            case EventKind.MEMBER_JOINED | EventKind.MEMBER_REPLACED:
                self.pending.pop(member_id, None)
                self._named(self.members, member_id, now_ms)
                self.current[self.threads[member_id]] = member_id
            case EventKind.MEMBER_LEFT | EventKind.MEMBER_EXPIRED | EventKind.MEMBER_FENCED:
                self._gone(event)
            case _:
                pass

    def _load(self, event: GroupEvent) -> None:
        """The group has these members, and counts the session of each from here on."""
        self.is_completing = event.kind is EventKind.GENERATION_COMPLETED
        if not self.is_completing:
            for loaded in event.members:
                if self.current.get(self.threads.get(loaded, "")) != loaded:
                    self._silence(loaded, event.at_ms)
        self.members = {m: self.threads.get(m, "") for m in event.members}
        self._count_again(event.members, event.at_ms)

    def _count_again(self, member_ids: Iterable[str], at_ms: int) -> None:
        for member_id in member_ids:
            silence = self.silent.get(member_id)
            if silence is not None:
                silence.deadline_ms = at_ms + silence.session_ms

    def _named(self, names: dict[str, str], member_id: str, now_ms: int) -> None:
        """A thread has a new member id; its former ones are silent from now on."""
        thread = member_id.rsplit("-", 1)[0].removesuffix(INSTANCE)
        names[member_id] = self.threads[member_id] = thread
        self.timeouts[member_id] = self.sessions.get(thread, 0)
        for former in [m for m, name in names.items() if name == thread and m != member_id]:
            self._silence(former, now_ms)
        if thread in self.still_until:  # its request was on the way
            self._silence(member_id, now_ms)

    def _gone(self, event: GroupEvent) -> None:
        for names in (self.members, self.pending):
            for member_id in [
                m for m in names if m == event.member_id or f"member {m}:" in event.reason
            ]:
                self._end_silence(member_id, event.at_ms)
                del names[member_id]

    def _fall_silent(self, thread: str, at_ms: int) -> None:
        for names in (self.members, self.pending):
            for member_id in [m for m, name in names.items() if name == thread]:
                self._silence(member_id, at_ms)

    def _silence(self, member_id: str, at_ms: int) -> None:
        if member_id not in self.silent:
            session_ms = self.timeouts.get(member_id, 0)
            silence = Silence(at_ms, session_ms, at_ms + session_ms)
            self.silent[member_id] = silence
            self.found.append(silence)

    def _end_silence(self, member_id: str, at_ms: int) -> None:
        silence = self.silent.pop(member_id, None)
        if silence is not None:
            silence.to_ms = at_ms


_ADDERS: dict[type, Callable[[Silences, Any], None]] = {
    Started: Silences._started,  # noqa: SLF001 a table of its own methods
    Ended: Silences._ended,  # noqa: SLF001 a table of its own methods
    Hindered: Silences._hindered,  # noqa: SLF001 a table of its own methods
    GroupEvent: Silences._group_event,  # noqa: SLF001 a table of its own methods
}
