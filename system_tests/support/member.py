"""A real member as a test sees it: a process that says what happens to it.

Start members from the main thread: the kernel's rope is tied to the thread that forked.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from time import monotonic
from typing import Any

from system_tests.real import send_signal
from system_tests.support.word_count import RealConfig

_STOP_S = 20.0
_LOG_LINES = 15


class NotInTime(Exception):
    """What a test waited for did not come; the message says who, what and how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing that a member said, at `at_ms` of the clock that all processes share."""

    event: str
    at_ms: float
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Look a value up by its name."""
        return self.values[name]


class RealMember:
    """One life of one member, a JVM or one of ours.

    Attributes:
        said: everything that it said, in order.
        log: its standard error.
    """

    def __init__(self, config: RealConfig, *, log: Path) -> None:
        self.config = config
        self.log = log
        self.said: list[Said] = []
        self._heard = threading.Condition()
        kind = "native_member" if config.is_native else "jvm_member"
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"system_tests.real.{kind}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._tell(config.to_json())

    @property
    def name(self) -> str:
        """Its client id."""
        return self.config.name

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process.poll() is None

    @property
    def state(self) -> str:
        """A JVM member's last `KafkaStreams.State`; of ours RUNNING once it has an assignment."""
        if self.config.is_native:
            last = self.last("AssignmentTaken")
            asked = self.last("RejoinRequested")
            if last is None or (asked is not None and asked.at_ms > last.at_ms):
                return "REBALANCING"
            return "RUNNING"
        last = self.last("state")
        return "CREATED" if last is None else str(last["state"])

    @property
    def active(self) -> tuple[str, ...]:
        """Its active tasks, `0_1`."""
        last = self.last("tasks")
        return () if last is None else tuple(last["active"])

    @property
    def standby(self) -> tuple[str, ...]:
        """Its standby tasks."""
        last = self.last("tasks")
        return () if last is None else tuple(last["standby"])

    @property
    def failures(self) -> list[str]:
        """Why its stream threads died, if they did."""
        return [str(one["why"]) for one in self.all("failed")]

    def all(self, event: str, *, after_ms: float = 0.0) -> list[Said]:
        """Everything that it said of one kind, in order."""
        return [one for one in tuple(self.said) if one.event == event and one.at_ms > after_ms]

    def last(self, event: str) -> Said | None:
        """The last thing that it said of one kind."""
        return next((one for one in reversed(tuple(self.said)) if one.event == event), None)

    def wait_for(self, what: str, found: Callable[[], object], *, timeout_s: float = 60.0) -> None:
        """Wait until `found()` is true; it is asked whenever the member says something.

        Raises:
            NotInTime: it was not in time, or the member ended before.
        """
        deadline = monotonic() + timeout_s
        with self._heard:
            while not found():
                left = deadline - monotonic()
                if left <= 0 or not (self.is_running or self._reader.is_alive()):
                    break
                self._heard.wait(min(left, 0.2))
        if not found():
            raise NotInTime(f"{self.name}: {what} did not come in {timeout_s:.0f} s{self.tail()}")

    def hosts(self) -> dict[str, dict[str, list[str]]]:
        """Ask what it knows about who hosts which partitions."""
        asked = len(self.all("hosts"))
        self._tell("hosts")
        self.wait_for("an answer", lambda: len(self.all("hosts")) > asked, timeout_s=5.0)
        return dict(self.all("hosts")[-1]["hosts"])

    def ask_to_stop(self) -> None:
        """Begin to stop it cleanly."""
        self._tell("stop")

    def stop(self) -> None:
        """Stop it cleanly; kill it if that takes longer than 20 s."""
        self.ask_to_stop()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_S)
        self.kill()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.is_running:
            send_signal(self._process.pid, SIGKILL)
        self._process.wait()
        self._reader.join()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def pause(self) -> None:
        """SIGSTOP: it says nothing, not even to the broker."""
        send_signal(self._process.pid, SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        send_signal(self._process.pid, SIGCONT)

    def tail(self) -> str:
        """The end of its log, for messages."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return "\n  " + "\n  ".join(lines[-_LOG_LINES:])

    def _tell(self, line: str) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError, ValueError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def _read(self) -> None:
        pipe = self._process.stdout
        for line in pipe or ():
            values = json.loads(line)
            said = Said(event=values.pop("event"), at_ms=values.pop("at_ms"), values=values)
            with self._heard:
                self.said.append(said)
                self._heard.notify_all()
        if pipe is not None:
            pipe.close()
