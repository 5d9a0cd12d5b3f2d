"""Finds calls that block the event loop, on which aiokafka sends its heartbeats."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from assignor.adapters.aiokafka.port import HEARD
from assignor.logs import line_logger

_log = line_logger(__name__)

# How often it is looked at whether the event loop runs.
_LOOK_S: Final = 0.5


@contextmanager
def log_blocked_loop(coordinator: Any) -> Iterator[None]:
    """Log, while a coordinator sends heartbeats, that calls have blocked the event loop too long.

    The time that the event loop was blocked does not count as a silence of brokers.

    Args:
        coordinator: has in `HEARD` when a heartbeat was answered.
    """
    loop = asyncio.get_running_loop()
    session_ms = coordinator._session_timeout_ms  # noqa: SLF001 no public way
    timer: asyncio.TimerHandle | None = None

    def look(due_s: float) -> None:
        now_s, heard_s = time.monotonic(), getattr(coordinator, HEARD)
        blocked_s, pause_s = now_s - due_s, now_s - heard_s
        if pause_s * 1000 > session_ms and 2 * blocked_s > pause_s:
            _log.warning(
                "%.1f s passed between two heartbeats, above session_timeout_ms=%s: this costs the "
                "member its membership; a call blocked the event loop for %.1f s of it (or the "
                "process was suspended): await such a call with asyncio.to_thread, or raise the "
                "limit",
                pause_s,
                session_ms,
                blocked_s,
            )
        setattr(coordinator, HEARD, heard_s + blocked_s)
        look_later()

    def look_later() -> None:
        nonlocal timer
        timer = loop.call_later(_LOOK_S, look, time.monotonic() + _LOOK_S)

    look_later()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
