"""How a member process speaks: one JSON object a line, by a pipe that nothing else writes to."""

import json
import os
import sys
import threading
import time


class Mouth:
    """Writes what happened to what was standard output; that becomes standard error.

    A JVM in this process may print, and what it prints must not look like an event.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        sys.stdout.flush()
        self._pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def __call__(self, event: str, **values: object) -> None:
        """Say that `event` happened now; `values` are what JSON can say."""
        line = json.dumps({"event": event, "at_ms": time.monotonic_ns() / 1e6, **values})
        with self._lock:
            self._pipe.write(line + "\n")
            self._pipe.flush()
