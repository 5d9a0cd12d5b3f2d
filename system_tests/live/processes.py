"""The member processes of one experiment: started and ended here, their reports read here.

`Members.pump` is the only place where reports are read: it keeps the evidence, the view of the
group and the trace consistent.
"""

import queue
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from random import Random
from time import monotonic
from typing import Protocol

from system_tests.live.events import Report, ReportError
from system_tests.live.evidence.ownership import Incarnation
from system_tests.live.group import GroupView
from system_tests.live.member_process import Inbox, MemberProcess, ProcessEnded, end_all
from system_tests.live.members.config import GroupConfig, MemberConfig
from system_tests.live.narrate import Narrator
from system_tests.live.order import MIXED, client_of
from system_tests.live.plan import Stage
from system_tests.trace import Symbol, TraceLine

FOREIGN = "foreign"
_MODULE_OF_CLIENT = {
    "kafka-python": "system_tests.live.members.kafka_python",
    "aiokafka": "system_tests.live.members.aiokafka",
    "confluent": "system_tests.live.members.confluent",
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
    """A member ended without being asked to.

    Attributes:
        member: its name.
        why: the reason that the member reported, if `explained`, or how its process ended.
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
    """A condition was not met in time; the message names the condition and the time."""


class Members:
    """All members of one experiment.

    Args:
        names: of the members.
        config: what the members have in common.
        client: the library that they run on, or "mixed".
        screen: where the trace goes.
        rng: draws their process ids.
        stop_s: how long a member may take to end cleanly.

    Attributes:
        view: the group as its members report it.
        reports: all reports of the members so far, but for those that were drained.
        ended_ms: when the process of each incarnation was seen to be gone.
        crashed: incarnations that ended without leaving the group.
        deaths: members that ended without being asked to.
    """

    def __init__(
        self,
        names: Sequence[str],
        config: GroupConfig,
        *,
        client: str,
        screen: Screen,
        rng: Random,
        stop_s: float = _STOP_S,
    ) -> None:
        self.view = GroupView.of(names)
        self.reports: list[Report] = []
        self.ended_ms: dict[Incarnation, float] = {}
        self.crashed: set[Incarnation] = set()
        self.deaths: list[MemberDiedError] = []
        self._config = config
        self._client = client
        self._screen = screen
        self._stop_s = stop_s
        self._inbox: Inbox = queue.Queue()
        self._processes: dict[str, MemberProcess] = {}
        self._leaving: set[Incarnation] = set()
        self._refreshed_s = 0.0
        self._unshown: list[tuple[float, int, TraceLine]] = []
        self._line_count = 0
        self._ending = False
        self._process_ids = {
            name: str(uuid.UUID(int=rng.getrandbits(128), version=4)) for name in (*names, FOREIGN)
        }
        self.narrator = Narrator(self.view, began_ms=monotonic() * 1000)

    def start(self, name: str, stage: Stage) -> None:
        """Start a member on a release; it keeps its process id after a restart."""
        client = client_of(name, self._client)
        # aiokafka has no other protocol; eager and cooperative members may be in one group.
        offered = replace(stage, rebalance_protocol="eager") if client == "aiokafka" else stage
        process = self._spawn(name, offered, module=_MODULE_OF_CLIENT[client])
        self.view.note_start(
            name,
            incarnation=process.incarnation,
            release=stage.release,
            upgrade_from=stage.upgrade_from,
            at_ms=monotonic() * 1000,
        )
        on = f", on {client}" if self._client == MIXED else ""
        self.say(f"start, {stage.describe()}{on}", acting={name: Symbol.STARTS})

    def start_foreign(self, stage: Stage) -> None:
        """Start a member with unreadable user data."""
        self._spawn(FOREIGN, stage, module=_FOREIGN_MEMBER)
        self.say("a foreign member joins with unreadable user data")

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
            self.view.members[name].leaving = True
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
        """Pause a member (SIGSTOP)."""
        self.say("paused (SIGSTOP)", acting={name: Symbol.STOPS})
        self._processes[name].pause()

    def resume(self, name: str) -> None:
        """Resume a paused member (SIGCONT)."""
        self.say("resumed (SIGCONT)", acting={name: Symbol.STARTS})
        self._processes[name].resume()

    def pid_of(self, name: str) -> int | None:
        """Return the process id of a member, or None if it does not run."""
        process = self._processes.get(name)
        return process.pid if process is not None and process.is_running else None

    def drain(self) -> list[Report]:
        """Return the reports, and keep none of them: for experiments that last for hours."""
        reports, self.reports = self.reports, []
        return reports

    def forget(self, incarnations: Collection[Incarnation]) -> None:
        """Forget incarnations that ended and were checked."""
        for incarnation in incarnations:
            self.ended_ms.pop(incarnation, None)
            self.crashed.discard(incarnation)
            self._leaving.discard(incarnation)

    def wait_gone(self, name: str) -> None:
        """Wait until a member that was asked to end has ended.

        Raises:
            NotInTimeError: it still runs.
        """
        incarnation = (name, self._processes[name].incarnation)
        self.wait(
            lambda: None if incarnation in self.ended_ms else f"member {name} is still running",
            timeout_s=self._stop_s,
        )

    def wait_down(self, name: str, down_ms: float) -> None:
        """Wait until a member that has ended has been down for a time.

        Raises:
            MemberDiedError: another member ended without being asked.
        """
        up_ms = self.ended_ms[name, self._processes[name].incarnation] + down_ms
        self.wait(
            lambda: f"member {name} is down" if monotonic() * 1000 < up_ms else None,
            timeout_s=down_ms / 1000 + self._stop_s,
        )

    def say(self, text: str, *, acting: dict[str, Symbol] | None = None) -> None:
        """Add a line to the trace."""
        self._queue_line(
            self.narrator.line(
                text, at_ms=monotonic() * 1000, acting=acting, generation=self.view.generation
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
        """Process the reports of the members, waiting at most `timeout_s` for the first one."""
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
            self._screen.refresh(self.view)

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

    def _queue_line(self, line: TraceLine) -> None:
        """Delay a line of the trace: pipes of several processes are not read in order of time."""
        self._line_count += 1
        heappush(self._unshown, (line.at_ms, self._line_count, line))

    def _show(self, *, until_ms: float) -> None:
        while self._unshown and self._unshown[0][0] <= until_ms:
            self._screen.line(heappop(self._unshown)[2])

    def _spawn(self, name: str, stage: Stage, *, module: str) -> MemberProcess:
        former = self._processes.get(name)
        config = MemberConfig(
            name=name, process_id=self._process_ids[name], stage=stage, group=self._config
        )
        process = MemberProcess(
            name,
            config,
            incarnation=0 if former is None else former.incarnation + 1,
            receive=self._inbox.put,
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
                self.view.apply(item)
                for line in self.narrator.tell(item):
                    self._queue_line(line)

    def _take_end(self, end: ProcessEnded) -> None:
        incarnation = (end.member, end.incarnation)
        self.ended_ms[incarnation] = end.at_ms
        asked = incarnation in self._leaving
        if end.member == FOREIGN:
            if not asked:
                self.deaths.append(MemberDiedError(end.member, _how(end), end.last_lines))
            return
        reason = self.view.members[end.member].why_failed
        why = reason or _how(end)
        clean = asked and (end.status == 0 or incarnation in self.crashed or self._ending)
        self.view.note_end(
            end.member, incarnation=end.incarnation, failed=not clean, at_ms=end.at_ms
        )
        if not clean:
            self.crashed.add(incarnation)
            if reason is None:
                self.say(why, acting={end.member: Symbol.STOPS})
            self.deaths.append(
                MemberDiedError(end.member, why, end.last_lines, explained=reason is not None)
            )


def _how(end: ProcessEnded) -> str:
    if end.status < 0:
        return f"its process was ended by signal {-end.status}"
    return f"its process ended with status {end.status}"
