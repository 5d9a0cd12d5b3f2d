"""A real member as a test sees it: a process that reports what happens to it.

Start members from the main thread: the kernel's rope is tied to the thread that forked.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import TypeVar

from system_tests.live import events
from system_tests.live.events import Event, Report
from system_tests.live.member_process import Heard, MemberProcess, ProcessEnded
from system_tests.support.word_count import RealConfig

_NATIVE_MEMBER = "system_tests.support.native_member"
_JVM_MEMBER = "system_tests.support.jvm.member"
_STOP_S = 20.0
_END_S = 10.0

_Kind = TypeVar("_Kind", bound=Event)


class NotInTime(Exception):
    """What a test waited for did not come; the message says who, what and how long."""


class RealMember(MemberProcess):
    """One life of one member, a JVM or one of ours.

    Attributes:
        reports: everything that it reported, in order.
    """

    def __init__(self, config: RealConfig, *, log: Path) -> None:
        self.config = config
        self.reports: list[Report] = []
        self._heard = threading.Condition()
        self._has_ended = False
        module = _NATIVE_MEMBER if config.is_native else _JVM_MEMBER
        super().__init__(config, incarnation=0, hear=self._take, module=module, log=log)

    @property
    def state(self) -> str:
        """A JVM member's last `KafkaStreams.State`; of ours RUNNING once it has an assignment."""
        if self.config.is_native:
            last, asked = self._last(events.AssignmentTaken), self._last(events.RejoinRequested)
            if last is None or (asked is not None and asked.at_ms > last.at_ms):
                return "REBALANCING"
            return "RUNNING"
        states = self.all(events.StateChanged)
        return states[-1].state if states else "CREATED"

    @property
    def active(self) -> tuple[str, ...]:
        """Its active tasks, `0_1`."""
        tasks = self._tasks()
        return () if tasks is None else tasks.active_tasks

    @property
    def standby(self) -> tuple[str, ...]:
        """Its standby tasks."""
        tasks = self._tasks()
        return () if tasks is None else tasks.standby_tasks

    @property
    def failures(self) -> list[str]:
        """Why its stream threads died, if they did."""
        return [event.why for event in self.all(events.MemberFailed)]

    def all(self, kind: type[_Kind]) -> list[_Kind]:
        """Everything that it reported of one kind, in order."""
        return [one.event for one in tuple(self.reports) if isinstance(one.event, kind)]

    def wait_for(self, what: str, found: Callable[[], object], *, timeout_s: float = 60.0) -> None:
        """Wait until `found()` is true; it is asked whenever the member reports something.

        Raises:
            NotInTime: it was not in time, or the member ended before.
        """
        deadline = monotonic() + timeout_s
        with self._heard:
            while not found():
                left = deadline - monotonic()
                if left <= 0 or self._has_ended:
                    break
                self._heard.wait(min(left, 0.2))
        if not found():
            raise NotInTime(f"{self.name}: {what} did not come in {timeout_s:.0f} s{self.tail()}")

    def hosts(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Ask what it knows about who hosts which partitions."""
        asked = len(self.all(events.HostsTold))
        self._tell("hosts")
        self.wait_for("an answer", lambda: len(self.all(events.HostsTold)) > asked, timeout_s=5.0)
        return self.all(events.HostsTold)[-1].hosts

    def ask_to_stop(self) -> None:
        """Begin to stop it cleanly; a JVM would not for a signal."""
        self._tell("stop")

    def stop(self) -> None:
        """Stop it cleanly; kill it if that takes longer than 20 s."""
        self.ask_to_stop()
        self.wait(_STOP_S)
        self.kill()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone and everything that it reported is here."""
        super().kill()
        with self._heard:
            self._heard.wait_for(lambda: self._has_ended, _END_S)

    def tail(self) -> str:
        """The end of its log, for messages."""
        return "".join(f"\n  {line}" for line in self.last_lines)

    def _take(self, heard: Heard) -> None:
        with self._heard:
            match heard:
                case Report():
                    self.reports.append(heard)
                case ProcessEnded():
                    self._has_ended = True
                case _:
                    self.last_lines.append(str(heard))
            self._heard.notify_all()

    def _last(self, kind: type[Event]) -> Report | None:
        return next((r for r in reversed(tuple(self.reports)) if isinstance(r.event, kind)), None)

    def _tasks(self) -> events.AssignmentTaken | events.TasksChanged | None:
        if self.config.is_native:
            return next(reversed(self.all(events.AssignmentTaken)), None)
        return next(reversed(self.all(events.TasksChanged)), None)
