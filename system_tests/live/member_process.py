"""A member process as the orchestrator sees it: start it, read its reports, stop it, kill it.

Each runs in a session of its own, so that a Ctrl-C at the terminal reaches the orchestrator alone,
which decides the order of ends. Its standard input stays open: it ends when that does
(`system_tests/child.py`). Start processes from the main thread: the kernel ends them when the
*thread* that forked ends.
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
from typing import IO, ClassVar, Protocol

from system_tests.json_lines import write_line
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


Message = Report | ProcessEnded | ReportError
"""What a member process sends to the orchestrator."""
Inbox = queue.Queue[Message]


class Process(Protocol):
    """What a member needs of `subprocess.Popen`."""

    pid: int
    stdin: IO[str] | None
    stdout: IO[str] | None
    stderr: IO[str] | None

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""

    def send_signal(self, number: int, /) -> None:
        """Send a signal."""

    def terminate(self) -> None:
        """SIGTERM."""

    def kill(self) -> None:
        """SIGKILL."""


def start_interpreter(module: str) -> Process:
    """Run a module in a new interpreter and a session of its own, with three text pipes.

    It ends with this process (`system_tests.child`).
    """
    return subprocess.Popen(
        [sys.executable, "-m", "system_tests.child", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )


class MemberProcess:
    """The process of one incarnation of a member.

    Args:
        name: of the member.
        config: a dataclass, written as one line of JSON to its standard input.
        incarnation: how many times the member had been started before.
        receive: called with each message, on a thread; the last one is its end.
        module: the Python module to run.
        log: its standard error is appended to this file.

    Attributes:
        last_lines: the end of its standard error.
        start_process: how the process of a module is started; tests put a cheaper way here.
    """

    start_process: ClassVar[Callable[[str], Process]] = staticmethod(start_interpreter)

    def __init__(
        self,
        name: str,
        config: object,
        *,
        incarnation: int,
        receive: Callable[[Message], None],
        module: str,
        log: Path | None = None,
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self._receive = receive
        self._log = log
        self.last_lines: deque[str] = deque(maxlen=_STDERR_LINES)
        self._process = type(self).start_process(module)
        self._readers = (
            threading.Thread(target=self._read_reports, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        )
        for reader in self._readers:
            reader.start()
        self._send(write_line(config))

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
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
        """Wait for the end; return whether it ended in time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _send(self, line: str) -> None:
        """Write a line to its standard input; a process that has ended does not read it."""
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
                self._receive(read_report(line, member=self.name, incarnation=self.incarnation))
            except ReportError as error:
                self._receive(error)
        status = self._process.wait()
        ended_ms = monotonic() * 1000
        self._readers[1].join(timeout=1.0)
        for open_pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if open_pipe is not None:
                with suppress(BrokenPipeError):
                    open_pipe.close()
        self._receive(
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
