"""Processes of members and commands, forked from one process that has imported what they need.

The imports of a member take longer than most short tests. A test session starts one server;
`forked` replaces `subprocess.Popen` in `system_tests.live.member_process`. The server has one
thread and no client, so that a fork of it equals a new interpreter. Its children end with the
server, and the server ends with the session.
"""

import atexit
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from types import ModuleType
from typing import IO, Any, Final, NoReturn

from system_tests.live.members import ask_kernel_to_end_with_parent

PRELOADED: Final = (
    "system_tests.live.members.kafka_python",
    "system_tests.live.members.aiokafka",
    "system_tests.live.members.foreign",
    "system_tests.live.topologies.programs",
    "system_tests.support.native_member",
    "system_tests.support.jvm.member",
    "system_tests.support.jvm.codec",
    "jpype",
    "assignor.cli.main",
    "system_tests.cli.main",
)
_MOST_BYTES: Final = 65_536
_ANSWER_S: Final = 120.0
# Exit status of an interpreter that cannot flush its output.
_STATUS_OF_A_FAILED_FLUSH: Final = 120


class Reports:
    """The reports of a server about its processes; thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._started: list[int] = []
        self._statuses: dict[int, int] = {}

    def note(self, line: str) -> None:
        """Add a report: `started PID 0` or `ended PID STATUS`."""
        kind, pid, status = line.split()
        with self._changed:
            if kind == "started":
                self._statuses.pop(int(pid), None)  # of an earlier process with the same id
                self._started.append(int(pid))
            else:
                self._statuses[int(pid)] = int(status)
            self._changed.notify_all()

    def next_started(self, timeout_s: float) -> int | None:
        """Process id of the next started process; None if none was started in time."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._started), timeout_s)
            return self._started.pop(0) if self._started else None

    def status(self, pid: int, timeout_s: float | None) -> int | None:
        """Exit status of a process, negative for a signal; None if it has not ended in time."""
        with self._changed:
            self._changed.wait_for(lambda: pid in self._statuses, timeout_s)
            return self._statuses.get(pid)


class ForkServer:
    """One server and its socket; close it at the end of the session."""

    def __init__(self) -> None:
        self._socket, child_socket = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(child_socket.fileno())],
            pass_fds=[child_socket.fileno()],
            # There must be no second thread before a fork, not even one of a numeric library.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,
        )
        child_socket.close()
        self._reports = Reports()
        self._asking = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="fork-server", daemon=True)
        self._reader.start()

    def start(self, argv: list[str], descriptors: tuple[int, int, int]) -> int:
        """Fork a process that runs a module; returns its process id.

        Args:
            argv: name of the module and its arguments.
            descriptors: its standard input, output and error.

        Raises:
            RuntimeError: the server has ended.
        """
        with self._asking:
            socket.send_fds(self._socket, [json.dumps(argv).encode() + b"\n"], descriptors)
            pid = self._reports.next_started(_ANSWER_S)
        if pid is None:
            raise RuntimeError(f"the fork server did not start {argv[0]}")
        return pid

    def status(self, pid: int, timeout_s: float | None) -> int | None:
        """Exit status of a process, negative for a signal; None if it has not ended in time."""
        return self._reports.status(pid, timeout_s)

    def close(self) -> None:
        """End the server and all its processes."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._socket.close()

    def _read(self) -> None:
        with self._socket.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                self._reports.note(line)


class ForkedProcess:
    """A process of the server, with the part of `subprocess.Popen` that members need.

    Args:
        server: that forks it.
        argv: name of the module and its arguments.
        files: its standard input, output and error; None: pipes.

    Attributes:
        stdin: text that it reads; stdout and stderr: text that it writes; None without pipes.
    """

    stdin: IO[str] | None = None
    stdout: IO[str] | None = None
    stderr: IO[str] | None = None

    def __init__(
        self, server: ForkServer, argv: list[str], files: tuple[int, int, int] | None = None
    ) -> None:
        self._server = server
        if files is not None:
            self.pid = server.start(argv, files)
            return
        (into, stdin), (stdout, out), (stderr, err) = os.pipe(), os.pipe(), os.pipe()
        try:
            self.pid = server.start(argv, (into, out, err))
        finally:
            for descriptor in (into, out, err):
                os.close(descriptor)
        self.stdin = os.fdopen(stdin, "w", encoding="utf-8", errors="replace")
        self.stdout = os.fdopen(stdout, encoding="utf-8", errors="replace")
        self.stderr = os.fdopen(stderr, encoding="utf-8", errors="replace")

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._server.status(self.pid, 0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            TimeoutExpired: it still runs.
        """
        status = self._server.status(self.pid, timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def serve(connection: socket.socket) -> None:
    """Fork on request, and report ended processes, until the socket is closed."""
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    os.set_blocking(ended, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if connection in ready:
                message, descriptors, *_ = socket.recv_fds(connection, _MOST_BYTES, 3)
                if not message:
                    return
                pid = _fork(json.loads(message), descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
                connection.sendall(f"started {pid} 0\n".encode())
            if ended in ready:
                with suppress(BlockingIOError):
                    os.read(ended, _MOST_BYTES)
                _report_ends(connection)


def _report_ends(connection: socket.socket) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection.sendall(f"ended {pid} {os.waitstatus_to_exitcode(status)}\n".encode())


def _fork(argv: list[str], descriptors: list[int]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _be(argv, descriptors)
        finally:
            os._exit(1)
    return pid


def _be(argv: list[str], descriptors: list[int]) -> NoReturn:
    """Become a process that runs a module as `python -m` does, and end."""
    ask_kernel_to_end_with_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, max(descriptors) + 64)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 stays open until the end
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 as above
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115 as above
    sys.argv = list(argv)
    status = _finish(_status_of(argv[0]))
    if status == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def _status_of(name: str) -> int:
    """Run a module; return the exit status of an interpreter, -SIGINT after KeyboardInterrupt."""
    try:
        return _run(name) & 0xFF
    except SystemExit as end:
        return _status_of_exit(end.code)
    except KeyboardInterrupt:
        traceback.print_exc()
        return -signal.SIGINT
    except BaseException:  # noqa: BLE001 as the interpreter does
        traceback.print_exc()
        return 1


def _status_of_exit(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)  # noqa: T201 as the interpreter does
    return 1


def _finish(status: int) -> int:
    """Finish like an interpreter: wait for threads, run exit handlers, flush."""
    for step in (vars(threading)["_shutdown"], vars(atexit)["_run_exitfuncs"]):
        try:
            step()
        except BaseException:  # noqa: BLE001 as the interpreter does
            traceback.print_exc()
    if not (_is_flushed(sys.stdout) and _is_flushed(sys.stderr)) and status >= 0:
        return _STATUS_OF_A_FAILED_FLUSH
    return status


def _is_flushed(stream: IO[str]) -> bool:
    try:
        if not stream.closed:
            stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _run(name: str) -> int:
    module: ModuleType | None = sys.modules.get(name) if name in PRELOADED else None
    if module is not None:
        main: Any = module.main
        return int(main() or 0)
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    return 0


def main() -> int:
    """Import the modules of members, then serve."""
    ask_kernel_to_end_with_parent()
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection)
    return 0


if __name__ == "__main__":
    sys.exit(main())
