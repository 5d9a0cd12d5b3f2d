"""What the log says of brokers that do not answer the heartbeats of a member: two lines."""

import time
from collections.abc import Callable

from assignor.logs import line_logger

_log = line_logger(__name__)


class SilenceLog:
    """Logs once that no broker answers a member for a session timeout, and once that one does.

    Clients log nothing while a broker that is stopped keeps the connection, and each attempt if it
    does not. `look` is called when a heartbeat has had no answer for a session timeout, and after
    each heartbeat.

    Args:
        unheard_s: returns how long no coordinator has answered; 0.0: it has within the timeout.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self, unheard_s: Callable[[], float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._unheard_s = unheard_s
        self._now = now
        self._since_s: float | None = None

    def look(self) -> None:
        """Log that the silence has begun, or has ended."""
        silent_s = self._unheard_s()
        if silent_s and self._since_s is None:
            self._since_s = self._now() - silent_s
            _log.warning(
                "no broker has answered the heartbeats of this member for %.0f s, longer than its "
                "session timeout: other members may have its tasks",
                silent_s,
            )
        elif not silent_s and self._since_s is not None:
            seconds, self._since_s = self._now() - self._since_s, None
            _log.info("a broker answers the heartbeats of this member again, after %.0f s", seconds)
