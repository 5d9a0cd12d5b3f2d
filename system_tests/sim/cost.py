"""What a bounce cost: pauses, state to restore, tasks that moved, bytes on the wire.

A partition pauses from the moment that its owner gives it up, or ends, until another owner has
restored its state; records are still written meanwhile. Counted from the first settled group on.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from encoding import TopicPartition
from system_tests.sim.events import Answered, Ended, Gave, Happening, Settled, Took, Wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one trace.

    Attributes:
        pause_ms: sum over all partitions; longest_pause_ms: of one partition at a time.
        paused_records: written while their partition paused, at the rate that was given.
        restored: records of state that were read again.
        moved: tasks that came to another process than the one that had them before.
        bytes: of all subscriptions and answers.
    """

    pause_ms: int
    longest_pause_ms: int
    paused_records: int
    restored: int
    moved: int
    bytes: int


def cost_of(trace: Iterable[Happening], *, records_per_second: int) -> Cost:
    """Add up a trace.

    Args:
        trace: of one simulation, from its beginning.
        records_per_second: written to each partition.
    """
    sums = _Sums()
    for event in trace:
        adder = _ADDERS.get(type(event))
        if adder is not None:
            adder(sums, event)
    return Cost(
        pause_ms=sum(sums.pauses),
        longest_pause_ms=max(sums.pauses, default=0),
        paused_records=sum(sums.pauses) * records_per_second // 1000,
        restored=sums.restored,
        moved=sums.moved,
        bytes=sums.bytes,
    )


@dataclass(slots=True)
class _Sums:
    """Sums so far; nothing counts before the first settled group."""

    counts: bool = False
    idle_since: dict[TopicPartition, int] = field(default_factory=dict)
    owner: dict[TopicPartition, str] = field(default_factory=dict)
    last_process: dict[TopicPartition, str] = field(default_factory=dict)
    pauses: list[int] = field(default_factory=list)
    restored: int = 0
    moved: int = 0
    bytes: int = 0

    def took(self, event: Took) -> None:
        process = process_of(event.thread)
        for partition in event.gained:
            since_ms = self.idle_since.pop(partition, event.at_ms)
            if self.counts:
                self.pauses.append(event.at_ms - since_ms + event.restore_ms)
                self.moved += self.last_process.get(partition, process) != process
            self.owner[partition], self.last_process[partition] = event.thread, process
        self.restored += event.restored if self.counts else 0

    def gave(self, event: Gave) -> None:
        self._release(event, event.partitions)

    def ended(self, event: Ended) -> None:
        self._release(event, tuple(self.owner))

    def wrote(self, event: Wrote) -> None:
        self.bytes += event.size if self.counts else 0

    def answered(self, event: Answered) -> None:
        self.bytes += sum(answer.size for answer in event.answers) if self.counts else 0

    def settled(self, _: Settled) -> None:
        self.counts = True

    def _release(self, event: Gave | Ended, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if self.owner.get(partition) == event.thread:
                self.idle_since[partition] = event.at_ms
                del self.owner[partition]


_ADDERS: dict[type, Callable[[_Sums, Any], None]] = {
    Took: _Sums.took,
    Gave: _Sums.gave,
    Ended: _Sums.ended,
    Wrote: _Sums.wrote,
    Answered: _Sums.answered,
    Settled: _Sums.settled,
}


def process_of(thread: str) -> str:
    """Return the process of a thread: the thread's name without its number.

    >>> process_of("a2")
    'a'
    """
    return thread.rstrip("0123456789")
