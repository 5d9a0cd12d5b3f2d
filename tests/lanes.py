"""The two lanes of tests: those that need no clock, and those that do.

A test with real threads, processes, sockets or sleeps takes the fixture `clock`, itself or through
another fixture, as `@pytest.mark.usefixtures("clock")`; one about signals and exits of processes
the fixture `alone`. The lane follows from these fixtures: conftest.py gives tests that have them
the marks `clock` and `alone`, which `make test` selects by. They run after the others, with no more
workers than cores, and those of `alone` one at a time.

A test that does such things without the fixture fails, so a fixture cannot be forgotten.
"""

import functools
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
        "os.posix_spawn",
        "os.spawn",
        "signal.pthread_kill",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "subprocess.Popen",
    }
)


class _Guard:
    """Watches what a test without the fixture `clock` does."""

    def __init__(self) -> None:
        self.is_watching = False
        self.seen: dict[str, str] = {}

    def see(self, event: str) -> None:
        if self.is_watching and event not in self.seen:
            self.is_watching = False  # `extract_stack` reads files
            frames = [f for f in traceback.extract_stack() if "site-packages" not in f.filename]
            frames = [f for f in frames if f.filename != __file__]
            place = next((f for f in reversed(frames) if "tests" in f.filename), frames[-1])
            self.seen[event] = f"{place.filename}:{place.lineno}"
            self.is_watching = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        self.seen.clear()
        is_real = item.get_closest_marker("real") is not None  # always run by themselves
        self.is_watching = not is_real and "clock" not in item.fixturenames
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item, nextitem):
        self.is_watching = False  # fixtures of other tests may end here, those of the session
        try:
            return (yield)
        finally:
            if self.seen:
                uses = ", ".join(f"{event} ({place})" for event, place in self.seen.items())
                pytest.fail(
                    f"this test needs a clock: {uses}; give it the fixture `clock`"
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


def _watched(name, function):
    @functools.wraps(function)
    def watching(*args, **kwargs):
        if name != "time.sleep" or args != (0,):
            _GUARD.see(name)
        return function(*args, **kwargs)

    return watching


def pytest_configure(config):
    if config.pluginmanager.has_plugin("guard of the lanes"):
        return
    config.pluginmanager.register(_GUARD, "guard of the lanes")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a job that a script starts in the background; processes of tests would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.addaudithook(lambda event, _: _GUARD.see(event) if event in _EVENTS else None)
    threading.Thread.start = _watched("threading.Thread.start", threading.Thread.start)
    time.sleep = _watched("time.sleep", time.sleep)
