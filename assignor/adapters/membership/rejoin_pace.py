"""How long a member waits before it asks for the next rebalance, by the answers that it got."""

from assignor.rebalance import Received
from probing import RejoinNow, ScheduleRebalance

FIRST_BACKOFF_MS = 1_000
LAST_BACKOFF_MS = 60_000
AT_ONCE_MAX = 16
"""Answers in a row that may have a member rejoin at once: version probing and tasks that wait for
their owners take a few. A leader that goes on asking is broken, and the whole group rebalances for
it."""

_HOST_IS_MISSING = "host is missing"


class RejoinPace:
    """Waits of one member; the back-off doubles from a second to a minute until an answer settles.

    An answer that cannot be taken is asked for again after the back-off. A rejoin that an answer
    asks for is made at once, but waits as well when the answer to a rejoin for the routing view
    misses the member again, or after `AT_ONCE_MAX` such answers in a row.
    """

    def __init__(self) -> None:
        self._backoff_ms = FIRST_BACKOFF_MS
        self._missed_host = False
        self.in_a_row = 0

    def wait_ms(self, received: Received, *, now_ms: float) -> int:
        """Milliseconds to wait at least before the next rejoin; call it once an answer.

        Args:
            received: the answer, with what probing asks for.
            now_ms: epoch milliseconds.
        """
        at_once = [
            command.rule
            for command in received.commands
            if isinstance(command, RejoinNow)
            or (isinstance(command, ScheduleRebalance) and command.at_ms <= now_ms)
        ]
        missed_before, self._missed_host = self._missed_host, _HOST_IS_MISSING in at_once
        self.in_a_row = self.in_a_row + 1 if at_once else 0
        missed_twice = missed_before and self._missed_host
        if at_once and self.in_a_row <= AT_ONCE_MAX and not missed_twice:
            return 0
        if not at_once and not received.failure:
            self._backoff_ms = FIRST_BACKOFF_MS
            return 0
        wait_ms = self._backoff_ms
        self._backoff_ms = min(2 * wait_ms, LAST_BACKOFF_MS)
        return wait_ms
