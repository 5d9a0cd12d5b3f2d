"""What a bounce cost: pauses, state to restore, tasks that moved, bytes on the wire.

A partition pauses from the moment that its owner gives it up, or dies, until another has it and has
read its state; records go on being written meanwhile. Counted from the first settled group on.
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
    for one in trace:
        adder = _ADDERS.get(type(one))
        if adder is not None:
            adder(sums, one)
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
    """What has been added up; nothing counts before the first settled group."""

    counts: bool = False
    idle_since: dict[TopicPartition, int] = field(default_factory=dict)
    owner: dict[TopicPartition, str] = field(default_factory=dict)
    last_process: dict[TopicPartition, str] = field(default_factory=dict)
    pauses: list[int] = field(default_factory=list)
    restored: int = 0
    moved: int = 0
    bytes: int = 0

    def took(self, one: Took) -> None:
        process = process_of(one.thread)
        for partition in one.gained:
            since_ms = self.idle_since.pop(partition, one.at_ms)
            if self.counts:
                self.pauses.append(one.at_ms - since_ms + one.restore_ms)
                self.moved += self.last_process.get(partition, process) != process
            self.owner[partition], self.last_process[partition] = one.thread, process
        self.restored += one.restored if self.counts else 0

    def gave(self, one: Gave) -> None:
        self._release(one, one.partitions)

    def ended(self, one: Ended) -> None:
        self._release(one, tuple(self.owner))

    def wrote(self, one: Wrote) -> None:
        self.bytes += one.size if self.counts else 0

    def answered(self, one: Answered) -> None:
        self.bytes += sum(answer.size for answer in one.answers) if self.counts else 0

    def settled(self, _: Settled) -> None:
        self.counts = True

    def _release(self, one: Gave | Ended, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if self.owner.get(partition) == one.thread:
                self.idle_since[partition] = one.at_ms
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
    """Name of the process that a thread belongs to: its lane without the number.

    >>> process_of("a2")
    'a'
    """
    return thread.rstrip("0123456789")
