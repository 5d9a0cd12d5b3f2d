"""The two lanes of tests: those that need no clock, and those that do.

A test with real threads, processes, sockets or sleeps takes the fixture `clock`, itself or through
another fixture, as `@pytest.mark.usefixtures("clock")`; one that sends signals to its own process,
or is about exits of processes, the fixture `alone`. The lane follows from these fixtures:
conftest.py gives tests that have them the marks `clock` and `alone`, which `make test` selects by.
They run after the others, with no more workers than cores, and those of `alone` one at a time.

A test that does one of these without the fixture fails:

- `clock`: starts a thread or process, binds or connects a socket, sends a signal to a process;
  `time.sleep`, `asyncio.sleep` (unless the loop has a time of its own), and a wait with a timeout
  for an event, a condition or a queue of threads;
- `alone`: sends a signal to its own process, sets a timer that does, waits for a signal.

Not seen are loops that read the time, other timers of asyncio, `select` and locks with a timeout.
"""

import asyncio
import functools
import os
import signal
import sys
import threading
import time
import traceback
from typing import Final

import pytest

_EVENTS: Final = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.kill",
        "os.killpg",
        "os.posix_spawn",
        "os.spawn",
        "signal.pthread_kill",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "subprocess.Popen",
    }
)


_REAL_TIME: Final = asyncio.BaseEventLoop.time
_LANES: Final = frozenset({"clock", "alone"})


class _Guard:
    """Watches what a test without the fixtures `clock` and `alone` does."""

    def __init__(self) -> None:
        self.missing: frozenset[str] = frozenset()
        self.seen: dict[str, str] = {}

    def see(self, event: str, lane: str) -> None:
        if lane in self.missing and event not in self.seen:
            missing, self.missing = self.missing, frozenset()  # `extract_stack` reads files
            frames = [f for f in traceback.extract_stack() if "site-packages" not in f.filename]
            frames = [f for f in frames if f.filename != __file__]
            place = next((f for f in reversed(frames) if "tests" in f.filename), frames[-1])
            self.seen[event] = f"fixture `{lane}` for {event} ({place.filename}:{place.lineno})"
            self.missing = missing

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        self.seen.clear()
        is_real = item.get_closest_marker("real") is not None  # always run by themselves
        self.missing = frozenset() if is_real else _LANES.difference(item.fixturenames)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item, nextitem):
        self.missing = frozenset()  # fixtures of other tests may end here, those of the session
        try:
            return (yield)
        finally:
            if self.seen:
                pytest.fail(
                    f"this test needs the {', the '.join(self.seen.values())}; give it the fixture"
                    ' (`@pytest.mark.usefixtures("clock")`), or call no such thing',
                    pytrace=False,
                )


_GUARD: Final = _Guard()


@pytest.fixture(scope="session")
def clock():
    """Let the test use real threads, processes, sockets and sleeps: it runs in the clock lane."""


@pytest.fixture(scope="session")
def alone(clock):
    """Let no other test run meanwhile: for signals and exits of processes."""


def _watch(owner, name, lane, *, seconds=None):
    """Watch calls of a function, only those whose argument at `seconds` is not 0 or None."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def watching(*args, **kwargs):
        waits = seconds is None or (args[seconds:] or [kwargs.get("timeout")])[0]
        loop = asyncio._get_running_loop() if owner is asyncio else None
        if waits and getattr(type(loop), "time", _REAL_TIME) is _REAL_TIME:
            _GUARD.see(f"{owner.__name__}.{name}", lane)
        return function(*args, **kwargs)

    setattr(owner, name, watching)


def _audit(event, args):
    if event in _EVENTS:
        is_own = event in {"os.kill", "os.killpg"} and args[0] in {0, os.getpid(), os.getpgrp()}
        _GUARD.see(event, "alone" if is_own and args[1] else "clock")


def pytest_configure(config):
    if config.pluginmanager.has_plugin("guard of the lanes"):
        return
    config.pluginmanager.register(_GUARD, "guard of the lanes")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a job that a script starts in the background; processes of tests would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.addaudithook(_audit)
    _watch(threading.Thread, "start", "clock")
    _watch(threading.Condition, "wait", "clock", seconds=1)
    _watch(asyncio, "sleep", "clock", seconds=0)
    _watch(time, "sleep", "clock", seconds=0)
    _watch(signal, "setitimer", "alone", seconds=1)
    for name in ("raise_signal", "pause", "sigwait"):
        _watch(signal, name, "alone")
