"""The member processes of one experiment, what they said, and the picture that follows from it.

The crew starts and ends processes, and `pump` is the only place where their reports are read: it
keeps the evidence, the view of the group and the trace in step.
"""

import queue
import uuid
from collections.abc import Callable, Collection, Sequence
from heapq import heappop, heappush
from random import Random
from time import monotonic
from typing import Protocol

from system_tests.live.events import Report, ReportError
from system_tests.live.evidence.ownership import Incarnation
from system_tests.live.group import GroupView
from system_tests.live.member_process import Inbox, MemberProcess, ProcessEnded, end_all
from system_tests.live.members.config import MemberConfig
from system_tests.live.narrate import Narrator
from system_tests.live.order import MIXED, client_of
from system_tests.live.plan import LiveOptions, Stage
from system_tests.trace import Symbol, TraceLine

FOREIGN = "foreign"
_MODULE_OF_CLIENT = {
    "kafka-python": "system_tests.live.members.kafka_python",
    "aiokafka": "system_tests.live.members.aiokafka",
}
_FOREIGN_MEMBER = "system_tests.live.members.foreign"
_REFRESH_S = 0.1
_ORDER_MS = 150.0
_STOP_S = 10.0
_DRAIN_S = 2.0


class Screen(Protocol):
    """Where the trace goes while the experiment runs."""

    def line(self, line: TraceLine) -> None:
        """Show one line of the trace."""

    def refresh(self, group: GroupView) -> None:
        """Show the group as it is now."""


class MemberDiedError(Exception):
    """A member ended although nobody had asked it to.

    Attributes:
        member: its name.
        why: the sentence it failed with, if `explained`, or how its process ended.
        last_lines: the end of its standard error.
    """

    def __init__(
        self, member: str, why: str, last_lines: Sequence[str], *, explained: bool = False
    ) -> None:
        self.member = member
        self.explained = explained
        self.why = why
        self.last_lines = tuple(last_lines)
        super().__init__(f"member {member} died: {why}")


class NotInTimeError(Exception):
    """Something that was waited for did not come in time; the message says what and how long."""


