"""Asking for a rebalance at a point in time, never while one is running.

A request that falls into a running rebalance would be lost with it or start an endless chain
(KAFKA-14382), so the timer waits until the member is stable.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

_RETRY_S = 0.1


class Cancellable(Protocol):
    """A scheduled call, as `threading.Timer` and asyncio's handles are."""

    def cancel(self) -> object:
        """Drop the call."""


StartTimer = Callable[[float, Callable[[], None]], Cancellable]
"""(seconds, function) -> the scheduled call of the function."""


def in_a_thread(delay_s: float, call: Callable[[], None]) -> Cancellable:
    """Have `call` called from a thread of its own, for clients without an event loop."""
    timer = threading.Timer(min(delay_s, threading.TIMEOUT_MAX), call)
    timer.daemon = True
    timer.name = "followup-rebalance"
    timer.start()
    return timer


class FollowupTimer:
    """At most one pending request; a later call replaces the earlier one.

    Args:
        request_rejoin: asks the client for a rebalance.
        is_busy: whether a rebalance is running now.
        start_timer: schedules the request: on a thread, or on the client's event loop.
    """

    def __init__(
        self,
        request_rejoin: Callable[[], None],
        is_busy: Callable[[], bool],
        start_timer: StartTimer = in_a_thread,
    ) -> None:
        self._request_rejoin = request_rejoin
        self._is_busy = is_busy
        self._start_timer = start_timer
        self._lock = threading.Lock()
        self._timer: Cancellable | None = None
        # Of the pending request: a call that has begun already cannot be cancelled any more.
        self._number = 0
        self._closed = False

    def schedule(self, delay_ms: float) -> None:
        """Ask for a rebalance in `delay_ms`; replaces what was scheduled before."""
        with self._lock:
            self._replace(max(0.0, delay_ms) / 1000)

    def clear(self) -> None:
        """Drop a pending request."""
        with self._lock:
            self._cancel()

    def close(self) -> None:
        """Drop a pending request and take no more."""
        with self._lock:
            self._closed = True
            self._cancel()

    def _cancel(self) -> None:
        self._number += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _replace(self, delay_s: float) -> None:
        self._cancel()
        if not self._closed:
            self._timer = self._start_timer(delay_s, partial(self._fire, self._number))

    def _fire(self, number: int) -> None:
        with self._lock:
            if number != self._number:
                return  # dropped or replaced while this call waited for the lock
            if self._is_busy():
                self._replace(_RETRY_S)
                return
            self._timer = None
        self._request_rejoin()
