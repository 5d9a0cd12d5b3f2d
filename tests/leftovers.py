"""Fails a module of tests that leaves threads or child processes behind.

A client that is not closed asks for metadata until its process ends. Its random back-offs fail the
property tests of the same process, and its logged tracebacks disturb the parsing of source code.
"""

import os
import threading
import time
from collections.abc import Collection
from pathlib import Path

import pytest

WAIT_S = 120.0
# What fixtures of the whole session keep: the embedded broker, the fork server, Spark's gateway.
SESSION_THREADS = frozenset({"embedded-broker", "fork-server"})
SESSION_MODULES = ("py4j", "pyspark", "socketserver")
SESSION_COMMANDS = (
    "system_tests.support.fork_server",
    "java",
    "end_jvm",
    "execnet",
    "resource_tracker",
)
PROCESSES = Path("/proc")


def is_of_session(thread: threading.Thread) -> bool:
    """Whether a fixture of the session may have started the thread."""
    target = getattr(thread, "_target", None)
    places = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return thread.name in SESSION_THREADS or any(p.startswith(SESSION_MODULES) for p in places)


def children() -> dict[int, str]:
    """Process id -> command of the running child processes; empty where there is no /proc."""
    found = {}
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            state, parent = (
                (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
            )
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended
            continue
        is_child = int(parent) == os.getpid() and state != "Z"
        if is_child and not any(name in command for name in SESSION_COMMANDS):
            found[int(folder.name)] = command
    return found


def left_behind(threads: Collection[threading.Thread], processes: Collection[int]) -> list[str]:
    """Return what began since these threads and processes, and does not end within `WAIT_S`."""
    before = {id(thread) for thread in threads}
    deadline = time.monotonic() + WAIT_S
    while names := sorted(
        [
            *(
                f"thread {thread.name}"
                for thread in threading.enumerate()
                if id(thread) not in before and not is_of_session(thread)
            ),
            *(
                f"process {command.strip()[:80]}"
                for number, command in children().items()
                if number not in processes
            ),
        ]
    ):
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return names


class _Modules:
    """Compares what runs before a module's first test with what runs after its last one."""

    def __init__(self) -> None:
        self._before: tuple[list[threading.Thread], set[int]] | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self):
        if self._before is None:
            self._before = (threading.enumerate(), set(children()))
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item, nextitem):
        try:
            return (yield)
        finally:
            if nextitem is None or nextitem.path != item.path:
                before, self._before = self._before or ((), ()), None
                if names := left_behind(*before):
                    pytest.fail(f"{item.path.name} leaves {', '.join(names)}", pytrace=False)


def pytest_configure(config):
    config.pluginmanager.register(_Modules(), "threads and processes left behind")
