"""The order in which a client gives tasks away: its largest subtopology shrinks first."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence


class GivingOrder:
    """Tasks of one client, kept in order while they come and go.

    A client may hold half of all tasks, and is asked for the first few of them once for every
    client that looks for room: sorting them each time would be quadratic.
    """

    def __init__(self, tasks: Iterable[int], subtopology: Sequence[int]) -> None:
        """Begin.

        Args:
            tasks: of the client.
            subtopology: task -> its subtopology.
        """
        self._subtopology = subtopology
        self._by_part: dict[int, list[int]] = {}
        for task in sorted(tasks):
            self._by_part.setdefault(subtopology[task], []).append(task)

    def add(self, task: int) -> None:
        """Add a task that is not there."""
        insort(self._by_part.setdefault(self._subtopology[task], []), task)

    def discard(self, task: int) -> None:
        """Remove a task, if it is there."""
        part = self._by_part.get(self._subtopology[task], [])
        at = bisect_left(part, task)
        if at < len(part) and part[at] == task:
            del part[at]

    def __iter__(self) -> Iterator[int]:
        """Tasks by how many of their subtopology stay when they go, fewest last; then by number.

        Nothing may come or go meanwhile.
        """
        parts = sorted(self._by_part.values(), key=len, reverse=True)
        longest = len(parts[0]) if parts else 0
        count = 0  # of the parts that reach down to this place
        for place in range(longest - 1, -1, -1):
            while count < len(parts) and len(parts[count]) > place:
                count += 1
            yield from sorted([part[place] for part in parts[:count]])
