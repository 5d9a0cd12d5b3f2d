"""The clock, the random generator and the queue of pending events of a simulation.

Messages on their way, timers of members and actions of the operator are each one `Pending` in one
queue. A seeded run takes the earliest; an exhaustive search takes each of them in turn. Without a
seed every delay is its shortest, so that a run depends only on the order in which the caller takes
events.
"""

import heapq
import random
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeVar

_Value = TypeVar("_Value")


class Pending(NamedTuple):
    """One pending event.

    Attributes:
        due_ms: when, on the simulated clock.
        seq: order of scheduling; ties in time are broken by it.
        kind: what happens; a key of the dispatch table.
        target: index of the thread that it concerns, or -1.
        data: arguments of the kind; immutable.
    """

    due_ms: int
    seq: int
    kind: str
    target: int
    data: tuple[Any, ...]


class Scheduler:
    """A clock that moves from event to event, a seeded random generator, and the pending events.

    Attributes:
        now_ms: the simulated time.
    """

    def __init__(self, seed: int | None) -> None:
        """Begin at 0 ms.

        Args:
            seed: of the random generator; None: nothing is random.
        """
        self.now_ms = 0
        self._rng = None if seed is None else random.Random(seed)  # noqa: S311 a simulation
        self._queue: list[Pending] = []
        self._seq = 0

    def copy(self) -> Self:
        """Return an independent scheduler in the same state, random generator included."""
        other = object.__new__(type(self))
        other.now_ms = self.now_ms
        other._rng = None
        if self._rng is not None:
            other._rng = random.Random()  # noqa: S311 its state follows
            other._rng.setstate(self._rng.getstate())
        other._queue = self._queue.copy()
        other._seq = self._seq
        return other

    def delay(self, shortest_ms: int, longest_ms: int) -> int:
        """Draw a delay; the shortest one without a seed."""
        if self._rng is None or longest_ms <= shortest_ms:
            return shortest_ms
        # `random()` is several times as fast as `randint`, and a bounce draws hundreds.
        return shortest_ms + int(self._rng.random() * (longest_ms - shortest_ms + 1))

    def happens(self, probability: float) -> bool:
        """Draw whether an event of this probability happens; never without a seed."""
        return self._rng is not None and probability > 0.0 and self._rng.random() < probability

    def choose(self, values: Sequence[_Value]) -> _Value:
        """Draw one of the values; the first without a seed."""
        return values[self.delay(0, len(values) - 1)]

    def shuffled(self, values: Sequence[_Value]) -> list[_Value]:
        """Return the values in a drawn order; unchanged without a seed."""
        mixed = list(values)
        if self._rng is not None:
            self._rng.shuffle(mixed)
        return mixed

    def schedule(self, delay_ms: int, kind: str, target: int, data: tuple[Any, ...]) -> None:
        """Add an event that happens `delay_ms` from now."""
        self._seq += 1
        heapq.heappush(self._queue, Pending(self.now_ms + delay_ms, self._seq, kind, target, data))

    def next_due_ms(self) -> int | None:
        """Return when the earliest pending event happens; None if there is none."""
        return self._queue[0].due_ms if self._queue else None

    def pop(self) -> Pending:
        """Take the earliest pending event, and set the clock to its time.

        Raises:
            IndexError: nothing is pending.
        """
        pending = heapq.heappop(self._queue)
        self.now_ms = max(self.now_ms, pending.due_ms)
        return pending

    def pending(self) -> list[Pending]:
        """Return all pending events, earliest first."""
        return sorted(self._queue)

    def unordered(self) -> Sequence[Pending]:
        """Return all pending events, in no order."""
        return self._queue

    def take(self, pending: Pending) -> None:
        """Take this event out of the queue, whatever its time.

        Raises:
            ValueError: it is not pending; take one of `pending()`.
        """
        self._queue.remove(pending)
        heapq.heapify(self._queue)