class Crew:
    """All members of one experiment; each may take `stop_s` to end when it is asked to."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        bootstrap_servers: str,
        group_id: str,
        topic: str,
        options: LiveOptions,
        screen: Screen,
        dice: Random,
        stop_s: float = _STOP_S,
    ) -> None:
        self._stop_s = stop_s
        self.group = GroupView.of(names)
        self.reports: list[Report] = []
        self.ended_ms: dict[Incarnation, float] = {}
        self.crashed: set[Incarnation] = set()
        self.deaths: list[MemberDiedError] = []
        self._options = options
        self._screen = screen
        self._inbox: Inbox = queue.Queue()
        self._processes: dict[str, MemberProcess] = {}
        self._leaving: set[Incarnation] = set()
        self._refreshed_s = 0.0
        self._untold: list[tuple[float, int, TraceLine]] = []
        self._told = 0
        self._ending = False
        self._settings = {
            "bootstrap_servers": bootstrap_servers,
            "group_id": group_id,
            "topic": topic,
        }
        self._process_ids = {
            name: str(uuid.UUID(int=dice.getrandbits(128), version=4)) for name in (*names, FOREIGN)
        }
        self.narrator = Narrator(self.group, began_ms=monotonic() * 1000)

    def start(self, name: str, stage: Stage) -> None:
        """Start a member on a release; it keeps its process id from life to life."""
        client = client_of(name, self._options.client)
        # aiokafka has no other protocol; eager and cooperative members may be in one group.
        moves = "eager" if client == "aiokafka" else stage.rebalance_protocol
        process = self._spawn(
            name, stage, module=_MODULE_OF_CLIENT[client], rebalance_protocol=moves
        )
        self.group.note_start(
            name,
            incarnation=process.incarnation,
            release=stage.release,
            upgrade_from=stage.upgrade_from,
            at_ms=monotonic() * 1000,
        )
        on = f", on {client}" if self._options.client == MIXED else ""
        self.say(f"start, {stage.describe()}{on}", acting={name: Symbol.STARTS})

    def start_foreign(self, stage: Stage) -> None:
        """Start a member whose user data nobody can read."""
        self._spawn(FOREIGN, stage, module=_FOREIGN_MEMBER, rebalance_protocol="eager")
        self.say("a foreign member joins with user data that nobody can read")

    def stop(self, name: str) -> None:
        """Stop a member cleanly and wait until its process is gone.

        Raises:
            NotInTimeError: it did not stop.
        """
        self.ask_to_stop(name)
        self.wait_gone(name)

    def ask_to_stop(self, name: str) -> None:
        """Begin to stop a member cleanly."""
        process = self._processes[name]
        self._leaving.add((name, process.incarnation))
        if name != FOREIGN:
            self.group.members[name].leaving = True
        acting = {} if name == FOREIGN else {name: Symbol.STOPS}
        self.say("the foreign member leaves" if name == FOREIGN else "stop", acting=acting)
        process.ask_to_stop()

    def kill(self, name: str) -> None:
        """Kill a member and wait until its process is gone."""
        process = self._processes[name]
        self._leaving.add((name, process.incarnation))
        self.crashed.add((name, process.incarnation))
        self.say("killed (SIGKILL)", acting={name: Symbol.STOPS})
        process.kill()
        self.wait_gone(name)

    def pause(self, name: str) -> None:
        """Let a member stand still (SIGSTOP)."""
        self.say("paused (SIGSTOP)", acting={name: Symbol.STOPS})
        self._processes[name].pause()

    def resume(self, name: str) -> None:
        """Let it go on (SIGCONT)."""
        self.say("goes on (SIGCONT)", acting={name: Symbol.STARTS})
        self._processes[name].resume()

    def pid_of(self, name: str) -> int | None:
        """The process id of a member that runs."""
        process = self._processes.get(name)
        return process.pid if process is not None and process.is_running else None

    def drain(self) -> list[Report]:
        """Hand over the reports, and keep none of them: for experiments that last for hours."""
        reports, self.reports = self.reports, []
        return reports

    def forget(self, lives: Collection[Incarnation]) -> None:
        """Forget lives that ended and were judged."""
        for life in lives:
            self.ended_ms.pop(life, None)
            self.crashed.discard(life)
            self._leaving.discard(life)

    def wait_gone(self, name: str) -> None:
        """Wait until a member that was told to end has ended.

        Raises:
            NotInTimeError: it is still there.
        """
        life = (name, self._processes[name].incarnation)
        self.wait(
            lambda: None if life in self.ended_ms else f"member {name} is still running",
            timeout_s=self._stop_s,
        )

    def say(self, text: str, *, acting: dict[str, Symbol] | None = None) -> None:
        """Put a line of our own into the trace."""
        self._tell(
            self.narrator.line(
                text, at_ms=monotonic() * 1000, acting=acting, generation=self.group.generation
            )
        )

    def wait(self, reason: Callable[[], str | None], *, timeout_s: float) -> None:
        """Read reports until `reason` returns None.

        Raises:
            NotInTimeError: it still gives a reason after `timeout_s`.
            MemberDiedError: a member ended without being asked.
        """
        deadline = monotonic() + timeout_s
        while (why := reason()) is not None:
            if self.deaths:
                raise self.deaths[0]
            if monotonic() > deadline:
                raise NotInTimeError(f"after {timeout_s:.0f} s {why}")
            self.pump(0.05)

    def pump(self, timeout_s: float) -> None:
        """Take in what the members have said, waiting at most `timeout_s` for the first of it."""
        try:
            self._take(self._inbox.get(timeout=timeout_s))
            while True:
                self._take(self._inbox.get_nowait())
        except queue.Empty:
            pass
        now_s = monotonic()
        self._show(until_ms=self.narrator.trace_ms(now_s * 1000 - _ORDER_MS))
        if now_s - self._refreshed_s >= _REFRESH_S:
            self._refreshed_s = now_s
            self._screen.refresh(self.group)

    def end(self, *, grace_s: float) -> None:
        """End every process, cleanly where it takes no longer than `grace_s`."""
        self._ending = True
        running = [process for process in self._processes.values() if process.is_running]
        self._leaving.update((p.name, p.incarnation) for p in running)
        end_all(running, grace_s=grace_s)
        deadline = monotonic() + _DRAIN_S
        while monotonic() < deadline and any(
            (p.name, p.incarnation) not in self.ended_ms for p in running
        ):
            self.pump(0.05)
        self._show(until_ms=float("inf"))

    def _tell(self, line: TraceLine) -> None:
        """Keep a line for a moment: pipes of several processes are not read in order of time."""
        self._told += 1
        heappush(self._untold, (line.at_ms, self._told, line))

    def _show(self, *, until_ms: float) -> None:
        while self._untold and self._untold[0][0] <= until_ms:
            self._screen.line(heappop(self._untold)[2])

    def _spawn(
        self, name: str, stage: Stage, *, module: str, rebalance_protocol: str
    ) -> MemberProcess:
        former = self._processes.get(name)
        process = MemberProcess(
            MemberConfig(
                name=name,
                **self._settings,
                release=stage.release,
                upgrade_from=stage.upgrade_from,
                rebalance_protocol=rebalance_protocol,
                process_id=self._process_ids[name],
                supervised=self._options.replace_brokers and name != FOREIGN,
                hold_back=self._options.hold_back and name != FOREIGN,
                group_instance_id=name if self._options.static and name != FOREIGN else None,
                session_timeout_ms=self._options.session_timeout_ms,
                heartbeat_interval_ms=self._options.heartbeat_ms,
            ),
            incarnation=0 if former is None else former.incarnation + 1,
            hear=self._inbox.put,
            module=module,
        )
        self._processes[name] = process
        return process

    def _take(self, item: Report | ProcessEnded | ReportError) -> None:
        match item:
            case ReportError():
                self.say(str(item))
            case ProcessEnded():
                self._take_end(item)
            case Report() if item.member == FOREIGN:
                pass
            case Report():
                self.reports.append(item)
                self.group.apply(item)
                for line in self.narrator.tell(item):
                    self._tell(line)

    def _take_end(self, end: ProcessEnded) -> None:
        life = (end.member, end.incarnation)
        self.ended_ms[life] = end.at_ms
        asked = life in self._leaving
        if end.member == FOREIGN:
            if not asked:
                self.deaths.append(MemberDiedError(end.member, _how(end), end.last_lines))
            return
        reason = self.group.members[end.member].why_failed
        why = reason or _how(end)
        clean = asked and (end.status == 0 or life in self.crashed or self._ending)
        self.group.note_end(
            end.member, incarnation=end.incarnation, failed=not clean, at_ms=end.at_ms
        )
        if not clean:
            self.crashed.add(life)
            if reason is None:
                self.say(why, acting={end.member: Symbol.STOPS})
            self.deaths.append(
                MemberDiedError(end.member, why, end.last_lines, explained=reason is not None)
            )


def _how(end: ProcessEnded) -> str:
    if end.status < 0:
        return f"its process was ended by signal {-end.status}"
    return f"its process ended with status {end.status}"
