"""Writes the events of a soak as JSON lines, each at once: those of a stopped run are kept."""

import json
import threading
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self, TextIO

from system_tests.errors import EnvironmentFailureError


class Journal:
    """Writes one JSON object a line, from any thread; without a path it writes nothing.

    Raises:
        EnvironmentFailureError: the file cannot be created.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._began_s = monotonic()
        self._file: TextIO | None = None
        self.bytes = 0
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise EnvironmentFailureError(
                f"{path} cannot be written: {error.strerror}; choose another --out"
            ) from error

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    @property
    def at_s(self) -> float:
        """Seconds since the journal began."""
        return monotonic() - self._began_s

    def write(self, event: str, **fields: object) -> None:
        """Write one line."""
        line = json.dumps({"at_s": round(self.at_s, 3), "event": event} | fields)
        with self._lock:
            self.bytes += len(line) + 1
            if self._file is not None:
                self._file.write(line + "\n")
                self._file.flush()
