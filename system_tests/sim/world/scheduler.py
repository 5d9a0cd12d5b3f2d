"""The only clock and the only dice of a simulation.

Everything that is going to happen is one `Pending` in one queue: messages on their way, timers of
members, actions of the operator. A seeded run takes the earliest; an exhaustive search looks at all
of them and takes whichever it likes. Without dice every delay is its shortest, so that nothing is
left to chance but the order in which the caller takes things.
"""

import heapq
import random
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeVar

_Value = TypeVar("_Value")


class Pending(NamedTuple):
    """One thing that is going to happen.

    Attributes:
        due_ms: when, on the simulated clock.
        seq: order of scheduling; ties in time are broken by it.
        kind: what; the world's dispatch table knows the words.
        target: index of the thread it happens to, -1 where it happens to none.
        data: what the kind needs to know; immutable.
    """

    due_ms: int
    seq: int
    kind: str
    target: int
    data: tuple[Any, ...]


class Scheduler:
    """A clock that stands still between events, dice with one seed, and what is going to happen.

    Attributes:
        now_ms: the simulated time.
    """

    def __init__(self, seed: int | None) -> None:
        """Begin at 0 ms.

        Args:
            seed: of the dice; None for a world without chance.
        """
        self.now_ms = 0
        self._dice = None if seed is None else random.Random(seed)  # noqa: S311 dice of a simulation
        self._queue: list[Pending] = []
        self._seq = 0

    def copy(self) -> Self:
        """Return an independent scheduler in the same state, dice included."""
        other = object.__new__(type(self))
        other.now_ms = self.now_ms
        other._dice = None
        if self._dice is not None:
            other._dice = random.Random()  # noqa: S311 the state of the other dice follows
            other._dice.setstate(self._dice.getstate())
        other._queue = self._queue.copy()
        other._seq = self._seq
        return other

    def delay(self, shortest_ms: int, longest_ms: int) -> int:
        """Draw a delay; the shortest one without dice."""
        if self._dice is None or longest_ms <= shortest_ms:
            return shortest_ms
        # `random()` is several times as fast as `randint`, and a bounce draws hundreds.
        return shortest_ms + int(self._dice.random() * (longest_ms - shortest_ms + 1))

    def happens(self, probability: float) -> bool:
        """Draw whether a thing of this probability happens; never without dice."""
        return self._dice is not None and probability > 0.0 and self._dice.random() < probability

    def choose(self, values: Sequence[_Value]) -> _Value:
        """Draw one of the values; the first without dice."""
        return values[self.delay(0, len(values) - 1)]

    def shuffled(self, values: Sequence[_Value]) -> list[_Value]:
        """Return the values in a drawn order; as they are without dice."""
        mixed = list(values)
        if self._dice is not None:
            self._dice.shuffle(mixed)
        return mixed

    def schedule(self, delay_ms: int, kind: str, target: int, data: tuple[Any, ...]) -> None:
        """Let something happen `delay_ms` from now."""
        self._seq += 1
        heapq.heappush(self._queue, Pending(self.now_ms + delay_ms, self._seq, kind, target, data))

    def next_due_ms(self) -> int | None:
        """When the earliest thing happens; None if nothing ever will."""
        return self._queue[0].due_ms if self._queue else None

    def pop(self) -> Pending:
        """Take the earliest thing, and let it be its time.

        Raises:
            IndexError: nothing is pending.
        """
        pending = heapq.heappop(self._queue)
        self.now_ms = max(self.now_ms, pending.due_ms)
        return pending

    def pending(self) -> list[Pending]:
        """Everything that is going to happen, earliest first."""
        return sorted(self._queue)

    def unordered(self) -> Sequence[Pending]:
        """Everything that is going to happen, in no order."""
        return self._queue

    def take(self, pending: Pending) -> None:
        """Take this thing out of the queue, now rather than at its time.

        Raises:
            ValueError: it is not pending; take one of `pending()`.
        """
        self._queue.remove(pending)
        heapq.heapify(self._queue)
