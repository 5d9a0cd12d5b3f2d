"""What was written and not yet processed, in constant memory: the producer's side of the tally."""

import threading
from collections import deque


class Written:
    """The end of each partition, and since when the records that nobody has done yet are there.

    The producer's thread notes, the main thread asks. An acknowledgement may come after the record
    was processed already; it waited for no time then.
    """

    def __init__(self, partitions: int) -> None:
        self._lock = threading.Lock()
        self._ends = dict.fromkeys(range(partitions), 0)
        self._done = dict.fromkeys(range(partitions), 0)
        self._waiting: dict[int, deque[tuple[int, float]]] = {p: deque() for p in range(partitions)}
        self.acknowledged = 0

    def note(self, partition: int, offset: int, at_ms: float) -> None:
        """A record was acknowledged."""
        with self._lock:
            self.acknowledged += 1
            self._ends[partition] = max(self._ends[partition], offset + 1)
            if offset >= self._done[partition]:
                self._waiting[partition].append((offset, at_ms))

    def take(self, partition: int, last_offset: int, began_ms: float) -> float:
        """A batch was processed; return for how many ms its oldest record had waited."""
        oldest_ms = began_ms
        with self._lock:
            self._done[partition] = max(self._done[partition], last_offset + 1)
            waiting = self._waiting[partition]
            while waiting and waiting[0][0] <= last_offset:
                oldest_ms = min(oldest_ms, waiting.popleft()[1])
        return began_ms - oldest_ms

    def ends(self) -> dict[int, int]:
        """Return, per partition, the offset after the last acknowledged one.

        All below it are records: a broker hands out offsets without holes.
        """
        with self._lock:
            return dict(self._ends)

    def behind(self) -> int:
        """Return how many acknowledged records wait."""
        with self._lock:
            return sum(len(waiting) for waiting in self._waiting.values())
