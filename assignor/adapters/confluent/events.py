"""What the member's threads pass to the application's thread, in order.

The application's thread takes events in `poll`, `consume` and `close`, and calls the application.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as Position

from encoding import TopicPartition

_WITHOUT_RESULT: Final = frozenset({"error_cb", "stats_cb", "throttle_cb"})
_REFUSALS: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})


class Change(Enum):
    """What a rebalance does to partitions of a member."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalanced:
    """Partitions that the member gets or gives up.

    Attributes:
        change: what becomes of them.
        partitions: sorted.
        served: called once, when the application has taken the change.
    """

    change: Change
    partitions: tuple[TopicPartition, ...]
    served: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An error that `poll` returns as a message."""

    error: KafkaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The end of an asynchronous or automatic commit, for the callback `on_commit`."""

    error: KafkaError | None
    offsets: Sequence[Position]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is to be called on the application's thread, such as its `TasksListener`."""

    call: Callable[[], object]


@dataclass(frozen=True, slots=True)
class CommitDue:
    """The interval between two automatic commits is over."""


Event = Rebalanced | Failed | Committed | Call | CommitDue


class Mailbox:
    """Events in order, for one application's thread; any thread may post.

    Attributes:
        events: the events that wait. `poll` looks at it without a lock: an event that it does not
            see yet is taken by the next call.
        has_polled: set by every `poll` and `consume`, reset by `idle_s`.
        closes: a callback has called `close`, which waits for its end.
        is_serving: the application's thread is inside a callback, which counts as polling, as in
            librdkafka.
        serves_on: the thread that is inside a callback, or None.
        has_loop: `run_tasks` polls, and logs pauses that are too long.
    """

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        self.has_polled = True
        self.is_serving = self.closes = self._has_failed = self.has_loop = False
        self.serves_on: int | None = None
        self._refused: set[int] = set()
        self._polled_s = time.monotonic()
        self._posted = threading.Condition()

    def callback(self, name: str, callback: Callable[..., object]) -> Callable[..., object]:
        """Return a callback of librdkafka that may call `close`.

        What it raises first is raised by the next `poll`: librdkafka's call would drop the messages
        that it has fetched.
        """

        def called(*arguments: object) -> object:
            before, self.serves_on = self.serves_on, threading.get_ident()
            try:
                return callback(*arguments)
            except Exception as error:
                if name not in _WITHOUT_RESULT:
                    raise
                if not self._has_failed:
                    self._has_failed = True
                    self.post(Call(call=partial(self._fail, error)))
                return None
            finally:
                self.serves_on = before

        return called

    def reader_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return librdkafka's settings with callbacks that may call `close`.

        Without `error_cb`, the first error of each kind that an operator must end, a refused login
        or certificate, is returned by `poll`: librdkafka would only log it.
        """
        wrapped = {
            name: self.callback(name, value) if callable(value) else value
            for name, value in settings.items()
        }
        return wrapped if wrapped.get("error_cb") else wrapped | {"error_cb": self._first_refusal}

    def _first_refusal(self, error: KafkaError) -> None:
        if error.code() in _REFUSALS - self._refused:
            self._refused.add(error.code())
            self.post(Failed(error=error))

    def _fail(self, error: Exception) -> None:
        self._has_failed = False
        raise error

    def idle_s(self) -> float:
        """Return the seconds since the application last polled, as far as it has been looked."""
        now_s = time.monotonic()
        if self.has_polled or self.is_serving:
            self.has_polled = False
            self._polled_s = now_s
        return now_s - self._polled_s

    @contextmanager
    def in_loop(self) -> Iterator[None]:
        """Set `has_loop` in the block."""
        self.has_loop = True
        try:
            yield
        finally:
            self.has_loop = False

    def post(self, event: Event) -> None:
        """Add an event."""
        with self._posted:
            self.events.append(event)
            self._posted.notify_all()

    def take(self) -> Event | None:
        """Return the first event, or None."""
        with self._posted:
            return self.events.popleft() if self.events else None

    def wake(self) -> None:
        """End a `wait`."""
        with self._posted:
            self._posted.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Wait until there is an event, `wake` is called, or the time is over."""
        with self._posted:
            if not self.events:
                self._posted.wait(timeout_s)
