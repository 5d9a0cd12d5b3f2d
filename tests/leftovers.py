"""Fails a module of tests that leaves threads behind.

A client that is not closed asks for metadata until its process ends. Its random back-offs fail the
property tests of the same process, and its logged tracebacks disturb the parsing of source code.
"""

import re
import threading
import time

import pytest

WAIT_S = 10.0
# Of a fixture of the whole session: the embedded broker, the fork server, Spark's gateway.
OF_SESSION = re.compile(r"embedded-broker|fork-server|Thread-\d+( \(serve_forever\))?")


def left_behind(before: frozenset[int | None], *, wait_s: float = WAIT_S) -> list[str]:
    """Return names of the threads that began since and do not end within `wait_s`."""
    deadline = time.monotonic() + wait_s
    while names := sorted(
        thread.name
        for thread in threading.enumerate()
        if thread.ident not in before and not OF_SESSION.fullmatch(thread.name)
    ):
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return names


class _Modules:
    """Compares the threads before a module's first test with those after its last one."""

    def __init__(self) -> None:
        self._before: frozenset[int | None] | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self):
        if self._before is None:
            self._before = frozenset(thread.ident for thread in threading.enumerate())
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item, nextitem):
        done = yield
        if nextitem is None or nextitem.path != item.path:
            before, self._before = self._before, None
            if names := left_behind(before or frozenset()):
                pytest.fail(
                    f"{item.path.name} left threads behind: {', '.join(names)}", pytrace=False
                )
        return done


def pytest_configure(config):
    config.pluginmanager.register(_Modules(), "threads left behind")
