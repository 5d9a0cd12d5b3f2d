"""The mouth of a member process: events to standard output, one line each."""

import sys
import threading
import time

from system_tests.live import events


class Reporter:
    """Writes events to standard output, one line each, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, event: events.Event, *, at_ms: float | None = None) -> None:
        """Report one event that happened now, or at `at_ms`."""
        with self._lock:
            at_ms = now_ms() if at_ms is None else at_ms
            line = events.write_report(event, at_ms=at_ms).encode() + b"\n"
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def now_ms() -> float:
    """Read the clock that all processes of a machine share."""
    return time.monotonic_ns() / 1e6
