"""Threads and processes that use a consumer beside the thread that polls it."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any, Final, Self, TypeVar
from weakref import WeakSet

_Result = TypeVar("_Result")
# How long a wait for two events looks at only one of them.
_LOOK_S: Final = 0.1

SECOND_THREAD: Final = (
    "another thread polls this consumer; poll it on one thread, or make a consumer for each thread"
)
FORKED: Final = (
    "this consumer was made before this process was forked, and its threads are in the parent "
    "process; make it in the child process"
)

LOOP_END: Final[ContextVar[threading.Event | asyncio.Event | None]] = ContextVar(
    "LOOP_END", default=None
)
"""What ends the poll loop that runs on this thread: a wait for a broker looks at it."""


def runs_on_io_thread(consumer: Any) -> bool:
    """Return whether this is the I/O thread of a kafka-python client, on which listeners run.

    Args:
        consumer: a `KafkaConsumer`, or None while there is none.
    """
    net = getattr(consumer, "_net", None)
    return threading.current_thread() is getattr(net, "_io_thread", None)


class OneThread:
    """A reentrant lock that refuses a second thread, and every thread of a forked process.

    Attributes:
        is_busy: a thread has the lock, or the process was forked. It may be read without the lock.
        is_forked: this is a child process of the one that made it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self.is_busy = self.is_forked = False
        _all.add(self)

    def acquire(self, timeout_s: float = 0.0) -> bool:
        """Return whether this thread has the lock now, after at most so many seconds.

        Raises:
            RuntimeError: the process was forked.
        """
        self.check_process()
        if not self._lock.acquire(timeout=timeout_s):
            return False
        self._depth += 1
        self.is_busy = True
        return True

    def release(self) -> None:
        """Give the lock back, once for each `acquire`."""
        self._depth -= 1
        self.is_busy = self._depth > 0
        self._lock.release()

    def check_process(self) -> None:
        """Check that this is the process in which the consumer was made.

        Raises:
            RuntimeError: it is not.
        """
        if self.is_forked:
            raise RuntimeError(FORKED)

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            RuntimeError: another thread has it, or the process was forked.
        """
        if not self.acquire():
            raise RuntimeError(SECOND_THREAD)
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()


class EitherEvent(threading.Event):
    """An event that is set when it, or one of two others, is set.

    Args:
        given: of the application; it has `is_set` and `wait`.
        own: another one.
    """

    def __init__(self, given: threading.Event, own: threading.Event) -> None:
        super().__init__()
        self._parts = given, own

    def is_set(self) -> bool:
        """Return whether one is set."""
        return super().is_set() or any(part.is_set() for part in self._parts)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until one is set, or the time is over; return whether one is."""
        end_s = inf if timeout is None else time.monotonic() + timeout
        while not self.is_set() and (left_s := end_s - time.monotonic()) > 0:
            self._parts[-1].wait(min(_LOOK_S, left_s))
        return self.is_set()


class Turns:
    """Lets threads use a client between two short polls of the polling thread.

    Attributes:
        waiting: number of calls that wait or run; the polling thread lets them go first.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._lock = threading.RLock()
        self._counted = threading.Condition()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Use the client after at most one short poll of another thread."""
        with self._counted:
            self.waiting += 1
        try:
            with self._lock:
                yield
        finally:
            with self._counted:
                self.waiting -= 1
                self._counted.notify_all()

    def poll(
        self, read: Callable[[float], list[_Result]], wait_s: float, *, limit_s: float
    ) -> list[_Result]:
        """Return what `read(wait_s)` returns; nothing if others use the client for `limit_s`."""
        if self.waiting:  # a call that is not seen yet waits for this poll
            with self._counted:
                if not self._counted.wait_for(lambda: not self.waiting, limit_s):
                    return []
        with self._lock:
            return read(wait_s)


_all: Final[WeakSet[OneThread]] = WeakSet()


def _forked() -> None:
    for each in list(_all):
        each.is_busy = each.is_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
