"""Member processes as the orchestrator sees them: start, listen, stop, kill.

Started in a session of their own, so that a Ctrl-C at the terminal reaches the orchestrator alone
and it decides in which order things end. Their standard input stays open as the rope of
`members/process.py`. Processes must be started from the main thread: the kernel's rope is tied to
the *thread* that forked.
"""

import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Protocol

from system_tests.live.events import Report, ReportError, read_report

_STDERR_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnded:
    """A member's process is gone and its pipe is drained.

    Attributes:
        status: exit status, negative for a signal.
        last_lines: the end of its standard error.
    """

    member: str
    incarnation: int
    at_ms: float
    status: int
    last_lines: tuple[str, ...]


Heard = Report | ProcessEnded | ReportError
Inbox = queue.Queue[Heard]


class Config(Protocol):
    """What a member process is told: one line of JSON on its standard input."""

    @property
    def name(self) -> str:
        """The member's name."""

    def to_json(self) -> str:
        """Write one line."""


class MemberProcess:
    """One life of one member.

    Args:
        config: what it is told.
        incarnation: how many lives it had before.
        hear: called with what it reports, on a thread; at last with its end.
        module: what is run.
        log: its standard error is appended to this file.

    Attributes:
        last_lines: the end of its standard error.
    """

    def __init__(
        self,
        config: Config,
        *,
        incarnation: int,
        hear: Callable[[Heard], None],
        module: str,
        log: Path | None = None,
    ) -> None:
        self.name = config.name
        self.incarnation = incarnation
        self._hear = hear
        self._log = log
        self.last_lines: deque[str] = deque(maxlen=_STDERR_LINES)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._readers = (
            threading.Thread(target=self._read_reports, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        )
        for reader in self._readers:
            reader.start()
        self._tell(config.to_json())

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """Ask for a clean end (SIGTERM)."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._process.kill()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came in time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _tell(self, line: str) -> None:
        """Write a line to its standard input; if it has ended, its end is reported."""
        pipe = self._process.stdin
        if pipe is None:
            raise RuntimeError("a member process was started without a pipe")
        with suppress(BrokenPipeError, ValueError):
            pipe.write(line + "\n")
            pipe.flush()

    def _read_reports(self) -> None:
        pipe = self._process.stdout
        for line in pipe or ():
            try:
                self._hear(read_report(line, member=self.name, incarnation=self.incarnation))
            except ReportError as error:
                self._hear(error)
        status = self._process.wait()
        ended_ms = monotonic() * 1000
        self._readers[1].join(timeout=1.0)
        for open_pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if open_pipe is not None:
                with suppress(BrokenPipeError):
                    open_pipe.close()
        self._hear(
            ProcessEnded(
                member=self.name,
                incarnation=self.incarnation,
                at_ms=ended_ms,
                status=status,
                last_lines=tuple(self.last_lines),
            )
        )

    def _read_stderr(self) -> None:
        with self._log.open("a", encoding="utf-8") if self._log else nullcontext() as log:
            for line in self._process.stderr or ():
                self.last_lines.append(line.rstrip())
                if log is not None:
                    log.write(line)
                    log.flush()


def end_all(processes: list[MemberProcess], *, grace_s: float) -> None:
    """Ask all to stop, wait `grace_s` for them together, kill the rest."""
    for process in processes:
        if process.is_running:
            process.ask_to_stop()
    deadline = monotonic() + grace_s
    for process in processes:
        if not process.wait(max(0.0, deadline - monotonic())):
            process.kill()
            process.wait(1.0)
