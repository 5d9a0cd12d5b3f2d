"""What is normal while a group starts: logged at INFO at first, and as a warning if it lasts."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from assignor.adapters.membership.rejoin_timer import Cancellable, StartTimer
from assignor.logs import line_logger

_log = line_logger(__name__)

AFTER_S: Final = 30.0
"""How long a leader may wait for topics or clients before that is a warning."""


class LastingWarnings:
    """Logs the warnings of one leader: each new sentence once, and again when it has lasted.

    Args:
        after_s: seconds until a transient sentence is a warning.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self, *, after_s: float = AFTER_S, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._after_s = after_s
        self._now = now
        self._lock = threading.Lock()
        # Transient sentence of the last answers -> when it was first true.
        self._since_s: dict[str, float] = {}
        self._warned: set[str] = set()
        self._timer: Cancellable | None = None
        self._joins = 0

    def joined(self) -> None:
        """Note that a rebalance begins, which another member may lead."""
        with self._lock:
            self._joins += 1
            self._cancel()

    def decided(
        self, warnings: Sequence[str], transient: Collection[str], start_timer: StartTimer | None
    ) -> None:
        """Log the warnings of this leader's answers.

        Args:
            warnings: all of them.
            transient: those that are normal while a group starts.
            start_timer: of the client; None: there is none, and nothing is logged later.
        """
        with self._lock:
            if self._joins > 1:  # another member has led meanwhile
                self._since_s = {}
            self._joins = 0
            self._cancel()
            now_s, before_s = self._now(), self._since_s
            self._since_s = {s: before_s.get(s, now_s) for s in warnings if s in transient}
            self._warned &= self._since_s.keys()
            for sentence in warnings:
                if sentence not in transient:
                    _log.warning("%s", sentence)
                elif sentence not in before_s:
                    _log.info("%s", sentence)
            self._warn_of_lasting(start_timer)

    def close(self) -> None:
        """Log nothing any more."""
        with self._lock:
            self._since_s = {}
            self._cancel()

    def _warn_of_lasting(self, start_timer: StartTimer | None) -> None:
        """Log what has lasted; have this done again when the next sentence has."""
        now_s, waits_s = self._now(), []
        for sentence, since_s in self._since_s.items():
            wait_s = since_s + self._after_s - now_s
            if wait_s > 0:
                waits_s.append(wait_s)
            elif sentence not in self._warned:
                self._warned.add(sentence)
                _log.warning("%s (for %.0f s)", sentence, now_s - since_s)
        if waits_s and start_timer is not None:
            self._timer = start_timer(min(waits_s), lambda: self._fire(start_timer))

    def _fire(self, start_timer: StartTimer) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer = None
                self._warn_of_lasting(start_timer)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
