"""A member process of the tests marked `real`; it reports its events.

Start members from the main thread: the kernel ends them when the thread that forked ends.
"""

import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from system_tests.live import events
from system_tests.live.events import Event, Report
from system_tests.live.member_process import MemberProcess, Message, ProcessEnded
from system_tests.support.word_count import RealConfig

_NATIVE_MEMBER = "system_tests.support.native_member"
_JVM_MEMBER = "system_tests.support.jvm.member"
_STOP_S = 120.0
_END_S = 60.0

_Kind = TypeVar("_Kind", bound=Event)


class NotInTime(Exception):
    """A condition did not hold in time; the message names member, condition and time."""


class RealMember(MemberProcess):
    """A process of a member, JVM or native, from start to end.

    Attributes:
        reports: all its reports, in order.
    """

    def __init__(self, config: RealConfig, *, log: Path) -> None:
        self.config = config
        self.reports: list[Report] = []
        self._event_added = threading.Condition()
        self._has_ended = False
        module = _NATIVE_MEMBER if config.is_native else _JVM_MEMBER
        super().__init__(
            config.name, config, incarnation=0, receive=self._take, module=module, log=log
        )

    @property
    def state(self) -> str:
        """Last `KafkaStreams.State` of a JVM member; RUNNING for a native one with assignment."""
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
        """Why its stream threads failed; empty if none did."""
        return [event.why for event in self.all(events.MemberFailed)]

    def all(self, kind: type[_Kind]) -> list[_Kind]:
        """Return all its events of one kind, in order."""
        return [report.event for report in tuple(self.reports) if isinstance(report.event, kind)]

    def wait_for(self, what: str, found: Callable[[], object], *, timeout_s: float = 240.0) -> None:
        """Wait until `found()` is true; it is called after every report of the member.

        Raises:
            NotInTime: it was not true in time, or the member ended before.
        """
        deadline = monotonic() + timeout_s
        with self._event_added:
            while not found():
                left = deadline - monotonic()
                if left <= 0 or self._has_ended:
                    break
                self._event_added.wait(min(left, 0.2))
        if not found():
            raise NotInTime(f"{self.name}: {what} did not come in {timeout_s:.0f} s{self.tail()}")

    def hosts(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Ask what it knows about who hosts which partitions."""
        asked = len(self.all(events.HostsReported))
        self._send("hosts")
        self.wait_for("an answer", lambda: len(self.all(events.HostsReported)) > asked)
        return self.all(events.HostsReported)[-1].hosts

    def ask_to_stop(self) -> None:
        """Begin to stop it cleanly; a JVM would not for a signal."""
        self._send("stop")

    def stop(self) -> None:
        """Stop it cleanly; kill it if that takes longer than two minutes."""
        self.ask_to_stop()
        self.wait(_STOP_S)
        self.kill()

    def kill(self) -> None:
        """Kill it with SIGKILL, and wait until it has ended and all its reports have arrived."""
        super().kill()
        with self._event_added:
            self._event_added.wait_for(lambda: self._has_ended, _END_S)

    def tail(self) -> str:
        """The end of its log, for messages."""
        return "".join(f"\n  {line}" for line in self.last_lines)

    def _take(self, message: Message) -> None:
        with self._event_added:
            match message:
                case Report():
                    self.reports.append(message)
                case ProcessEnded():
                    self._has_ended = True
                case _:
                    self.last_lines.append(str(message))
            self._event_added.notify_all()

    def _last(self, kind: type[Event]) -> Report | None:
        return next((r for r in reversed(tuple(self.reports)) if isinstance(r.event, kind)), None)

    def _tasks(self) -> events.AssignmentTaken | events.TasksChanged | None:
        if self.config.is_native:
            return next(reversed(self.all(events.AssignmentTaken)), None)
        return next(reversed(self.all(events.TasksChanged)), None)


def start_member(folder: Path, name: str, *, state: str = "", **config: Any) -> RealMember:
    """Start a member; after a restart it has its former state directory and process id.

    Args:
        folder: of all members; each has a directory of its own for its state and its log.
        name: of the member.
        state: the state directory, below the member's; by default the same.
        config: other fields of `RealConfig`.
    """
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    return RealMember(
        RealConfig(
            name=name,
            state_dir=str(own / state),
            process_id=str(uuid.uuid5(uuid.NAMESPACE_OID, name)),
            **config,
        ),
        log=own / "log",
    )
