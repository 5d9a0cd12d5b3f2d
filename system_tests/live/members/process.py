"""What member processes share: read the configuration, write reports, end with the parent."""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from time import monotonic, sleep
from typing import Protocol

from system_tests.json_lines import LineError, read_line
from system_tests.live import events
from system_tests.live.members.config import MemberConfig

EXIT_FAILED = 1
_EXIT_USAGE = 2
_EXIT_ENVIRONMENT = 3


class Run(Protocol):
    """Runs a member; returns the exit status."""

    def __call__(self, config: MemberConfig, *, stopping: threading.Event) -> int:
        """Be a member until `stopping` is set; return the exit status."""


def run_member(run: Run, *, client_error: type[Exception]) -> int:
    """Read the configuration, tie this process to its parent, run; return the exit status.

    Args:
        run: the member.
        client_error: raised by the client library; an environment failure, exit status 3.
    """
    arguments = sys.argv[1:]
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    try:
        config = read_line(MemberConfig, arguments[0] if arguments else sys.stdin.readline())
    except LineError as error:
        sys.stderr.write(f"bad configuration of a member: {error}\n")
        return _EXIT_USAGE
    end_with_parent(stopping)
    try:
        return run(config, stopping=stopping)
    except client_error as error:
        sys.stderr.write(f"{config.name}: {type(error).__name__}: {error}\n")
        return _EXIT_ENVIRONMENT


class JsonLines:
    """Writes lines of JSON to the original standard output, from any thread.

    The process's standard output becomes its standard error: what a JVM in this process prints must
    not look like a report.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        sys.stdout.flush()
        self._pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(self, **values: object) -> None:
        """Write one JSON object."""
        self._write(lambda: json.dumps(values))

    def _write(self, line: Callable[[], str]) -> None:
        with self._lock:
            self._pipe.write(line() + "\n")
            self._pipe.flush()


class Reporter(JsonLines):
    """Writes the events of a member."""

    def __call__(self, event: events.Event, *, at_ms: float | None = None) -> None:
        """Report one event that happened now, or at `at_ms`."""
        # The clock is read under the lock, so that lines are in the order of their times.
        self._write(lambda: events.write_report(event, at_ms=now_ms() if at_ms is None else at_ms))


def now_ms() -> float:
    """Return monotonic milliseconds, the same clock for all processes of a machine."""
    return time.monotonic_ns() / 1e6


_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_CLEAN_END_S = 1.0
_READ_SIZE = 4096


def end_with_parent(stopping: threading.Event) -> None:
    """Tie this process to its parent.

    Args:
        stopping: set when standard input ends; if the process is still there a second later, it
            ends.
    """
    ask_kernel_to_end_with_parent()
    threading.Thread(target=_watch_stdin, args=(stopping,), daemon=True).start()


def ask_kernel_to_end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends (Linux only)."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return  # a C library without prctl: the end of standard input still ends this process
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before the call


def _watch_stdin(stopping: threading.Event) -> None:
    descriptor = sys.stdin.fileno()
    try:
        while os.read(descriptor, _READ_SIZE):
            pass
    except OSError:
        pass  # a closed descriptor means the same as an end of file
    stopping.set()
    deadline = monotonic() + _CLEAN_END_S
    while monotonic() < deadline:
        sleep(0.1)
    os._exit(1)
